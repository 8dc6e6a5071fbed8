package read

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"pgregory.net/rapid"
)

// TestCategories: each level is a feature in the place of the column, in the order of the levels.
func TestCategories(t *testing.T) {
	for _, c := range []struct {
		name, text  string
		o           OpenOptions
		names, rows string
	}{
		{"words", "x,color,z,label_a\n1,red,2,1\n3, blue ,4,1\n5,red,6,1\n",
			OpenOptions{CSV: CSVOptions{Categories: []string{"color"}}}, "x color=blue color=red z",
			"[1 0 1 2] [3 1 0 4] [5 0 1 6]"},
		{"numbers", "code,label_a\n10,1\n9,1\n10.0,1\n", OpenOptions{CSV: CSVOptions{Categories: []string{"code"}}},
			"code=9 code=10", "[0 1] [1 0] [0 1]"},
		{"codes", "code,label_a\n007,1\n12,1\n012x,1\n", OpenOptions{CSV: CSVOptions{Categories: []string{"code"}}},
			"code=007 code=012x code=12", "[1 0 0] [0 0 1] [0 1 0]"},
		{"decimal commas", "code;label_a\n1,5;1\n1,50;1\n-2;1\n", OpenOptions{CSV: CSVOptions{Categories: []string{"code"}}},
			"code=-2 code=1.5", "[0 1] [0 1] [1 0]"},
		{"thousands", "code;label_a\n1,234;1\n1234.0;1\n7;1\n", OpenOptions{CSV: CSVOptions{Categories: []string{"code"},
			Thousands: ','}}, "code=7 code=1234", "[0 1] [0 1] [1 0]"},
		{"two of them, by position", "a,b,label_a\nu,v,1\nw,v,1\n", OpenOptions{CSV: CSVOptions{Categories: []string{"0:1"}}},
			"a=u a=w b=v", "[1 0 1] [0 1 1]"},
		{"no header", "1,red,1\n2,blue,1\n", OpenOptions{CSV: CSVOptions{Categories: []string{"1"}},
			Labels: LabelOptions{Columns: []string{"2"}}}, " 1=blue 1=red", "[1 0 1] [2 1 0]"},
		{"a missing one dropped, with its level", "c,x,label_a\nu,1,1\n,2,1\nv,NA,1\nw,3,1\n",
			OpenOptions{CSV: CSVOptions{Categories: []string{"c"}}, Missing: dataset.Missing{Drop: true}}, "c=u c=w x",
			"[1 0 1] [0 1 3]"},
		{"a missing one filled", "c,x,label_a\nu,1,1\n,2,1\nw,NA,1\n", OpenOptions{CSV: CSVOptions{Categories: []string{"c"}},
			Missing: dataset.Missing{Fill: true, Value: 7}}, "c=u c=w x", "[1 0 1] [7 7 2] [0 1 7]"},
	} {
		src, err := OpenFile(t, "a.csv", c.text, c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var rows []string
		for _, r := range datasettest.Collect(t, src) {
			if !r.LeftOut {
				rows = append(rows, fmt.Sprint(r.Values))
			}
		}
		if names := strings.Join(src.Info().FeatureNames, " "); names != c.names || strings.Join(rows, " ") != c.rows {
			t.Errorf("%s: %s %v", c.name, names, rows)
		}
	}
}

// TestCategoriesRefused: what is no category, or may be two, is refused, and the advice works.
func TestCategoriesRefused(t *testing.T) {
	var ids strings.Builder
	ids.WriteString("id,label_a\n")
	for i := range maxLevels + 1 {
		fmt.Fprintf(&ids, "u%d,1\n", i)
	}
	for _, c := range []struct {
		name, file, text string
		o                OpenOptions
		parts            []string
	}{
		{"text that is none", "a.csv", "c,label_a\nred,1\n", OpenOptions{}, []string{"row 0", `column 0 "c"`, "line 2",
			"--categories makes a feature"}},
		{"missing", "a.csv", "c,label_a\nu,1\n?,1\n", OpenOptions{CSV: CSVOptions{Categories: []string{"c"}}},
			[]string{"row 1", `column 0 "c"`, `"?" is a missing value`}},
		{"no such column", "a.csv", "c,label_a\nu,1\n", OpenOptions{CSV: CSVOptions{Categories: []string{"d"}}},
			[]string{"--categories", `"d"`}},
		{"a label", "a.csv", "c,label_a\nu,1\n", OpenOptions{CSV: CSVOptions{Categories: []string{"label_a"}}},
			[]string{"--categories", `"label_a"`, `column 1 "label_a" (counted from 0) is not a feature`}},
		{"two spellings", "a.csv", "c,label_a\n7,1\n007,1\n", OpenOptions{CSV: CSVOptions{Categories: []string{"c"}}},
			[]string{"row 1", "line 3", `"007", and "7" in row 0, are one level`, "write both as 7"}},
		{"an identifier", "a.csv", ids.String(), OpenOptions{CSV: CSVOptions{Categories: []string{"id"}}},
			[]string{"more than 4096 levels", "--drop", fmt.Sprint("row ", maxLevels)}},
		{"no value", "a.csv", "c,x,label_a\n,1,1\n,2,1\n", OpenOptions{CSV: CSVOptions{Categories: []string{"c"}},
			Missing: dataset.Missing{Fill: true}}, []string{`"c" has no value`}},
		{"another kind of file", "a.libsvm", "1 1:2\n", OpenOptions{CSV: CSVOptions{Categories: []string{"0"}}},
			[]string{"--categories", "CSV"}},
	} {
		_, err := OpenFile(t, c.file, c.text, c.o)
		if err == nil {
			src, _ := OpenFile(t, c.file, c.text, c.o)
			err = src.Scan(func(*dataset.Row) error { return nil })
		}
		datasettest.MustContain(t, err, c.parts...)
	}
	if _, err := OpenFile(t, "a.csv", ids.String(), OpenOptions{Drop: []string{"id"}, FeatureColumns: nil}); err == nil ||
		!strings.Contains(err.Error(), "features") {
		t.Errorf("without its only feature: %v", err)
	}
}

// modelOf is the schema of a model that is trained on a file.
func modelOf(t *testing.T, text string, o OpenOptions) *dataset.Schema {
	t.Helper()
	src, err := OpenFile(t, "train.csv", text, o)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := importer.Build(src, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	return &dataset.Schema{
		Features: m.Features, Labels: m.Labels, FeatureNames: m.FeatureNames, LabelNames: m.LabelNames,
		LabelColumns: m.LabelColumns, Reading: m.Reading,
	}
}

// TestLevelsOfModels: a later file has the model's levels, and others are refused or ignored.
func TestLevelsOfModels(t *testing.T) {
	s := modelOf(t, "x,c,k,label_a\n1,red,10,1\n2,blue,9,1\n3,green,10,1\n",
		OpenOptions{CSV: CSVOptions{Categories: []string{"c", "k"}}})
	src, _, err := OpenForModel(t, "new.csv", "k,x,c\n10.0,5,green\n9,6,red\n", OpenOptions{NoLabels: true}, s)
	if err != nil {
		t.Fatal(err)
	}
	if rows := datasettest.Collect(t, src); fmt.Sprint(rows[0].Values, rows[1].Values) != "[5 0 1 0 0 1] [6 0 0 1 1 0]" {
		t.Errorf("%v", rows)
	}
	const unseen = "k,x,c\n10,5,green\n9,6,violet\n11,6,violet\n"
	src, _, err = OpenForModel(t, "new.csv", unseen, OpenOptions{NoLabels: true}, s)
	if err == nil {
		err = src.Scan(func(*dataset.Row) error { return nil })
	}
	datasettest.MustContain(t, err, "new.csv", "row 1", `column 2 "c"`, "line 3",
		`"violet" is not a level of this category`, "3 (\"blue\", \"green\", \"red\")", "--unseen ignore")
	var told []string
	ignore := OpenOptions{NoLabels: true, CSV: CSVOptions{Unseen: func(row int, category, level string) {
		told = append(told, fmt.Sprintf("%d %s %s", row, category, level))
	}}}
	if src, _, err = OpenForModel(t, "new.csv", unseen, ignore, s); err != nil {
		t.Fatal(err)
	}
	if rows := datasettest.Collect(t, src); fmt.Sprint(rows[1].Values, rows[2].Values) != "[6 0 0 0 1 0] [6 0 0 0 0 0]" ||
		!slices.Equal(told, []string{"1 c violet", "2 k 11", "2 c violet"}) {
		t.Errorf("%v, told %q", rows, told)
	}
	_, _, err = OpenForModel(t, "new.csv", "k,x\n10,5\n", OpenOptions{NoLabels: true}, s)
	datasettest.MustContain(t, err, "missing from the file: 3", "c=blue")
	src, _, err = OpenForModel(t, "new.csv", "k=9,k=10,x,c=red,c=blue,c=green\n0,1,5,0,0,1\n",
		OpenOptions{NoLabels: true}, s)
	if err != nil {
		t.Fatal(err)
	}
	if rows := datasettest.Collect(t, src); fmt.Sprint(rows[0].Values) != "[5 0 1 0 0 1]" {
		t.Errorf("with a column for each level: %v", rows)
	}
	s = modelOf(t, "1,red,1\n2,blue,1\n", OpenOptions{CSV: CSVOptions{Categories: []string{"1"}},
		Labels: LabelOptions{Columns: []string{"2"}}})
	if src, _, err = OpenForModel(t, "new.csv", "3,blue,1\n", OpenOptions{}, s); err != nil {
		t.Fatal(err)
	}
	if rows := datasettest.Collect(t, src); fmt.Sprint(rows[0].Values, rows[0].Labels) != "[3 1 0] [1]" {
		t.Errorf("without headers: %v", rows)
	}
}

// TestCategoriesAreColumns: a file of categories has the digest of the file with a column for
// each level.
func TestCategoriesAreColumns(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		words := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-zäß 漢]{1,5}x`), 1, 5, strings.TrimSpace).Draw(r, "words")
		for i := range words {
			words[i] = strings.TrimSpace(words[i])
		}
		picks := rapid.SliceOfN(rapid.IntRange(0, len(words)-1), 1, 30).Draw(r, "rows")
		levels := slices.Clone(words)
		levels = slices.DeleteFunc(levels, func(w string) bool { return !slices.Contains(picks, slices.Index(words, w)) })
		slices.Sort(levels)
		var short, long strings.Builder
		short.WriteString("x,w,label_a\n")
		long.WriteString("x")
		for _, l := range levels {
			long.WriteString(",w=" + l)
		}
		long.WriteString(",label_a\n")
		for i, p := range picks {
			fmt.Fprintf(&short, "%d,%s,1\n", i, words[p])
			fmt.Fprint(&long, i)
			for _, l := range levels {
				if l == words[p] {
					long.WriteString(",1")
				} else {
					long.WriteString(",0")
				}
			}
			long.WriteString(",1\n")
		}
		digest := func(text string, categories ...string) (string, []string) {
			src, err := OpenFile(t, "a.csv", text, OpenOptions{CSV: CSVOptions{Categories: categories}})
			if err != nil {
				r.Fatal(err)
			}
			m, _, err := importer.Build(src, importer.Options{})
			if err != nil {
				r.Fatal(err)
			}
			return m.Digest(), m.FeatureNames
		}
		a, named := digest(short.String(), "w")
		b, listed := digest(long.String())
		if a != b || !slices.Equal(named, listed) {
			r.Fatalf("digest %s of %q, %s of %q", a, named, b, listed)
		}
	})
}
