package read

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// opened reads a whole file.
func opened(t *testing.T, name, content string, o OpenOptions) (dataset.Info, []dataset.Row, error) {
	t.Helper()
	src, err := openFile(t, name, content, o)
	if err != nil {
		return dataset.Info{}, nil, err
	}
	rows, err := datasettest.TryCollect(src)
	return src.Info(), rows, err
}

// A first line of numbers that could be a header is refused, and both values of --header read it.
func TestHeaderOfNumbers(t *testing.T) {
	listed := func(columns ...string) LabelOptions { return LabelOptions{Columns: columns} }
	spectra := "400,500,600,1,2\n0.31,0.42,0.5,.5,.5\n0.11,0.62,0.4,.25,.75\n0.71,0.22,0.9,1,0\n"
	for content, labels := range map[string]LabelOptions{
		spectra: listed("3:4"),
		"9,8,7,1,2\n3,1,2,0,4\n1,2,9,5,3\n4,9,9,8,3\n":                     {Kind: dataset.Counts, Columns: []string{"1", "2"}}, // named by number
		"10,20,30,40\n11,25,.5,.5\n13,22,.5,.5\n10,29,.25,.75\n":           listed("2:3"),
		"wave,400,500\n1,.5,.5\n2,.25,.75\n":                               listed("1:2"),
		"700.5;800.5;1;2\n0,3;0,4;0,5;0,5\n0,1;0,2;1;0\n0,4;0,1;0,5;0,5\n": listed("1:2"),
	} {
		_, _, err := opened(t, "a.csv", content, OpenOptions{Labels: labels})
		datasettest.MustBe(t, err, dataset.ErrAmbiguous)
		datasettest.MustContain(t, err, "--header yes", "--header no")
		for header, rows := range map[dataset.Header]int{dataset.HeaderYes: strings.Count(content, "\n") - 1, dataset.HeaderNo: strings.Count(content, "\n")} {
			if content[0] == 'w' && header == dataset.HeaderNo || strings.Contains(content, ";") && header == dataset.HeaderNo {
				continue // the first line is no row
			}
			if _, got, err := opened(t, "a.csv", content, OpenOptions{Labels: labels, Header: header}); err != nil || len(got) != rows {
				t.Errorf("%q with --header %s: %d rows, error %v", content, header, len(got), err)
			}
		}
	}
}

// Rows of numbers are rows, also if they are small, sorted or alike.
func TestRowsAreNoHeader(t *testing.T) {
	for content, columns := range map[string]string{
		"1,2,3\n4,5,6\n7,8,9\n":                    "1:last",
		"5,0,3,0\n2,1,4,0\n7,0,2,9\n":              "0:1",
		"1,10,.5,.5\n2,20,.5,.5\n3,30,.25,.75\n":   "2:3",
		"1,2,3,4\n2,3,4,5\n9,10,11,12\n":           "2:last",
		"31,1.5,.25,.75\n42,1.7,.5,.5\n27,2,1,0\n": "2,3",
		"100,3,2\n1,2,1\n":                         "1:2",
		"10,20,30,40\n1,2,3,4\n2,1,4,3\n":          "2:3",
	} {
		o := OpenOptions{Labels: LabelOptions{Columns: strings.Split(columns, ",")}}
		if info, rows, err := opened(t, "a.csv", content, o); err != nil || len(rows) != strings.Count(content, "\n") || info.FeatureNames != nil {
			t.Errorf("%q: %d rows, error %v", content, len(rows), err)
		}
	}
}

