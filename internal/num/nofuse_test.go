package num_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/internal/num/nofuse"
)

// TestNothingFuses holds rule 2 of the package's comment.
func TestNothingFuses(t *testing.T) { nofuse.Check(t, ".") }
