package learner_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/algorithmtest"
)

// TestContract: the nearest mean, which algorithms/README.md points to, passes the suite.
func TestContract(t *testing.T) { algorithmtest.Run(t, nearestMean()) }
