package read

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
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

// TestValidationWithoutClass checks the error about a file of validation samples whose class has another column than
// the class of the training samples.
func TestValidationWithoutClass(t *testing.T) {
	o := OpenOptions{Labels: LabelOptions{Kind: dataset.Class}}
	training, err := Open(datasettest.WriteFile(t, "t.csv", "x,class\n1,a\n2,b\n"), o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = WithValidation(training, datasettest.WriteFile(t, "v.csv", "x,label\n1,a\n"), o)
	datasettest.MustContain(t, err, "v.csv: ", `t.csv has the class in column "class", and this file has no such column`)
	if strings.Contains(err.Error(), "model") {
		t.Errorf("there is no model yet: %v", err)
	}
}