// Comments before the first row are left out and counted, and the last one is the header if the rows have none.
func TestComments(t *testing.T) {
	for _, c := range []struct{ content, want, note string }{
		{"# label_a,label_b,x1,x2\n.25,.75,1,2\n1,0,2,3\n", "[x1 x2]>[a b] [1 2]>[0.25 0.75] [2 3]>[1 0]", "line 1 is the header, read without its mark #"},
		{"# label_a label_b x1\n2.5e-01 7.5e-01 1.0e+00\n1.0e+00 0.0e+00 2.0e+00\n", "[x1]>[a b] [1]>[0.25 0.75] [2]>[1 0]", "line 1 is the header, read without its mark #"},
		{"% by hand\n%label_a;x1\n1;2,5\n1;3,0\n", "[x1]>[a] [2.5]>[1] [3]>[1]", "line 2 is the header, read without its mark %"},
		{"# survey 2021\n# units: mm\na,b,label_x,label_y\n1,2,.5,.5\n", "[a b]>[x y] [1 2]>[0.5 0.5]", "2 lines of comments before it are skipped"},
		{"sep=;\n# one, two\n\n#label_a;x1\n1;2\n1;3\n", "[x1]>[a] [2]>[1] [3]>[1]", "1 line of comments before it is skipped"},
		{"#,a,label_x\n0,2,1\n", "[# a]>[x] [0 2]>[1]", "line 1 is the header"},
		{"#id,a,label_x\n0,2,1\n", "[id a]>[x] [0 2]>[1]", "line 1 is the header, read without its mark #"},
		{"\"# id\",a,label_x\n0,2,1\n", "[id a]>[x] [0 2]>[1]", "line 1 is the header, read without its mark #"},
	} {
		src, err := openFile(t, "a.csv", c.content, OpenOptions{})
		if err != nil {
			t.Errorf("%q: %v", c.content, err)
			continue
		}
		if got, notes := describe(t, src), strings.Join(errtext.Strings(src.Info().Notes), "\n"); got != c.want || !strings.Contains(notes, c.note) {
			t.Errorf("%q: %s, want %s; %s", c.content, got, c.want, notes)
		}
	}
	_, _, err := opened(t, "a.csv", "# one\n# two\na,label_x\n1,1\nx,1\n", OpenOptions{})
	datasettest.MustContain(t, err, "row 1", "line 5")
	_, _, err = opened(t, "a.csv", "a,b,label_x\n1,1,1\n# the second day\n2,1,1\n", OpenOptions{})
	datasettest.MustContain(t, err, "line 3", "this line looks like a comment")
	if _, rows, err := opened(t, "a.csv", "# .5,.5,9\n.25,.75,1\n1,0,2\n", OpenOptions{Labels: LabelOptions{Columns: []string{"0:1"}}}); len(rows) != 2 || err != nil {
		t.Errorf("a row behind a mark: %d rows, error %v", len(rows), err)
	}
}

// Empty columns without a name at the ends of lines are left out, in all lines or in some.
func TestTrailingDelimiters(t *testing.T) {
	columns := LabelOptions{Columns: []string{"2:last"}}
	for _, c := range []struct {
		content string
		labels  LabelOptions
		want    string
		cut     bool
	}{
		{"0,1,.25,.75,\n1,2,.5,.5,\n", columns, "[]>[] [0 1]>[0.25 0.75] [1 2]>[0.5 0.5]", true},
		{"a,b,label_x,label_y\n1,2,.5,.5,\n3,4,.25,.75,\n", LabelOptions{}, "[a b]>[x y] [1 2]>[0.5 0.5] [3 4]>[0.25 0.75]", true},
		{"a;b;label_x;label_y;;\n1;2;.5;.5\n3;4;.25;.75;\n;;;;\n", LabelOptions{}, "[a b]>[x y] [1 2]>[0.5 0.5] [3 4]>[0.25 0.75]", true},
		{"a\tlabel_x\t\n1\t1\t\n", LabelOptions{}, "[a]>[x] [1]>[1]", true},
		{"a,label_x,label_y,b\n1,1,0,\n2,1,0,5\n", LabelOptions{}, "", false}, // a column with a name
	} {
		src, err := openFile(t, "a.csv", c.content, OpenOptions{Labels: c.labels})
		if err != nil {
			t.Errorf("%q: %v", c.content, err)
			continue
		}
		if said := strings.Contains(strings.Join(errtext.Strings(src.Info().Notes), "\n"), "empty columns at the ends of lines are ignored"); said != c.cut {
			t.Errorf("%q: said %v", c.content, said)
		}
		if c.want == "" {
			_, err := datasettest.TryCollect(src)
			datasettest.MustContain(t, err, "the field is empty, want a number")
		} else if got := describe(t, src); got != c.want {
			t.Errorf("%q: %s, want %s", c.content, got, c.want)
		}
	}
	_, _, err := opened(t, "a.csv", "a,label_x\n"+strings.Repeat("1,1,\n", 2*sniffRecords)+"2,1,5\n", OpenOptions{})
	datasettest.MustContain(t, err, "row 200", `"5" is in column 2`, "name the column in a header")
	_, _, err = opened(t, "a.csv", "a,label_x\n1,1,1\n2,1,1\n", OpenOptions{})
	datasettest.MustContain(t, err, "found 3 columns, want 2 as in the first line")
}

