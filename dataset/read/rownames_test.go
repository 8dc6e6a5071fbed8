package read

import (
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// TestUnnamedFeature: a model that has an unnamed first column as a feature finds it again.
func TestUnnamedFeature(t *testing.T) {
	path := datasettest.WriteFile(t, "x.csv", ",a,label_p,label_q\n400.5,1,0.1,0.9\n512.25,1,0.5,0.5\n")
	src, err := Open(path, OpenOptions{FeatureColumns: []string{"0", "a"}})
	if err != nil {
		t.Fatal(err)
	}
	info := src.Info()
	src, _, err = OpenFor(path, OpenOptions{}, &dataset.Schema{Features: 2, Labels: 2, FeatureNames: info.FeatureNames,
		LabelNames: info.LabelNames, LabelColumns: info.LabelColumns, Reading: info.Reading})
	if err != nil {
		t.Fatal(err)
	}
	if err := src.Scan(func(r *dataset.Row) error {
		if r.Number == 1 && !slices.Equal(r.Values, []float64{512.25, 1}) {
			t.Errorf("values %v", r.Values)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestNameColumnsOfFlags: a column called name is what a flag says, and an error says if no feature is left.
func TestNameColumnsOfFlags(t *testing.T) {
	path := datasettest.WriteFile(t, "x.csv", "name,class\n1,x\n2,y\n1,x\n")
	class := LabelOptions{Kind: dataset.Class}
	src, err := Open(path, OpenOptions{Labels: class, CSV: CSVOptions{Categories: []string{"name"}}})
	if err != nil || src.Info().Features != 2 {
		t.Errorf("as a category: %v", err)
	}
	_, err = Open(datasettest.WriteFile(t, "y.csv", "name,class\n1,x\n2,y\n"), OpenOptions{Labels: class})
	datasettest.MustContain(t, err, `column 0, "name"`, "--feature-columns lists the features")
}

// TestHeadersThatAreNumbers: a note says which column a number in a flag names if it is the header of another one.
func TestHeadersThatAreNumbers(t *testing.T) {
	path := datasettest.WriteFile(t, "x.csv", "2,0,1,label_a,label_b\n1.5,20,3,0.5,0.5\n2.5,30,4,0.25,0.75\n")
	for _, o := range []OpenOptions{{Drop: []string{"0"}}, {FeatureColumns: []string{"0"}}, {Drop: []string{"0:1"}},
		{CSV: CSVOptions{RowNames: "0"}}} {
		o.CSV.Header = dataset.HeaderYes
		src, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(errtext.Strings(src.Info().Notes), "\n"); strings.Count(notes,
			`column 0 in an option means the column with the name "0", which is column 1 (counted from 0); column 0 is called "2"`) != 1 {
			t.Errorf("%+v: %s", o, notes)
		}
	}
	src, err := Open(path, OpenOptions{CSV: CSVOptions{Header: dataset.HeaderYes}, Drop: []string{"3"},
		Labels: LabelOptions{Columns: []string{"label_b", "1"}}})
	if err != nil || strings.Contains(strings.Join(errtext.Strings(src.Info().Notes), "\n"), "column 3 in a flag") {
		t.Errorf("%v", err)
	}
}
