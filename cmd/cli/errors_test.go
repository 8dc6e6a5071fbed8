package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// An error of several parts is one line, and a folder in the place of a file is named.
func TestErrorLines(t *testing.T) {
	dir := t.TempDir()
	_, read := os.ReadFile(dir)
	_, listed := os.ReadDir(cmdtest.Write(t, dir, "file", ""))
	for want, err := range map[string]error{
		"first; second": errors.Join(errors.New("first"), errors.New("second")),
		dir + ": is a folder; give the name of a file":                          read,
		filepath.Join(dir, "file") + ": is not a folder, or is not in a folder": listed,
	} {
		if got := failureOf(t.Context(), err).Error; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
