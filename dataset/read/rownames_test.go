package read

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// TestRowNamesByDefault: a column that is taken for names of rows without a flag is told with the flag that makes it a
// feature; one with numbers that are no index is refused, and both ways of the error read the file.
func TestRowNamesByDefault(t *testing.T) {
	rest := []string{"1,0.1,0.9", "2,0.5,0.5", "3,0.8,0.2"}
	file := func(name string, values ...string) string {
		text := name + ",a,label_p,label_q\n"
		for i, v := range values {
			text += v + "," + rest[i] + "\n"
		}
		return text
	}
	for name, c := range map[string]struct {
		file, note string
		says       []string // of an error; nil: there is none
	}{
		"index":              {file("", "0", "1", "2"), "column 0, which has no name, has the names of the samples; --feature-columns 0,a makes it a feature", nil},
		"index with a point": {file("", "2.0", "0.0", "1.0"), "--feature-columns 0,a", nil},
		"texts":              {file("name", "x", "y", "x"), `column 0, "name"`, nil},
		"own column":         {file("row_name", "7", "8", "9"), `column 0, "row_name", has the names of the samples; --feature-columns row_name,a makes it a feature`, nil},
		"other name":         {file("Name", "1.5", "1.5", "2"), "", nil},
		"measurements":       {file("", "400.5", "512.25", "633.1"), "", []string{"column 0, which has no name", "400.5", "--row-names 0", "--feature-columns 0,a"}},
		"equal numbers":      {file("", "4", "5", "4"), "", []string{"equal numbers, such as 4"}},
		"name":               {file("name", "1.5", "2.5", "9.5"), "", []string{`column 0, "name"`, "--row-names name", "--feature-columns name,a"}},
		"numbers for names":  {",0,label_p,label_q\n400.5,1,0.1,0.9\n512.25,2,0.5,0.5\n", "", []string{"call it row_name in the header"}},
	} {
		path := datasettest.WriteFile(t, "x.csv", c.file)
		src, err := Open(path, OpenOptions{})
		if c.says == nil {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if notes := strings.Join(errtext.Strings(src.Info().Notes), "\n"); !strings.Contains(notes, c.note) || c.note == "" && strings.Contains(notes, "has the names of the samples") {
				t.Errorf("%s: notes %s", name, notes)
			}
			continue
		}
		if !errors.Is(err, dataset.ErrAmbiguous) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		datasettest.MustContain(t, err, c.says...)
		var ways *dataset.WaysError
		if !errors.As(err, &ways) {
			continue
		}
		for k, w := range ways.Ways {
			o, _, err := apply(w, OpenOptions{}, importer.Options{})
			if err == nil {
				src, err = Open(path, o)
			}
			if err != nil || src.Info().Features != 2-k || src.Info().HasRowNames != (k == 1) {
				t.Errorf("%s: %+v: %v", name, w, err)
			}
		}
		found, err := Inspect(path, OpenOptions{}, importer.Options{})
		if err != nil || found.Refused == "" || len(found.Readings) != 2 {
			t.Errorf("%s: inspected as %+v, %v", name, found, err)
		}
	}
	found, err := Inspect(datasettest.WriteFile(t, "x.csv", file("name", "1", "2", "3")), OpenOptions{}, importer.Options{})
	if err != nil || found.Columns[0].Role != RoleRowNames {
		t.Errorf("inspected as %+v, %v", found, err)
	}
}

// TestUnnamedFeature: a model that has an unnamed first column as a feature finds it again.
func TestUnnamedFeature(t *testing.T) {
	path := datasettest.WriteFile(t, "x.csv", ",a,label_p,label_q\n400.5,1,0.1,0.9\n512.25,1,0.5,0.5\n")
	src, err := Open(path, OpenOptions{FeatureColumns: []string{"0", "a"}})
	if err != nil {
		t.Fatal(err)
	}
	info := src.Info()
	src, _, err = OpenFor(path, OpenOptions{}, &dataset.Schema{Features: 2, Labels: 2, FeatureNames: info.FeatureNames, LabelNames: info.LabelNames, LabelColumns: info.LabelColumns, Reading: info.Reading})
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
	src, err := Open(path, OpenOptions{Labels: class, Categories: []string{"name"}})
	if err != nil || src.Info().Features != 2 {
		t.Errorf("as a category: %v", err)
	}
	_, err = Open(datasettest.WriteFile(t, "y.csv", "name,class\n1,x\n2,y\n"), OpenOptions{Labels: class})
	datasettest.MustContain(t, err, `column 0, "name"`, "--feature-columns name makes it a feature")
}

// TestHeadersThatAreNumbers: a note says which column a number in a flag names if it is the header of another one.
func TestHeadersThatAreNumbers(t *testing.T) {
	path := datasettest.WriteFile(t, "x.csv", "2,0,1,label_a,label_b\n1.5,20,3,0.5,0.5\n2.5,30,4,0.25,0.75\n")
	for _, o := range []OpenOptions{{Drop: []string{"0"}}, {FeatureColumns: []string{"0"}}, {Drop: []string{"0:1"}}, {RowNames: "0"}} {
		o.Header = dataset.HeaderYes
		src, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(errtext.Strings(src.Info().Notes), "\n"); strings.Count(notes, `column 0 in an option means the column with the name "0", which is column 1 (counted from 0); column 0 is called "2"`) != 1 {
			t.Errorf("%+v: %s", o, notes)
		}
	}
	src, err := Open(path, OpenOptions{Header: dataset.HeaderYes, Drop: []string{"3"}, Labels: LabelOptions{Columns: []string{"label_b", "1"}}})
	if err != nil || strings.Contains(strings.Join(errtext.Strings(src.Info().Notes), "\n"), "column 3 in a flag") {
		t.Errorf("%v", err)
	}
}
