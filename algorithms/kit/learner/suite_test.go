package learner_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/harness/contract"
)

// TestContract: the nearest mean, which algorithms/README.md points to, passes the suite.
func TestContract(t *testing.T) { contract.Run(t, nearestMean()) }
