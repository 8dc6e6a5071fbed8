package read

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/write"
)

// OpenForModel opens content for a model.
func OpenForModel(t *testing.T, name, content string, o OpenOptions, s *dataset.Schema) (dataset.Source,
	*Matching, error) {
	t.Helper()
	return OpenFor(datasettest.WriteFile(t, name, content), o, s)
}

// abc reads three features and predicts two labels, whose columns were "c_p" and "c_q".
var abc = &dataset.Schema{
	Features: 3, FeatureNames: []string{"a", "b", "y_c"}, Labels: 2, LabelNames: []string{"p", "q"},
	LabelColumns: dataset.LabelColumns{Names: []string{"c_p", "c_q"}},
}

func TestOpenForCSV(t *testing.T) {
	noNames := &dataset.Schema{Features: 3, Labels: 2}
	counted := &dataset.Schema{Features: 3, Labels: 2, LabelColumns: dataset.LabelColumns{Positions: []int{1, 3}}}
	classes := &dataset.Schema{Features: 1, FeatureNames: []string{"a"}, Labels: 2, LabelNames: []string{"no", "yes"},
		LabelColumns: dataset.LabelColumns{Names: []string{"kind"}}}
	predict := OpenOptions{NoLabels: true}
	for _, c := range []struct {
		name    string
		content string
		o       OpenOptions
		s       *dataset.Schema
		want    string
		by      string // features/labels
	}{
		{"as it was trained on", "a,b,y_c,c_p,c_q\n1,2,3,1,0\n", OpenOptions{}, abc, "[a b y_c]>[p q] [1 2 3]>[1 0]",
			"name/name"},
		{"another order", "c_q,y_c,a,c_p,b\n0,3,1,1,2\n", OpenOptions{}, abc, "[a b y_c]>[p q] [1 2 3]>[1 0]", "name/name"},
		{"labels by their names", "q,y_c,a,p,b\n0,3,1,1,2\n", OpenOptions{}, abc, "[a b y_c]>[p q] [1 2 3]>[1 0]",
			"name/name"},
		{"labels with the usual prefix", "label_q,y_c,a,y_p,b\n0,3,1,1,2\n", OpenOptions{}, abc,
			"[a b y_c]>[p q] [1 2 3]>[1 0]", "name/name"},
		{"labels listed in another order", "a,b,y_c,p,q\n1,2,3,1,0\n",
			OpenOptions{Labels: LabelOptions{Columns: []string{"q", "p"}}}, abc, "[a b y_c]>[p q] [1 2 3]>[1 0]", "name/name"},
		{"blanks around names", " b ,\ta, y_c,p ,q\n2,1,3,1,0\n",
			OpenOptions{Labels: LabelOptions{Columns: []string{" q", "p "}}}, abc, "[a b y_c]>[p q] [1 2 3]>[1 0]", "name/name"},
		{"labels are passed over", "c_q,y_c,a,c_p,b\nx,3,1,,2\n", predict, abc, "[a b y_c]>[] [1 2 3]>[]", "name/"},
		{"labels of other names with a prefix are passed over", "y_c,a,b,label_z\n3,1,2,9\n", predict, abc,
			"[a b y_c]>[] [1 2 3]>[]", "name/"},
		{"one label is there", "y_c,a,b,q\n3,1,2,9\n", predict, abc, "[a b y_c]>[] [1 2 3]>[]", "name/"},
		{"row names", "name,y_c,a,b\nfirst,3,1,2\n", predict, abc, "[a b y_c]>[] first[1 2 3]>[]", "name/"},
		{"no header", "1,2,3\n", predict, abc, "[]>[] [1 2 3]>[]", "position/"},
		{"a model without names", "b,a,c\n1,2,3\n", predict, noNames, "[b a c]>[] [1 2 3]>[]", "position/"},
		{"default names in another order", "x2,x0,x1,label_1,label_0\n3,1,2,0,1\n", OpenOptions{}, noNames,
			"[x0 x1 x2]>[0 1] [1 2 3]>[1 0]", "name/name"},
		{"labels where they were", "1,1,2,0,3\n", OpenOptions{}, counted, "[]>[] [1 2 3]>[1 0]", "position/position"},
		{"labels where they were, passed over", "1,x,2,,3\n", predict, counted, "[]>[] [1 2 3]>[]", "position/"},
		{"no labels where they were", "1,2,3\n", predict, counted, "[]>[] [1 2 3]>[]", "position/"},
		{"a class", "kind,a\nyes,1\n no ,2\n", OpenOptions{Labels: LabelOptions{Kind: dataset.Class}}, classes,
			"[a]>[no yes] [1]>[0 1] [2]>[1 0]", "name/name"},
		{"a class is passed over", "kind,a\nyes,1\n", predict, classes, "[a]>[] [1]>[]", "name/"},
	} {
		src, m, err := OpenForModel(t, "a.csv", c.content, c.o, c.s)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		by := m.Features.By + "/"
		if m.Labels != nil {
			by += m.Labels.By
		}
		if got := Describe(t, src); got != c.want || by != c.by {
			t.Errorf("%s: %s by %s, want %s by %s", c.name, got, by, c.want, c.by)
		}
	}
}

