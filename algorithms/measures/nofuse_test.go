package measures_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/internal/num/nofuse"
)

// TestNothingFuses holds the rule of internal/num: measures are the same bits everywhere.
func TestNothingFuses(t *testing.T) { nofuse.Check(t, ".") }