// A usual name, or a class of the model, beside numbers above numbers does not make a row a header.
func TestClassesAreNoHeader(t *testing.T) {
	class := func(columns ...string) OpenOptions {
		return OpenOptions{Labels: LabelOptions{Kind: dataset.Class, Columns: columns}}
	}
	for _, name := range []string{"y", "Y", "target", "label", "label_1", "y_pos", "name", "class"} {
		content := "5.1,3.5," + name + "\n4.9,3.0,n\n4.7,3.2,m\n"
		if _, rows, err := opened(t, "a.csv", content, class("2")); len(rows) != 3 || err != nil {
			t.Errorf("%q: %d rows, error %v", content, len(rows), err)
		}
		_, _, err := opened(t, "a.csv", content, class())
		if datasettest.MustBe(t, err, dataset.ErrAmbiguous); err != nil {
			datasettest.MustContain(t, err, "--header yes", "--header no", name)
		}
		if _, rows, err := opened(t, "a.csv", "4.9,3.0,"+name+"\n"+content, class("last")); len(rows) != 4 || err != nil {
			t.Errorf("%q again: %d rows, error %v", name, len(rows), err)
		}
	}
	found, err := Inspect(datasettest.WriteFile(t, "a.csv", "5.1,3.5,y\n4.9,3.0,n\n4.7,3.2,n\n4.1,3.1,m\n4.2,3.3,m\n"), class(), importer.Options{})
	if err != nil || len(found.Readings) < 2 {
		t.Errorf("readings %+v, error %v", found, err)
	}
	for _, content := range []string{
		"400,500,label_a,label_b\n.1,.2,.5,.5\n.3,.2,.5,.5\n", "0,1,2,target\n.1,.2,.3,cat\n.4,.2,.6,dog\n", ",0,1,target\na,.1,.2,cat\nb,.3,.4,dog\n",
		"400,500,target\n.1,.2,1\n.3,.4,0\n", "1,target\ncat,3\ndog,4\n",
	} {
		o := OpenOptions{}
		if strings.Contains(content, "target") {
			o = class()
		}
		if strings.Contains(content, "1,target\ncat") {
			o.Categories = []string{"0"}
		}
		if _, rows, err := opened(t, "a.csv", content, o); len(rows) != 2 || err != nil {
			t.Errorf("%q: %d rows, error %v", content, len(rows), err)
		}
	}
}

// The first row of a file without a header may be of a class of the model.
func TestClassesOfModelAreNoHeader(t *testing.T) {
	const rows = "5.1,3.5,cat\n4.9,3.0,dog\n4.7,3.2,hen\n4.6,3.1,hen\n"
	schemaOf := func(content string, columns ...string) *dataset.Schema {
		src, err := openFile(t, "train.csv", content, OpenOptions{Labels: LabelOptions{Kind: dataset.Class, Columns: columns}})
		if err != nil {
			t.Fatal(err)
		}
		info := src.Info()
		return &dataset.Schema{Features: info.Features, Labels: info.Labels, FeatureNames: info.FeatureNames, LabelNames: info.LabelNames, LabelColumns: info.LabelColumns, Reading: info.Reading}
	}
	for _, noLabels := range []bool{true, false} {
		o := OpenOptions{NoLabels: noLabels, Labels: LabelOptions{Kind: dataset.Class}}
		src, _, err := OpenFor(datasettest.WriteFile(t, "a.csv", rows), o, schemaOf(rows, "2"))
		if err != nil {
			t.Error(err)
		} else if got := datasettest.Collect(t, src); len(got) != 4 {
			t.Errorf("no labels %v: %d rows", noLabels, len(got))
		}
		_, _, err = OpenFor(datasettest.WriteFile(t, "a.csv", rows), o, schemaOf("a,b,kind\n"+rows, "kind"))
		datasettest.MustBe(t, err, dataset.ErrAmbiguous)
		datasettest.MustContain(t, err, "--header no")
		spectra := schemaOf("400,500,kind\n"+rows, "kind")
		if src, _, err = OpenFor(datasettest.WriteFile(t, "a.csv", "400,500,kind\n"+rows), o, spectra); err != nil {
			t.Error(err)
		} else if got := datasettest.Collect(t, src); len(got) != 4 {
			t.Errorf("names that are numbers: %d rows", len(got))
		}
	}
}