func TestOpenForRefuses(t *testing.T) {
	predict := OpenOptions{NoLabels: true}
	numbers := &dataset.Schema{Features: 2, FeatureNames: []string{"0", "1"}, Labels: 1}
	for _, c := range []struct {
		content string
		o       OpenOptions
		s       *dataset.Schema
		says    string
	}{
		{"a,b,x,p,q\n1,2,3,1,0\n", OpenOptions{}, abc,
			`feature 2 (counted from 0) differs: the model reads "y_c", the file has "x"`},
		{"id,a,b,y_c,p,q\n1,2,3,4,1,0\n", OpenOptions{}, abc, `unknown to the model: 1 ("id")`},
		{"a,b,p,q\n1,2,1,0\n", predict, abc, `missing from the file: 1 ("y_c")`},
		{"A,b,y_c\n1,2,3\n", predict, abc, `the file has "A"`},
		{"a,b,y_c,label_p,label_r\n1,2,3,1,0\n", OpenOptions{}, abc,
			`label 1 (counted from 0) differs: the model predicts "q", the file has "r"`},
		{"a,b,y_c,label_p,label_q,label_r\n1,2,3,1,0,0\n", OpenOptions{}, abc, `unknown to the model: 1 ("r")`},
		{"a,b,y_c,p\n1,2,3,1\n", OpenOptions{}, abc, `missing from the file: 1 ("q")`},
		{"1,2,3,4\n", predict, abc, "found 4 features, but the model reads 3, and the file does not have the names of " +
			"features"},
		{"1,0\n3,4\n", predict, numbers, "--header"},
		{"a,b,y_c,p,label_p,q\n1,2,3,.5,0,.5\n", OpenOptions{}, abc,
			`"p" and "label_p" are both label "p": list the label columns with --label-columns, or leave a column out with --drop`},
	} {
		_, _, err := OpenForModel(t, "a.csv", c.content, c.o, c.s)
		datasettest.MustContain(t, err, "a.csv: ", c.says)
	}
}

// A wrong value is reported by its column in the file, not by that of the model.
func TestErrorsNameTheColumnOfTheFile(t *testing.T) {
	src, _, err := OpenForModel(t, "a.csv", "q,y_c,a,p,b\n0,3,1,1,nan\n", OpenOptions{}, abc)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = importer.Build(src, importer.Options{})
	datasettest.MustContain(t, err, `row 0, column 4 "b"`)
	if src, _, err = OpenForModel(t, "a.csv", "q,y_c,a,p,b\n-1,3,1,1,2\n", OpenOptions{}, abc); err != nil {
		t.Fatal(err)
	}
	_, _, err = importer.Build(src, importer.Options{})
	datasettest.MustContain(t, err, `row 0, label 0 "q"`)
}

// A sparse file without names may end early, and not late; with names these decide.
func TestOpenForSparse(t *testing.T) {
	for _, c := range []struct {
		content string
		names   []string
		want    string
		filled  int
	}{
		{"1,0 1:5 2:6\n", nil, "[]>[] [5 6]>[1 0]", 1},
		{"1,0 1:5 2:6\n", []string{"a", "b", "c"}, "[]>[] [5 6]>[1 0]", 1},
		{"1,0\n0,1\n", []string{"a", "b", "c"}, "[]>[] []>[1 0] []>[0 1]", 2},
		{"1,0 1:5 3:6\n0,1 2:7\n", []string{"a", "b", "c"}, "[]>[] [5 6]>[1 0] [7]>[0 1]", 0},
		{"# features: c,a,b\n1,0 1:5 2:6\n", []string{"a", "b", "c"}, "[a b c]>[] [6 5]>[1 0]", 0},
	} {
		src, m, err := OpenForModel(t, "a.libsvm", c.content, OpenOptions{},
			&dataset.Schema{Features: 3, FeatureNames: c.names, Labels: 2})
		if err != nil {
			t.Errorf("%q: %v", c.content, err)
			continue
		}
		if got := Describe(t, src); got != c.want || src.Info().Features != 3 || m.Features.Filled != c.filled {
			t.Errorf("%q: %s of %d features, %+v", c.content, got, src.Info().Features, m.Features)
		}
	}
	s := &dataset.Schema{Features: 3, FeatureNames: []string{"a", "b", "c"}, Labels: 2}
	_, _, err := OpenForModel(t, "a.libsvm", "1,0 1:5\n0,1 2:1 4:6\n", OpenOptions{}, s)
	datasettest.MustContain(t, err, "a.libsvm: row 1", "but the model reads features 0 to 2")
	_, _, err = OpenForModel(t, "a.libsvm", "# columns: 4\n1,0 1:5\n", OpenOptions{}, s)
	datasettest.MustContain(t, err, "a.libsvm: the file has 4 features, but the model reads 3")
	_, _, err = OpenForModel(t, "a.libsvm", "# features: a,b\n1,0 1:5\n", OpenOptions{}, s)
	datasettest.MustContain(t, err, "a.libsvm: ", `missing from the file: 1 ("c")`)
}

