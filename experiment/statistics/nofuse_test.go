package statistics_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/internal/num/nofuse"
)

// TestNothingFuses holds the rule of internal/num: what the code here computes by itself is the same
// bits everywhere, before a distribution of gonum is asked.
func TestNothingFuses(t *testing.T) { nofuse.Check(t, ".") }
