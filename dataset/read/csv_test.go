package read

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// Describe writes what a source gives in one line.
func Describe(t *testing.T, src dataset.Source) string {
	t.Helper()
	i := src.Info()
	s := fmt.Sprintf("%v>%v", i.FeatureNames, i.LabelNames)
	for _, r := range datasettest.Collect(t, src) {
		s += fmt.Sprintf(" %s%v>%v", r.Name, r.Values, r.Labels)
	}
	return s
}

func TestCSV(t *testing.T) {
	for _, c := range []struct {
		content string
		o       OpenOptions
		want    string
	}{
		{"a,b,label_c,label_d\n1,2,0,1\n3,-4e2,.5,.5\n", OpenOptions{}, "[a b]>[c d] [1 2]>[0 1] [3 -400]>[0.5 0.5]"},
		{"\ufeffy_c , a,y_d\r\n1, 2 ,0\r\n", OpenOptions{}, "[a]>[c d] [2]>[1 0]"},
		{"row_name,a,label_c\nfirst,2,1\n\"x,\"\"y\",3,1\n", OpenOptions{}, `[a]>[c] first[2]>[1] x,"y[3]>[1]`},
		{",a,label_c\n0,2,1\n", OpenOptions{}, "[a]>[c] 0[2]>[1]"},
		{"id,a,label_c\nq,2,1\n", OpenOptions{CSV: CSVOptions{RowNames: "id"}}, "[a]>[c] q[2]>[1]"},
		{"q,2,1\n", OpenOptions{CSV: CSVOptions{RowNames: "0"}, Labels: LabelOptions{Columns: []string{"2"}}},
			"[]>[] q[2]>[1]"},
		{"a,b,c\n1,0,1\n", OpenOptions{Labels: LabelOptions{Columns: []string{"c", "0"}}}, "[b]>[c a] [0]>[1 1]"},
		{"a,b,last\n1,0,1\n", OpenOptions{Labels: LabelOptions{Columns: []string{"last"}}}, "[a b]>[last] [1 0]>[1]"},
		{"a,z_b,z_\n1,1,0\n", OpenOptions{Labels: LabelOptions{Prefixes: []string{"z_"}}}, "[a z_]>[b] [1 0]>[1]"},
		{"x0,x1,label_0\n1,0,1\n", OpenOptions{}, "[]>[] [1 0]>[1]"},
		{"1,0,1\n", OpenOptions{Labels: LabelOptions{Columns: []string{"2"}}}, "[]>[] [1 0]>[1]"},
		{"1,2,3\n1,0,1\n", OpenOptions{CSV: CSVOptions{Header: dataset.HeaderYes},
			Labels: LabelOptions{Columns: []string{"3"}}}, "[1 2]>[3] [1 0]>[1]"},
		{"5,label_0,label_1\n1,0,1\n", OpenOptions{}, "[5]>[] [1]>[0 1]"},
		// Without labels wanted:
		{"a,b,label_c\n1,2,1\n", OpenOptions{NoLabels: true}, "[a b]>[] [1 2]>[]"},
		{"a,b\n1,2\n", OpenOptions{NoLabels: true}, "[a b]>[] [1 2]>[]"},
		{"a,b\n1,2\n", OpenOptions{NoLabels: true, Labels: LabelOptions{Columns: []string{"truth"}}}, "[a b]>[] [1 2]>[]"},
		{"1,2,9\n", OpenOptions{NoLabels: true, Features: 2, Labels: LabelOptions{Kind: dataset.Class}}, "[]>[] [1 2 9]>[]"},
		{"1,2\n", OpenOptions{NoLabels: true, Features: 2, Labels: LabelOptions{Kind: dataset.Class,
			Columns: []string{"last"}}}, "[]>[] [1 2]>[]"},
		{"1,2,cat\n", OpenOptions{NoLabels: true, Labels: LabelOptions{Kind: dataset.Class, Columns: []string{"last"}}},
			"[]>[] [1 2]>[]"},
	} {
		src, err := OpenFile(t, "a.csv", c.content, c.o)
		if err != nil {
			t.Errorf("%q: %v", c.content, err)
			continue
		}
		if got := Describe(t, src); got != c.want {
			t.Errorf("%q: %s, want %s", c.content, got, c.want)
		}
	}
}

