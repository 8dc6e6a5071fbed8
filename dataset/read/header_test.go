package read

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// Opened reads a whole file.
func Opened(t *testing.T, name, content string, o OpenOptions) (dataset.Info, []dataset.Row, error) {
	t.Helper()
	src, err := OpenFile(t, name, content, o)
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
		// named by number
		"9,8,7,1,2\n3,1,2,0,4\n1,2,9,5,3\n4,9,9,8,3\n": {Kind: dataset.Counts,
			Columns: []string{"1", "2"}},
		"10,20,30,40\n11,25,.5,.5\n13,22,.5,.5\n10,29,.25,.75\n":           listed("2:3"),
		"wave,400,500\n1,.5,.5\n2,.25,.75\n":                               listed("1:2"),
		"700.5;800.5;1;2\n0,3;0,4;0,5;0,5\n0,1;0,2;1;0\n0,4;0,1;0,5;0,5\n": listed("1:2"),
	} {
		_, _, err := Opened(t, "a.csv", content, OpenOptions{Labels: labels})
		datasettest.MustBe(t, err, dataset.ErrAmbiguous)
		datasettest.MustContain(t, err, "--header yes", "--header no")
		for header, rows := range map[dataset.Header]int{dataset.HeaderYes: strings.Count(content, "\n") - 1,
			dataset.HeaderNo: strings.Count(content, "\n")} {
			if content[0] == 'w' && header == dataset.HeaderNo || strings.Contains(content, ";") && header == dataset.HeaderNo {
				continue // the first line is no row
			}
			if _, got, err := Opened(t, "a.csv", content,
				OpenOptions{Labels: labels, CSV: CSVOptions{Header: header}}); err != nil || len(got) != rows {
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
		if info, rows, err := Opened(t, "a.csv", content, o); err != nil || len(rows) != strings.Count(content, "\n") ||
			info.FeatureNames != nil {
			t.Errorf("%q: %d rows, error %v", content, len(rows), err)
		}
	}
}

// Comments before the first row are left out and counted, and the last one is the header if the rows have none.
func TestComments(t *testing.T) {
	for _, c := range []struct{ content, want, note string }{
		{"# label_a,label_b,x1,x2\n.25,.75,1,2\n1,0,2,3\n", "[x1 x2]>[a b] [1 2]>[0.25 0.75] [2 3]>[1 0]",
			"line 1 is the header, read without its mark #"},
		{"# label_a label_b x1\n2.5e-01 7.5e-01 1.0e+00\n1.0e+00 0.0e+00 2.0e+00\n", "[x1]>[a b] [1]>[0.25 0.75] [2]>[1 0]",
			"line 1 is the header, read without its mark #"},
		{"% by hand\n%label_a;x1\n1;2,5\n1;3,0\n", "[x1]>[a] [2.5]>[1] [3]>[1]",
			"line 2 is the header, read without its mark %"},
		{"# survey 2021\n# units: mm\na,b,label_x,label_y\n1,2,.5,.5\n", "[a b]>[x y] [1 2]>[0.5 0.5]",
			"2 lines of comments before it are skipped"},
		{"sep=;\n# one, two\n\n#label_a;x1\n1;2\n1;3\n", "[x1]>[a] [2]>[1] [3]>[1]",
			"1 line of comments before it is skipped"},
		{"#,a,label_x\n0,2,1\n", "[# a]>[x] [0 2]>[1]", "line 1 is the header"},
		{"#id,a,label_x\n0,2,1\n", "[id a]>[x] [0 2]>[1]", "line 1 is the header, read without its mark #"},
		{"\"# id\",a,label_x\n0,2,1\n", "[id a]>[x] [0 2]>[1]", "line 1 is the header, read without its mark #"},
	} {
		src, err := OpenFile(t, "a.csv", c.content, OpenOptions{})
		if err != nil {
			t.Errorf("%q: %v", c.content, err)
			continue
		}
		if got, notes := Describe(t, src), strings.Join(errtext.Strings(src.Info().Notes), "\n"); got != c.want ||
			!strings.Contains(notes, c.note) {
			t.Errorf("%q: %s, want %s; %s", c.content, got, c.want, notes)
		}
	}
	_, _, err := Opened(t, "a.csv", "# one\n# two\na,label_x\n1,1\nx,1\n", OpenOptions{})
	datasettest.MustContain(t, err, "row 1", "line 5")
	_, _, err = Opened(t, "a.csv", "a,b,label_x\n1,1,1\n# the second day\n2,1,1\n", OpenOptions{})
	datasettest.MustContain(t, err, "line 3", "this line looks like a comment")
	if _, rows, err := Opened(t, "a.csv", "# .5,.5,9\n.25,.75,1\n1,0,2\n",
		OpenOptions{Labels: LabelOptions{Columns: []string{"0:1"}}}); len(rows) != 2 || err != nil {
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
		{"a,b,label_x,label_y\n1,2,.5,.5,\n3,4,.25,.75,\n", LabelOptions{}, "[a b]>[x y] [1 2]>[0.5 0.5] [3 4]>[0.25 0.75]",
			true},
		{"a;b;label_x;label_y;;\n1;2;.5;.5\n3;4;.25;.75;\n;;;;\n", LabelOptions{},
			"[a b]>[x y] [1 2]>[0.5 0.5] [3 4]>[0.25 0.75]", true},
		{"a\tlabel_x\t\n1\t1\t\n", LabelOptions{}, "[a]>[x] [1]>[1]", true},
		{"a,label_x,label_y,b\n1,1,0,\n2,1,0,5\n", LabelOptions{}, "", false}, // a column with a name
	} {
		src, err := OpenFile(t, "a.csv", c.content, OpenOptions{Labels: c.labels})
		if err != nil {
			t.Errorf("%q: %v", c.content, err)
			continue
		}
		if said := strings.Contains(strings.Join(errtext.Strings(src.Info().Notes), "\n"),
			"empty columns at the ends of lines are ignored"); said != c.cut {
			t.Errorf("%q: said %v", c.content, said)
		}
		if c.want == "" {
			_, err := datasettest.TryCollect(src)
			datasettest.MustContain(t, err, "the field is empty, want a number")
		} else if got := Describe(t, src); got != c.want {
			t.Errorf("%q: %s, want %s", c.content, got, c.want)
		}
	}
	_, _, err := Opened(t, "a.csv", "a,label_x\n"+strings.Repeat("1,1,\n", 2*sniffRecords)+"2,1,5\n", OpenOptions{})
	datasettest.MustContain(t, err, "row 200", `"5" is in column 2`, "name the column in a header")
	_, _, err = Opened(t, "a.csv", "a,label_x\n1,1,1\n2,1,1\n", OpenOptions{})
	datasettest.MustContain(t, err, "found 3 columns, want 2 as in the first line")
}

// The first row of a file without a header may be of a class of the model.
func TestClassesOfModelAreNoHeader(t *testing.T) {
	const rows = "5.1,3.5,cat\n4.9,3.0,dog\n4.7,3.2,hen\n4.6,3.1,hen\n"
	schemaOf := func(content string, columns ...string) *dataset.Schema {
		src, err := OpenFile(t, "train.csv", content,
			OpenOptions{Labels: LabelOptions{Kind: dataset.Class, Columns: columns}})
		if err != nil {
			t.Fatal(err)
		}
		info := src.Info()
		return &dataset.Schema{Features: info.Features, Labels: info.Labels, FeatureNames: info.FeatureNames,
			LabelNames: info.LabelNames, LabelColumns: info.LabelColumns, Reading: info.Reading}
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
