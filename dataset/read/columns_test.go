package read

import (
	"fmt"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
)

func TestFindColumns(t *testing.T) {
	names := []string{"a", "b:c", "7", "d", "e"}
	for list, want := range map[string]string{
		"a": "[0]", "b:c": "[1]", "7": "[2]", "3": "[3]", "last": "[4]", "a:7": "[0 1 2]", "1:last": "[1 2 3 4]",
		"d:d": "[3]",
	} {
		if got, err := findColumns(names, 5, []string{list}); fmt.Sprint(got) != want || err != nil {
			t.Errorf("%q: %v, error %v", list, got, err)
		}
	}
	for list, says := range map[string]string{
		"x": `no column "x"; the columns are a, b:c`, "d:a": "the first column comes after the last", "a:x": `no column "x"`,
		":": `no column ""`, "5": `no column "5"`,
	} {
		_, err := findColumns(names, 5, []string{list})
		datasettest.MustContain(t, err, says)
	}
}

// TestChosenColumns: features are those listed, in their order, or those that are
// not dropped, in every kind of file.
func TestChosenColumns(t *testing.T) {
	csv := "a,b,c,label_p\n1,2,3,1\n"
	svm := "# features: a,b,c\n# labels: p\n1 1:1 2:2 3:3\n"
	for _, c := range []struct {
		features, drop []string
		want           string
	}{
		{nil, []string{"b"}, "[a c] [1 3]"},
		{nil, []string{"0:1"}, "[c] [3]"},
		{[]string{"c", "a"}, nil, "[c a] [3 1]"},
		{[]string{"1:2"}, []string{"a"}, "[b c] [2 3]"},
	} {
		for name, content := range map[string]string{"a.csv": csv, "a.svm": svm} {
			src, err := OpenFile(t, name, content, OpenOptions{FeatureColumns: c.features, Drop: c.drop})
			if err != nil {
				t.Fatal(err)
			}
			r := datasettest.Collect(t, src)[0]
			if got := fmt.Sprint(src.Info().FeatureNames, " ", datasettest.Dense(r, src.Info().Features)); got != c.want ||
				r.Labels[0] != 1 {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
		}
	}
	for name, content := range map[string]string{"a.csv": csv, "a.svm": svm} {
		for says, o := range map[string]OpenOptions{
			`no column "x"`: {Drop: []string{"x"}},
			`column 0 "a" (counted from 0) is used twice`: {Drop: []string{"a"}, FeatureColumns: []string{"a"}},
		} {
			_, err := OpenFile(t, name, content, o)
			datasettest.MustContain(t, err, name, says)
		}
		_, err := OpenFile(t, name, content, OpenOptions{Drop: []string{"a", "b", "c"}})
		datasettest.MustContain(t, err, name, "0 features")
	}
}

// TestDroppedLabel: a label column can be dropped, and a name column be a feature.
func TestDroppedLabel(t *testing.T) {
	src, err := OpenFile(t, "a.csv", "name,a,label_p,label_q\n7,1,1,0.5\n", OpenOptions{Drop: []string{"label_q"},
		FeatureColumns: []string{"a", "name"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := Describe(t, src); got != "[a name]>[p] [1 7]>[1]" {
		t.Error(got)
	}
}

// TestForeignOptions: an option that means nothing for a kind of file is refused.
func TestForeignOptions(t *testing.T) {
	for says, o := range map[string]OpenOptions{
		"--delimiter": {CSV: CSVOptions{Delimiter: ';'}}, "--decimal": {CSV: CSVOptions{Decimal: ","}},
		"--label-columns":     {Labels: LabelOptions{Columns: []string{"1"}}},
		"--row-names":         {CSV: CSVOptions{RowNames: "0"}},
		"--features-variable": {Arrays: ArrayOptions{FeaturesVariable: "x"}},
		"--labels-file":       {Arrays: ArrayOptions{LabelsFile: "x"}},
		"--header":            {CSV: CSVOptions{Header: dataset.HeaderNo}},
		"--label-prefix":      {Labels: LabelOptions{Prefixes: []string{"q"}}},
	} {
		_, err := OpenFile(t, "a.svm", "1 1:1\n", o)
		datasettest.MustContain(t, err, "a.svm", says, "only")
	}
	_, err := OpenFile(t, "a.csv", "a,label_b\n1,1\n", OpenOptions{Libsvm: LibsvmOptions{ZeroBased: true}})
	datasettest.MustContain(t, err, "a.csv", "--zero-based")
	if _, err = OpenFile(t, "a.csv", "a,label_b\n1,1\n",
		OpenOptions{Libsvm: LibsvmOptions{CountedFrom: dataset.FromZero}}); err != nil {
		t.Error(err)
	}
	_, err = OpenFile(t, "a.csv", "a,label_b\n1,1\n", OpenOptions{Arrays: ArrayOptions{LabelsVariable: "y"}})
	datasettest.MustContain(t, err, "a.csv", "--labels-variable", ".mat and .npz")
}

// TestFormat: what a file is called need not say what it is.
func TestFormat(t *testing.T) {
	src, err := OpenFile(t, "a.txt", "a\tlabel_b\n1\t1\n", OpenOptions{Format: "tsv", Called: "stdin"})
	if err != nil {
		t.Fatal(err)
	}
	if got := Describe(t, src); got != "[a]>[b] [1]>[1]" || src.Info().File != "stdin" {
		t.Error(got, src.Info().File)
	}
	_, err = OpenFile(t, "a.txt", "a\tlabel_b\nx\t1\n", OpenOptions{Format: "mat", Called: "stdin"})
	datasettest.MustContain(t, err, "stdin: ")
}