func TestCSVErrors(t *testing.T) {
	listed := func(columns ...string) OpenOptions { return OpenOptions{Labels: LabelOptions{Columns: columns}} }
	for _, c := range []struct {
		content string
		o       OpenOptions
		says    string
		want    error
	}{
		{"", OpenOptions{}, "the file is empty", dataset.ErrFormat},
		{"\n\n", OpenOptions{}, "the file is empty", dataset.ErrFormat},
		{"a,label_b,label_c\n1,0,1\n", OpenOptions{Labels: LabelOptions{Kind: dataset.Class}},
			`--labels class needs one label column, but several have a usual name ("label_b" and "label_c"): name the label column with --label-columns`, dataset.ErrAmbiguous},
		{"a,b,c\n1,0,1\n", OpenOptions{Labels: LabelOptions{Kind: dataset.Age, Sigma: 1, High: 9,
			Columns: []string{"b", "c"}}}, "--labels age needs one label column, but --label-columns lists 2", nil},
		{"a,b\n1,2\n", OpenOptions{}, "rename them to label_... or y_..., or list them with --label-columns",
			dataset.ErrNoLabels},
		{"a,label_b\n1,1\n2,1,3\n", OpenOptions{}, "row 1 (counted from 0; line 3): found 3 columns, want 2 as in the " +
			"first line", nil},
		{"a,label_b\n1,1\n\"x,1\n", OpenOptions{}, "row 1", nil},
		{"a,label_b\n1,1\nx,1\n", OpenOptions{}, `row 1, column 0 "a" (counted from 0; line 3): "x" is not a number`, nil},
		{"a,label_b\n1,1\n2,\n", OpenOptions{}, `row 1, column 1 "label_b" (counted from 0; line 3): the field is empty`,
			nil},
		{"a,label_b\n1e999,1\n", OpenOptions{},
			`row 0, column 0 "a" (counted from 0; line 2): 1e999 is too large for a float32`, nil},
		{"a,b\n1,1\n", listed("c"), `no column "c"; the columns are a, b`, nil},
		{"1,1\n", listed("c"), "name columns by their numbers, 0 to 1", nil},
		{"a,b\n1,1\n", listed("b", "1"), `column 1 "b" (counted from 0) is used twice`, nil},
		{"label_b\n1\n", OpenOptions{}, "0 features", nil},
		{"a,b\n1,2\n", OpenOptions{CSV: CSVOptions{RowNames: "n"}, NoLabels: true}, `no column "n"`, nil},
	} {
		src, err := OpenFile(t, "a.csv", c.content, c.o)
		if err == nil {
			_, err = datasettest.TryCollect(src)
		}
		datasettest.MustContain(t, err, "a.csv", c.says)
		if c.want != nil {
			datasettest.MustBe(t, err, c.want)
		}
	}
}

func TestCSVGZ(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte("a,label_c\n1,1\n2,1\n"))
	z.Close()
	src, err := OpenBytes(t, "a.csv.gz", b.Bytes(), OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := Describe(t, src), "[a]>[c] [1]>[1] [2]>[1]"; got != want {
		t.Errorf("%s", got)
	}
	for n := range b.Len() {
		src, err := OpenBytes(t, "a.csv.gz", b.Bytes()[:n], OpenOptions{})
		if err == nil {
			_, err = datasettest.TryCollect(src)
		}
		datasettest.MustBe(t, err, dataset.ErrFormat)
		datasettest.MustContain(t, err, "a.csv.gz")
	}
}

// ForModel reads a file for a model that was trained on it: nothing may change.
func ForModel(t *testing.T, path string, o OpenOptions, m *dataset.Manifest) {
	t.Helper()
	s := &dataset.Schema{Features: m.Features, Labels: m.Labels, FeatureNames: m.FeatureNames, LabelNames: m.LabelNames,
		LabelColumns: m.LabelColumns}
	src, _, err := OpenFor(path, o, s)
	if err != nil {
		t.Fatalf("for its own model: %v", err)
	}
	if again, _, err := importer.Build(src, importer.Options{}); err != nil || m.Digest() != again.Digest() {
		t.Errorf("for its own model: %v", err)
	}
	o.Labels.Columns, o.NoLabels = nil, true
	if src, _, err = OpenFor(path, o, s); err != nil {
		t.Fatalf("without labels, for its own model: %v", err)
	}
	if _, err := datasettest.TryCollect(src); err != nil {
		t.Errorf("without labels, for its own model: %v", err)
	}
}

func TestHeaderDetection(t *testing.T) {
	for line, want := range map[string]bool{
		"a|b": true, "1|2": false, "1|cat": false, "1|class": true, "1|label_x": true, "1|y_": false, "|1": false, "a|": true,
		"nan|1": false,
	} {
		o := OpenOptions{Labels: LabelOptions{Kind: dataset.Class}}
		first := bytes.Split([]byte(line), []byte("|"))
		if got, err := hasHeader([]string{string(first[0]), string(first[1])}, nil, numbers.Marks{}, &o); got != want ||
			err != nil {
			t.Errorf("%q: header %v, error %v", line, got, err)
		}
	}
	no, err := hasHeader([]string{"a"}, nil, numbers.Marks{}, &OpenOptions{CSV: CSVOptions{Header: dataset.HeaderNo}})
	yes, err2 := hasHeader([]string{"1"}, nil, numbers.Marks{}, &OpenOptions{CSV: CSVOptions{Header: dataset.HeaderYes}})
	if no || !yes || err != nil || err2 != nil {
		t.Error("Header is not obeyed")
	}
	if yes, err := hasHeader([]string{"", "0", "1", "2"}, nil, numbers.Marks{}, &OpenOptions{}); !yes || err != nil {
		t.Error("a header that counts columns after the row names is none", err)
	}
	_, err = hasHeader([]string{"0", "1", "2"}, nil, numbers.Marks{}, &OpenOptions{})
	datasettest.MustContain(t, err, "--header yes", "--header no")
}

