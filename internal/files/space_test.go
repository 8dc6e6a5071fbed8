package files_test

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/internal/files"
)

// TestRoom: a folder on a disk without room is refused.
func TestRoom(t *testing.T) {
	if err := files.CheckSpace(t.TempDir(), 1<<60); err == nil ||
		!strings.Contains(err.Error(), "are free; give another folder in TMPDIR") {
		t.Error(err)
	}
	if err := files.CheckSpace(t.TempDir(), 1); err != nil {
		t.Error(err)
	}
}
