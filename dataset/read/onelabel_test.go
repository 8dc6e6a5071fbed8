package read

import (
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// Imported builds a file and returns what is said of it.
func Imported(t *testing.T, name, content string, o OpenOptions, checks importer.Checks) (m *dataset.Manifest,
	said []string, err error) {
	t.Helper()
	src, err := OpenFile(t, name, content, o)
	if err != nil {
		return nil, nil, err
	}
	said = errtext.Strings(src.Info().Notes)
	m, _, err = importer.Build(src, importer.Options{Checks: checks, Warn: func(s errtext.Text) {
		said = append(said, s.String())
	}})
	return m, said, err
}
