package read

import (
	"testing"

	"github.com/coppice-ldl/coppice/dataset/importer"
)

// Built opens a file and reads it as an import does.
func Built(t *testing.T, name, content string, o OpenOptions, checks importer.Checks) error {
	t.Helper()
	src, err := OpenFile(t, name, content, o)
	if err == nil {
		_, _, err = importer.Build(src, importer.Options{Checks: checks})
	}
	return err
}