// The only label column is the one with a usual name, wherever it is, and never a guess.
func TestDefaultTarget(t *testing.T) {
	age := LabelOptions{Kind: dataset.Age, Sigma: 1, High: 99}
	for _, c := range []struct {
		content string
		labels  LabelOptions
		column  int // -1: refused
		says    string
	}{
		{"label,p,q\n5,10,0\n0,200,3\n", LabelOptions{Kind: dataset.Class}, 0, `the class is read from column 0, "label"`},
		{"p,Class,q\n5,a,0\n0,b,3\n", LabelOptions{Kind: dataset.Class}, 1, `column 1, "Class"`},
		{"p,TARGET,Age\n5,1,0\n0,2,3\n", LabelOptions{Kind: dataset.Class}, 1, `column 1, "TARGET"`},
		{"Y,p\n5,1\n0,2\n", LabelOptions{Kind: dataset.Class}, 0, `column 0, "Y"`},
		{"Age,p,q\n5,1,0\n6,2,3\n", age, 0, `the age is read from column 0, "Age"`},
		{"p,label_kind,q\n5,1,0\n6,2,3\n", LabelOptions{Kind: dataset.Class}, 1, `"label_kind"`},
		{"p,class,target\n5,1,0\n6,2,3\n", LabelOptions{Kind: dataset.Class}, -1,
			`but several have a usual name ("class" and "target"): name the label column with --label-columns`},
		{"x,y,label\n5,1,0\n6,2,3\n", LabelOptions{Kind: dataset.Class}, 2, `column 2, "label"`},
		{"p,label,Label\n5,1,0\n6,2,3\n", LabelOptions{Kind: dataset.Class}, -1,
			`but several have a usual name ("label" and "Label")`},
		{"p,q,species\n5,1,a\n6,2,b\n", LabelOptions{Kind: dataset.Class}, -1,
			"but no column is called class, label, target or y: name the label column with --label-columns; the columns are " +
				"p, q, species"},
		{"5,1,a\n6,2,b\n", LabelOptions{Kind: dataset.Class}, -1, "the file has no header: name columns by their numbers"},
		{"p,q\n5,1\n6,2\n", age, -1, "but no column is called age, label, target or y"},
	} {
		src, err := OpenFile(t, "a.csv", c.content, OpenOptions{Labels: c.labels})
		if c.column < 0 {
			datasettest.MustBe(t, err, dataset.ErrAmbiguous)
			datasettest.MustContain(t, err, c.says)
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.content, err)
			continue
		}
		if notes := strings.Join(errtext.Strings(src.Info().Notes), "\n"); !strings.Contains(notes, c.says) {
			t.Errorf("%q: %s", c.content, notes)
		}
		if got, want := len(datasettest.Collect(t, src)[0].Values), strings.Count(strings.Split(c.content, "\n")[0],
			","); got != want {
			t.Errorf("%q: %d features, want %d", c.content, got, want)
		}
	}
}

// Two default prefixes are refused, unless a flag or a model says which are labels.
func TestTwoPrefixes(t *testing.T) {
	content := "x_min,y_min,x_max,y_max,label_joy,label_sad\n10,20,30,40,.25,.75\n"
	_, err := OpenFile(t, "a.csv", content, OpenOptions{})
	datasettest.MustBe(t, err, dataset.ErrAmbiguous)
	datasettest.MustContain(t, err, `--label-prefix label_ reads "label_joy" and "label_sad" as labels`,
		`--label-prefix y_ reads "y_min" and "y_max" as labels`)
	for _, o := range []OpenOptions{
		{Labels: LabelOptions{Prefixes: []string{"label_"}}}, {Labels: LabelOptions{Columns: []string{"label_joy:last"}}},
		{FeatureColumns: []string{"0:3"}},
	} {
		src, err := OpenFile(t, "a.csv", content, o)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := Describe(t, src), "[x_min y_min x_max y_max]>[joy sad] [10 20 30 40]>[0.25 0.75]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	src, err := OpenFile(t, "a.csv", content, OpenOptions{Labels: LabelOptions{Prefixes: []string{"label_", "y_"}}})
	if err != nil || src.Info().Labels != 4 {
		t.Errorf("both: %v", err)
	}
	s := &dataset.Schema{Features: 4, Labels: 2, FeatureNames: []string{"x_min", "y_min", "x_max", "y_max"},
		LabelNames: []string{"joy", "sad"}}
	if _, _, err := OpenFor(datasettest.WriteFile(t, "a.csv", content), OpenOptions{}, s); err != nil {
		t.Error(err)
	}
}

func TestFindColumn(t *testing.T) {
	names := make([]string, 12)
	for i := range names {
		names[i] = fmt.Sprint("c", i)
	}
	_, err := findColumn(names, 12, "q")
	datasettest.MustContain(t, err, "c0, c1", "c9, ...")
	if i, err := findColumn(slices.Concat(names[:1], []string{"0"}), 2, "0"); i != 1 || err != nil {
		t.Error("a header goes before a number", i, err)
	}
	if _, err := findColumn(nil, 3, "-1"); err == nil {
		t.Error("-1 was accepted")
	}
}
