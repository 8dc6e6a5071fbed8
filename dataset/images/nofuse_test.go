package images_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/internal/num/nofuse"
)

func TestNothingFuses(t *testing.T) { nofuse.Check(t, ".") }
