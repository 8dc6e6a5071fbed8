package read

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

func describeSparse(t *testing.T, src dataset.Source) string {
	t.Helper()
	i := src.Info()
	s := fmt.Sprintf("%dx%d %v>%v", i.Features, i.Labels, i.FeatureNames, i.LabelNames)
	for _, r := range datasettest.Collect(t, src) {
		if !r.Sparse {
			t.Error("a dense row")
		}
		s += fmt.Sprintf(" %s%v%v>%v", r.Name, r.Columns, r.Values, r.Labels)
	}
	return s
}

func TestLibsvm(t *testing.T) {
	for _, c := range []struct {
		content string
		o       OpenOptions
		want    string
	}{
		{"0.2,0.8 1:5 3:-1e-2\n1,0\n", OpenOptions{}, "3x2 []>[] [0 2][5 -0.01]>[0.2 0.8] [][]>[1 0]"},
		{"# features: a, b\n# labels: c\n\n# what else\n1\t2:1  # Zoë\r\n1 # x\n", OpenOptions{},
			"2x1 [a b]>[c] Zoë[1][1]>[1] x[][]>[1]"},
		{"# columns: 9\n1 2:1\n", OpenOptions{}, "9x1 []>[] [1][1]>[1]"},
		{"1 2:1\n", OpenOptions{Features: 4}, "4x1 []>[] [1][1]>[1]"},
		{"sad 2:1\ncalm 1:1\n", OpenOptions{Labels: LabelOptions{Kind: dataset.Class}},
			"2x2 []>[calm sad] [1][1]>[0 1] [0][1]>[1 0]"},
		{"3,1 2:1\n", OpenOptions{Labels: LabelOptions{Kind: dataset.Counts}}, "2x2 []>[] [1][1]>[0.75 0.25]"},
		{"# labels: c\n1 2:1\n2:4\n", OpenOptions{NoLabels: true}, "2x0 []>[] [1][1]>[] [1][4]>[]"},
	} {
		src, err := OpenFile(t, "a.libsvm", c.content, c.o)
		if err != nil {
			t.Errorf("%q: %v", c.content, err)
			continue
		}
		if got := describeSparse(t, src); got != c.want {
			t.Errorf("%q: %s, want %s", c.content, got, c.want)
		}
	}
}

func TestLibsvmErrors(t *testing.T) {
	for _, c := range []struct {
		content string
		o       OpenOptions
		says    string
		want    error
	}{
		{"", OpenOptions{}, "the file is empty", dataset.ErrFormat},
		{"# only a comment\n", OpenOptions{}, "no samples", dataset.ErrFormat},
		{"1 1:1\n1,0 1:1\n", OpenOptions{}, "row 1 (counted from 0; line 2): found 2 labels, want 1", nil},
		{"1 1:1\n2:1\n", OpenOptions{}, "row 1 (counted from 0; line 2): the line must begin with labels",
			dataset.ErrNoLabels},
		{"1 -1:1\n", OpenOptions{}, `row 0 (counted from 0; line 1): index "-1"`, nil},
		{"1 qid:1 1:1\n", OpenOptions{}, "qid:1 is the query of a sample in a ranking dataset", nil},
		{"1 99999999:1\n", OpenOptions{}, "99999999", nil},
		{"1 2:1 2:1\n", OpenOptions{}, "index 2 occurs twice in this line", nil},
		{"1 2:1 1:1\n", OpenOptions{}, "index 1 comes after 2", nil},
		{"1 1:x\n", OpenOptions{}, `row 0 (counted from 0; line 1): index 1: "x" is not a number`, nil},
		{"1 1\n", OpenOptions{}, `found "1", want INDEX:VALUE`, nil},
		{"# labels: c,d\n1,a 1:1\n", OpenOptions{}, `row 0, label 1 "d" (counted from 0; line 2): "a" is not a number`, nil},
		{"# columns: many\n1 1:1\n", OpenOptions{}, `the comment columns has "many"`, dataset.ErrFormat},
		{"# features: a\n1 2:1\n", OpenOptions{}, "1 feature names for 2 features", nil},
		{"1,2 1:1\n", OpenOptions{Labels: LabelOptions{Kind: dataset.Age, Sigma: 1, High: 9}}, "2 columns", nil},
	} {
		src, err := OpenFile(t, "a.svm", c.content, c.o)
		if err == nil {
			_, err = datasettest.TryCollect(src)
		}
		datasettest.MustContain(t, err, "a.svm", c.says)
		if c.want != nil {
			datasettest.MustBe(t, err, c.want)
		}
	}
}

