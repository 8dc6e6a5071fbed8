package read

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// imported builds a file and returns what is said of it.
func imported(t *testing.T, name, content string, o OpenOptions, checks importer.Checks) (m *dataset.Manifest, said []string, err error) {
	t.Helper()
	src, err := openFile(t, name, content, o)
	if err != nil {
		return nil, nil, err
	}
	said = errtext.Strings(src.Info().Notes)
	m, _, err = importer.Build(src, importer.Options{Checks: checks, Warn: func(s errtext.Text) { said = append(said, s.String()) }})
	return m, said, err
}

// TestOneLabel: one column of degrees would be 1 in every row, with and without Normalize; the advice of the refusal works.
func TestOneLabel(t *testing.T) {
	for _, c := range []struct {
		name, content string
		o             OpenOptions
		says          string
		better        string // content as the advice says
		labels        dataset.LabelKind
	}{
		{"a.csv", "x1,x2,label_p\n1,2,0.3\n2,3,0.9\n3,1,0.5\n", OpenOptions{}, `found only one label, "p"; the labels of a sample sum to 1, so a single label would always be 1; add the other class's probability, which is 1 minus this one`, "x1,x2,label_p,label_q\n1,2,0.3,.7\n2,3,0.9,.1\n3,1,0.5,.5\n", dataset.Distributions},
		{"a.csv", "x1,x2,label_p\n1,2,0\n2,3,1\n", OpenOptions{}, "the values are whole numbers and may be class numbers: --labels class reads them as classes", "", dataset.Class},
		{"a.csv", "x1,x2,label_p\n1,2,5\n2,3,7\n", OpenOptions{Labels: LabelOptions{Kind: dataset.Counts}}, "--labels class", "", dataset.Class},
		{"a.svm", "1 1:1\n-1 1:2\n", OpenOptions{}, "--labels class", "", dataset.Class},
		{"a.svm", "1.5 1:1\n2.5 1:2\n", OpenOptions{}, "--labels age", "", dataset.Age},
	} {
		for _, normalize := range []bool{false, true} {
			_, _, err := imported(t, c.name, c.content, c.o, importer.Checks{Normalize: normalize})
			datasettest.MustContain(t, err, c.name, c.says)
			if err != nil && strings.Contains(err.Error(), "--normalize") {
				t.Errorf("%v advises --normalize", err)
			}
		}
		f, err := Inspect(datasettest.WriteFile(t, c.name, c.content), c.o, importer.Options{})
		if said := fmt.Sprint(f.Warnings); err != nil || !strings.Contains(said, c.says) || strings.Contains(said, "--normalize") {
			t.Errorf("inspect: %q, %v", said, err)
		}
		better := c.better
		if better == "" {
			better = c.content
		}
		o := OpenOptions{Labels: LabelOptions{Kind: c.labels, Sigma: 1, Low: 0, High: 9}}
		if m, _, err := imported(t, c.name, better, o, importer.Checks{}); err != nil || m.Labels < 2 {
			t.Errorf("%s: as advised: %v, %v", c.content, m, err)
		}
	}
	if _, _, err := imported(t, "a.csv", "x,label_p\n1,1\n2,1\n", OpenOptions{}, importer.Checks{}); err != nil {
		t.Errorf("a distribution over one label: %v", err)
	}
}

// TestLibsvmNumbersOfClasses: labels of a libsvm file that are whole numbers may be classes, and normalising them is nonsense.
func TestLibsvmNumbersOfClasses(t *testing.T) {
	for _, content := range []string{"1,3 1:0.5 2:1\n2,4 1:0.1 3:2\n", "1,0 1:1\n1,3 1:0.5 2:1\n", "1,0 1:1\n1,3,4 1:0.5\n"} {
		_, _, err := imported(t, "a.svm", content, OpenOptions{}, importer.Checks{})
		datasettest.MustContain(t, err, "a.svm", "these labels are whole numbers and may be class numbers", "--labels class reads one class for each sample", "write the probability of every class", "--labels counts")
		if err != nil && strings.Contains(err.Error(), "--normalize") {
			t.Errorf("%v advises --normalize", err)
		}
		_, _, err = imported(t, "a.svm", content, OpenOptions{Labels: LabelOptions{Kind: dataset.Class}}, importer.Checks{})
		datasettest.MustContain(t, err, "several labels", "write the probability of every class")
	}
	f, err := Inspect(datasettest.WriteFile(t, "a.svm", "1,3 1:0.5 2:1\n2,4 1:0.1 3:2\n"), OpenOptions{}, importer.Options{})
	if said := fmt.Sprint(f.Warnings); err != nil || !strings.Contains(said, "--labels class") || strings.Contains(said, "--normalize") {
		t.Errorf("inspect: %q, %v", said, err)
	}
	if m, _, err := imported(t, "a.svm", "0.5,0,0.5,0 1:0.5 2:1\n0,0.5,0,0.5 1:0.1 3:2\n", OpenOptions{}, importer.Checks{}); err != nil || m.Labels != 4 {
		t.Errorf("as advised: %v, %v", m, err)
	}
	_, _, err = imported(t, "a.svm", "0.5,0.4 1:1\n", OpenOptions{}, importer.Checks{})
	datasettest.MustContain(t, err, "--normalize")
}