// Lines that begin with the mark of a comment and are otherwise as the rows below them are not left out without a word.
func TestRowsThatBeginAsComments(t *testing.T) {
	o := OpenOptions{Drop: []string{"0"}, Labels: LabelOptions{Kind: dataset.Class, Columns: []string{"2"}}}
	for _, c := range []struct {
		content string
		line    string
		rows    int // with --header no
	}{
		{"#ff0000,2.04,cat\n#00ff00,3.1,dog\nred,1.1,cat\nred,1.2,dog\n", "line 1", 4},
		{"#1,2.04,cat\n2,3.1,dog\n3,1.1,cat\n", "line 1", 3},
		{"# by hand\n%5,2.04,y\n2,3.1,dog\n3,1.1,cat\n", "line 2", 3},
		{"//host/a,2.04,cat\n//host/b,3,cat\n\\\\host\\c,3.1,dog\n\\\\host\\d,1.1,cat\n", "line 1", 4},
		{"sep=;\n# one\n#a;2,04;cat\nb;3,1;dog\nc;1,1;cat\n", "line 3", 3},
	} {
		_, _, err := opened(t, "a.csv", c.content, o)
		datasettest.MustBe(t, err, dataset.ErrAmbiguous)
		datasettest.MustContain(t, err, c.line, "--header no", "--header yes")
		no := o
		no.Header = dataset.HeaderNo
		if _, rows, err := opened(t, "a.csv", c.content, no); len(rows) != c.rows || err != nil {
			t.Errorf("%q: %d rows, error %v", c.content, len(rows), err)
		}
		found, err := Inspect(datasettest.WriteFile(t, "a.csv", c.content), o, importer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var flags []string
		for _, r := range found.Readings {
			flags = append(flags, flagText(r.Flags))
		}
		if all := strings.Join(flags, "; "); !strings.Contains(all, "--header no") || !strings.Contains(all, "--header yes") {
			t.Errorf("%q: readings %s", c.content, all)
		}
	}
	yes := o
	yes.Labels.Columns = []string{"kind"}
	for _, yes.Header = range []dataset.Header{dataset.HeaderAuto, dataset.HeaderYes} {
		if _, rows, err := opened(t, "a.csv", "#a,1,cat\ncolor,x,kind\nred,2,cat\nred,3,dog\n", yes); len(rows) != 2 || err != nil {
			t.Errorf("a comment before a header: %d rows, error %v", len(rows), err)
		}
	}
}

// A first line with numbers and a class that no other line has is refused with both ways to read it, which inspect lists.
func TestClassOfFirstLineAlone(t *testing.T) {
	content := "1.5,2.5,q\n"
	for i := range 12 {
		content += fmt.Sprintf("%d.5,%d,%s\n", i*7%5, i*3%11, []string{"a", "b"}[i%2])
	}
	o := OpenOptions{Labels: LabelOptions{Kind: dataset.Class, Columns: []string{"2"}}}
	err := built(t, "a.csv", content, o, importer.Checks{})
	datasettest.MustContain(t, err, "which occurs in no other row: give --header yes if it is a header, --header no if it is a row")
	if !errors.Is(err, dataset.ErrAmbiguous) {
		t.Errorf("%v is not ErrAmbiguous", err)
	}
	for header, classes := range map[dataset.Header]int{dataset.HeaderYes: 2, dataset.HeaderNo: 3} {
		o.Header = header
		if names, _, err := classesOf(t, "a.csv", []byte(content), o); err != nil || len(names) != classes {
			t.Errorf("--header %s: %q, %v", header, names, err)
		}
	}
	o.Header = dataset.HeaderAuto
	found, err := Inspect(datasettest.WriteFile(t, "a.csv", content), o, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]bool{}
	for _, r := range found.Readings {
		read[flagText(r.Flags)] = r.Refused == ""
	}
	for _, header := range []string{"yes", "no"} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(read)), func(flags string) bool { return read[flags] && strings.Contains(flags, "--header "+header) }) {
			t.Errorf("no reading with --header %s: %v", header, read)
		}
	}
}