// A sparse matrix with fewer columns than the model is filled up with zeros.
func TestFillSparseMatrix(t *testing.T) {
	rows := &datasettest.Listed{Described: dataset.Info{Rows: 1, Features: 2, Sparse: true},
		Rows: []dataset.Row{{Sparse: true, Columns: []uint32{1}, Values: []float64{4}}}}
	src, f, err := project(rows, &dataset.Schema{Features: 5, FeatureNames: []string{"a", "b", "c", "d", "e"}}, false)
	if err != nil || f.Features.Filled != 3 || src.Info().Features != 5 {
		t.Fatalf("%+v, %v", f, err)
	}
	if err := importer.Blocks(src, 9, importer.Options{}, func(r *dataset.Rows, _ []string) error {
		if got := fmt.Sprint(r.NonZeros(0)); r.Features != 5 || got != "[1] [4]" {
			t.Errorf("%d features, %s", r.Features, got)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// Names have no blanks at their ends, may be empty, and are distinct; whatever the file.
func TestNamesOfFiles(t *testing.T) {
	for _, c := range []struct{ name, content, want, says string }{
		{"a.csv", " a , b,label_c,label_d\n1,2,0,1\n", "[a b]>[c d] [1 2]>[0 1]", ""},
		{"a.csv", "a,b,label_c,label_c\n1,2,0,1\n", "", `columns 2 and 3 (counted from 0) are both named "label_c"`},
		{"a.csv", "a,b, a,label_c\n1,2,3,1\n", "", `columns 0 and 2 (counted from 0) are both named "a"`},
		{"a.csv", "name,b,name,label_c\nx,2,3,1\n", "", `columns 0 and 2 (counted from 0) are both named "name"`},
		{"a.csv", "a,,,label_c\n1,2,3,1\n", "[a  ]>[c] [1 2 3]>[1]", ""},
		{"a.csv", "a,label_c,y_c\n1,1,0\n", "", "--label-prefix label_ reads"},
		{"a.libsvm", "# features: a , b\n# labels: c,d\n1,0 1:5 2:1\n", "[a b]>[c d] [5 1]>[1 0]", ""},
		{"a.libsvm", "# features: a,b,a\n1,0 1:5\n", "", `features 0 and 2 (counted from 0) are both named "a"`},
		{"a.libsvm", "# features: ,\n1,0 1:5 2:1\n", "[]>[] [5 1]>[1 0]", ""},
	} {
		src, err := OpenFile(t, c.name, c.content, OpenOptions{})
		if c.says != "" {
			datasettest.MustContain(t, err, c.name+": ", c.says)
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.content, err)
			continue
		}
		if got := Describe(t, src); got != c.want {
			t.Errorf("%q: %s, want %s", c.content, got, c.want)
		}
	}
	src, err := OpenFile(t, "a.csv", "1,2,1\n", OpenOptions{Labels: LabelOptions{Columns: []string{"2"}},
		NamesFile: datasettest.WriteFile(t, "n.json", `{"features": [" u ", "v\t"], "labels": ["  "]}`)})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := Describe(t, src), "[u v]>[] [1 2]>[1]"; got != want {
		t.Errorf("a names file: %s, want %s", got, want)
	}
}

// Arrays with names are matched as columns of text are, labels too.
func TestOpenForNPZ(t *testing.T) {
	rows := datasettest.SomeRows(3)
	rows.Described.FeatureNames, rows.Described.LabelNames = []string{"v ", "u"}, []string{"sad", "glad"}
	var b bytes.Buffer
	if _, err := write.WriteNPZ(&b, rows, importer.Options{}, write.NPZOptions{}); err != nil {
		t.Fatal(err)
	}
	s := &dataset.Schema{Features: 2, FeatureNames: []string{"u", "v"}, Labels: 2, LabelNames: []string{"glad", "sad"}}
	src, _, err := OpenForModel(t, "a.npz", b.String(), OpenOptions{}, s)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := Describe(t, src),
		"[u v]>[glad sad] [1 0]>[0.75 0.25] [1 1]>[0.75 0.25] [1 2]>[0.75 0.25]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	s.LabelNames[0] = "mad"
	_, _, err = OpenForModel(t, "a.npz", b.String(), OpenOptions{}, s)
	datasettest.MustContain(t, err, `label 0 (counted from 0) differs: the model predicts "mad", the file has "sad"`)
}
