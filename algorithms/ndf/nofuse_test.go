package ndf

import (
	"testing"

	"github.com/coppice-ldl/coppice/internal/num/nofuse"
)

// TestNothingFuses: a model's bits do not depend on the processor.
func TestNothingFuses(t *testing.T) { nofuse.Check(t, ".") }