// TestLibsvmBase: an index 0 anywhere, or the flag, counts features from 0; the
// source says how it counted.
func TestLibsvmBase(t *testing.T) {
	for _, c := range []struct {
		content, want, note string
		o                   OpenOptions
		zero                bool
	}{
		{"1 1:5 3:6\n1 2:7\n", "3x1 []>[] [0 2][5 6]>[1] [1][7]>[1]", "numbered from 1 (--zero-based", OpenOptions{}, false},
		{"1 1:5 3:6\n1 0:7\n", "4x1 []>[] [1 3][5 6]>[1] [0][7]>[1]", "numbered from 0", OpenOptions{}, true},
		{"1 1:5 3:6\n", "4x1 []>[] [1 3][5 6]>[1]", "numbered from 0", OpenOptions{Libsvm: LibsvmOptions{ZeroBased: true}},
			true},
		{"1 1:5\n", "2x1 []>[] [1][5]>[1]", "numbered from 0",
			OpenOptions{Libsvm: LibsvmOptions{CountedFrom: dataset.FromZero}}, true},
		{"# Column indices are zero-based\n1 1:5\n", "2x1 []>[] [1][5]>[1]", "numbered from 0", OpenOptions{}, true},
		{"# columns: 4\n1 0:5 3:2\n", "4x1 []>[] [0 3][5 2]>[1]", "numbered from 0", OpenOptions{}, true},
		{"1\n", "2x1 []>[] [][]>[1]", "", OpenOptions{Features: 2}, false},
	} {
		src, err := OpenFile(t, "a.svm", c.content, c.o)
		if err != nil {
			t.Errorf("%q: %v", c.content, err)
			continue
		}
		notes := strings.Join(errtext.Strings(src.Info().Notes), "")
		if got := describeSparse(t, src); got != c.want || (src.Info().CountedFrom == dataset.FromZero) != c.zero ||
			!strings.Contains(notes, c.note) {
			t.Errorf("%q: %s, zero-based %v, %q", c.content, got, src.Info().CountedFrom, notes)
		}
	}
	_, err := OpenFile(t, "a.svm", "1 0:1 16777216:1\n", OpenOptions{})
	datasettest.MustContain(t, err, "a.svm", "16,777,217 features")
}

func TestLibsvmEqualsCSV(t *testing.T) {
	a, err := OpenFile(t, "a.libsvm", "0.5,0.5 2:3\n1,0 1:4\n", OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenFile(t, "b.csv", "x0,x1,label_0,label_1\n0,3,.5,.5\n4,0,1,0\n", OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ma, _, err := importer.Build(a, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if mb, _, err := importer.Build(b, importer.Options{}); err != nil || ma.Digest() != mb.Digest() {
		t.Errorf("the same rows have other digests (%v)", err)
	}
}

func TestNamesFile(t *testing.T) {
	names := datasettest.WriteFile(t, "n.json", `{"features": ["p"], "labels": ["q", "r"], "rows": ["one", "two"]}`)
	for _, o := range []OpenOptions{{NamesFile: names}, {NamesFile: names, NoLabels: true}} {
		o.Labels.Columns = []string{"1:2"}
		src, err := OpenFile(t, "a.csv", "1,1,0\n2,0,1\n", o)
		if err != nil {
			t.Fatal(err)
		}
		want := "[p]>[q r] one[1]>[1 0] two[2]>[0 1]"
		if o.NoLabels {
			want = "[p]>[] one[1]>[] two[2]>[]"
		}
		if got := Describe(t, src); got != want || !src.Info().HasRowNames {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestNamesFileErrors(t *testing.T) {
	for content, says := range map[string]string{
		`{"feature": ["p"]}`:            `the key "feature" is unknown`,
		`{"features": ["p"]} {}`:        "more than one",
		`["p"]`:                         "want {",
		`{"features": ["p", "q"]}`:      "2 names for 1 features",
		`{"labels": ["p"]}`:             "1 names for 2 labels",
		`{"rows": ["one"]}`:             "the list has 1 row names, fewer than there are rows",
		`{"rows": ["1","2","3"]}`:       "one for each row",
		strings.Repeat(`{"rows":`, 100): "",
	} {
		o := OpenOptions{NamesFile: datasettest.WriteFile(t, "n.json", content)}
		src, err := OpenFile(t, "a.csv", "a,label_c,label_d\n1,1,0\n2,0,1\n", o)
		if err == nil {
			_, err = datasettest.TryCollect(src)
		}
		datasettest.MustContain(t, err, "n.json", says)
	}
	_, err := OpenFile(t, "a.csv", "a,label_c\n1,1\n", OpenOptions{NamesFile: "none.json"})
	datasettest.MustBe(t, err, os.ErrNotExist)
	// Where the number of rows is known, the mismatch is found at once.
	_, err = WithNames(datasettest.SomeRows(3), "n.json", &Names{Rows: []string{"a"}})
	datasettest.MustBe(t, err, dataset.ErrRowCount)
	if src, err := WithNames(datasettest.SomeRows(1), "n.json", &Names{}); err != nil ||
		!slices.Equal(datasettest.Collect(t, src)[0].Values, []float64{0, 1}) {
		t.Error(err)
	}
}

// Lines of other dialects of libsvm are refused with their number and what to do, which works.
func TestOtherLibsvmLines(t *testing.T) {
	for text, says := range map[string]string{
		"0,1 1:1\n1,0 qid:3 1:2 2:.5\n": "line 2): qid:3 is the query of a sample in a ranking dataset, which cannot be " +
			"read: remove qid from each line",
		"0,1 1:1\n\n1,0 3:2 2:.5 7:1\n": "line 3): index 2 comes after 3, but indices must ascend: sort each line by index",
		"0,1 1:1\n1,0 3:2 4:1 3:.5\n":   "remove one of the two, because a feature has one value in a sample",
	} {
		datasettest.MustContain(t, Built(t, "a.svm", text, OpenOptions{}, importer.Checks{}), says)
		fixed := strings.NewReplacer(" qid:3", "", "3:2 2:.5 7:1", "2:.5 3:2 7:1", " 4:1 3:.5", " 4:1").Replace(text)
		if err := Built(t, "a.svm", fixed, OpenOptions{}, importer.Checks{}); err != nil {
			t.Errorf("%q: %v", fixed, err)
		}
	}
}
