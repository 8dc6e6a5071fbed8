package read

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/parquet"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"pgregory.net/rapid"
)

// parquetOf writes a table of numbers and texts.
func parquetOf(columns []parquet.WriteColumn, rows int, cell func(row, column int) any) []byte {
	var b bytes.Buffer
	w := parquet.NewWriter(&b, columns)
	for row := range rows {
		for i := range columns {
			switch v := cell(row, i).(type) {
			case int64:
				w.Int(i, v)
			case float64:
				w.Number(i, v)
			case string:
				w.Text(i, v)
			}
		}
		if err := w.Row(); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// parquet writes the table with a type for each column that has all of its values.
func (t *drawnTable) parquet(r *rapid.T) *written {
	w := &written{name: "a.parquet", o: t.options(), refused: -1}
	s := &spelling{r: r, refused: -1}
	var columns []parquet.WriteColumn
	var cells [][]any
	add := func(name string, kind parquet.Kind, cell func(row int) any) {
		columns = append(columns, parquet.WriteColumn{Name: name, Kind: kind})
		all := make([]any, len(t.features))
		for row := range all {
			all[row] = cell(row)
		}
		cells = append(cells, all)
	}
	numbers := func(name string, at func(row int) float64) {
		single, whole := true, true
		for row := range t.features {
			v := at(row)
			single = single && (float64(float32(v)) == v || v != v)
			whole = whole && v == math.Trunc(v) && math.Abs(v) < 1<<53
		}
		switch kind := rapid.IntRange(0, 3).Draw(r, "type"); {
		case kind == 0 && single:
			add(name, parquet.Float, func(row int) any { return at(row) })
		case kind == 1 && whole:
			add(name, parquet.Int, func(row int) any { return int64(at(row)) })
		case kind == 2: // numbers as texts
			add(name, parquet.Text, func(row int) any { return s.number(at(row)) })
		default:
			add(name, parquet.Double, func(row int) any { return at(row) })
		}
	}
	identities := func(name string, c *identityColumn) {
		most, missing := c.largest()
		if c.numbers != nil && !missing && most < math.MaxInt64 && rapid.Bool().Draw(r, "whole") {
			add(name, parquet.Int, func(row int) any { return int64(c.numbers[row]) })
			return
		}
		add(name, parquet.Text, func(row int) any { return s.identity(c, row) })
	}
	for k := range t.names {
		numbers(fmt.Sprintf("f %d", k), func(row int) float64 { return t.features[row][k] })
	}
	if t.class != nil {
		identities("class", t.class)
	} else {
		for k := range t.labels[0] {
			numbers(fmt.Sprintf("label_%d", k), func(row int) float64 { return t.labels[row][k] })
		}
	}
	if t.groups != nil {
		w.o.Beside.Groups = "person"
		identities("person", t.groups)
	}
	w.content = parquetOf(columns, len(t.features), func(row, column int) any { return cells[column][row] })
	w.refused = s.refused
	return w
}

// arff writes the table, dense or sparse.
func (t *drawnTable) arff(r *rapid.T) *written {
	w := &written{name: "a.arff", o: t.options(), refused: -1}
	s := &spelling{r: r, refused: -1}
	quoted := func(text string) string {
		if text == "" {
			return "?"
		}
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
	}
	var b strings.Builder
	b.WriteString("% a table\n@relation 'the table'\n")
	for i, name := range t.columnNames() {
		kind := "numeric"
		if name == "person" && t.groups != nil || i == len(t.names) && t.class != nil {
			kind = "string"
		}
		fmt.Fprintf(&b, "@attribute %s %s\n", quoted("f"+strconv.Itoa(i)), kind)
	}
	text := b.String()
	for i, name := range t.columnNames()[len(t.names):] { // features may have any name
		text = strings.Replace(text, fmt.Sprintf("'f%d'", len(t.names)+i), quoted(name), 1)
	}
	b.Reset()
	b.WriteString(text + "@data\n")
	for row := range t.features {
		var cells []string
		for _, v := range t.features[row] {
			cells = append(cells, quoted(s.number(v)))
		}
		if t.class != nil {
			cells = append(cells, quoted(s.identity(t.class, row)))
		} else {
			for _, v := range t.labels[row] {
				cells = append(cells, quoted(s.number(v)))
			}
		}
		if t.groups != nil {
			cells = append(cells, quoted(s.identity(t.groups, row)))
		}
		if rapid.Bool().Draw(r, "sparse") {
			var entries []string
			for i, cell := range cells {
				numeric := i < len(t.names) || t.class == nil && i < len(t.names)+len(t.labels[row])
				if !numeric || cell != "'0'" {
					entries = append(entries, fmt.Sprintf("%d %s", i, cell))
				}
			}
			fmt.Fprintf(&b, "{%s}\n", strings.Join(entries, ", "))
			continue
		}
		b.WriteString(strings.Join(cells, ",") + "\n")
	}
	if t.groups != nil {
		w.o.Beside.Groups = "person"
	}
	w.content, w.refused = []byte(b.String()), s.refused
	return w
}

// digestOfFile imports a file.
func digestOfFile(t *testing.T, path string, o OpenOptions) string {
	t.Helper()
	src, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := importer.Build(src, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return digestOf(m)
}

var arrowFile = filepath.Join("..", "parquet", "testdata", "zstd.parquet")

// TestParquetColumns reads columns of a file of pyarrow, and refuses others by name.
func TestParquetColumns(t *testing.T) {
	labels := LabelOptions{Kind: dataset.Bounded, Columns: []string{"single"}}
	_, err := Open(arrowFile, OpenOptions{Labels: labels})
	datasettest.MustContain(t, err, arrowFile, `column 16 "when"`, "timestamps", "--drop when", "astype")
	datasettest.MustBe(t, err, dataset.ErrFormat)
	o := OpenOptions{Labels: labels, Missing: dataset.Missing{Drop: true}, Columns: []string{"real", "single",
		"list_0:list_1", "point.x", "cents"}}
	src, err := Open(arrowFile, o)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(src.Info().FeatureNames, " "); got != "real cents list_0 list_1 point.x" {
		t.Errorf("features %s", got)
	}
	for i, r := range datasettest.Collect(t, src) {
		x := float64(i)
		if r.LeftOut != (i%13 == 0) {
			t.Fatalf("row %d left out: %v", i, r.LeftOut)
		}
		if want := []float64{x/2 - 20, (x*125 - 500) / 100, x, x + .25, x}; !slices.Equal(r.Values, want) ||
			!r.LeftOut && r.Labels[0] != x/4 {
			t.Fatalf("row %d: %v %v, want %v", i, r.Values, r.Labels, want)
		}
	}
	o.Labels.Columns = []string{"int"}
	_, err = Open(arrowFile, o)
	datasettest.MustContain(t, err, "--columns", `"int"`)
	o = OpenOptions{Labels: LabelOptions{Kind: dataset.Class, Columns: []string{"text"}},
		Missing: dataset.Missing{Drop: true},
		Columns: []string{"word", "text", "real", "bool"},
		CSV:     CSVOptions{RowNames: "word", Categories: []string{"bool"}}}
	if src, err = Open(arrowFile, o); err != nil {
		t.Fatal(err)
	}
	rows, info := datasettest.Collect(t, src), src.Info()
	if fmt.Sprint(info.LabelNames) != "[kind 0 kind 1 kind 2 kind 3 kind 4]" || rows[1].Name != "common prefix 00001" ||
		fmt.Sprint(info.FeatureNames) != "[real bool=False bool=True]" || fmt.Sprint(rows[3].Values) != "[-18.5 0 1]" {
		t.Errorf("%v, %+v", info.LabelNames, rows[3])
	}
	_, err = Open(arrowFile, OpenOptions{Columns: []string{"real", "label"}})
	datasettest.MustContain(t, err, "--columns", `no column "label"`)
}

// TestParquetFolder: a folder of files is one dataset, in the order of their names, and has the digest of a CSV file.
func TestParquetFolder(t *testing.T) {
	columns := []parquet.WriteColumn{{Name: "x", Kind: parquet.Double}, {Name: "kind", Kind: parquet.Text},
		{Name: "label_a", Kind: parquet.Float}, {Name: "label_b", Kind: parquet.Float}}
	kinds, csv := []string{"red", "green", ""}, "x,kind,label_a,label_b\n"
	dir := t.TempDir()
	for part := range 3 {
		b := parquetOf(columns, 5, func(row, column int) any {
			return []any{float64(part*5+row) / 3, kinds[(part+row)%3], .25, .75}[column]
		})
		for row := range 5 {
			csv += fmt.Sprintf("%v,%s,.25,.75\n", float64(part*5+row)/3, kinds[(part+row)%3])
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("part-%d.parquet", part)), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "_SUCCESS"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := OpenOptions{Missing: dataset.Missing{Drop: true}, CSV: CSVOptions{Categories: []string{"kind"}}}
	if a, b := digestOfFile(t, dir, o), digestOfFile(t, datasettest.WriteFile(t, "a.csv", csv), o); a != b {
		t.Errorf("the folder has %s, the CSV file %s", a, b)
	}
	other := parquetOf(columns[:3], 1, func(_, column int) any { return []any{1.5, "red", .5}[column] })
	if err := os.WriteFile(filepath.Join(dir, "part-9.parquet"), other, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir, o)
	datasettest.MustContain(t, err, dir, "part-9.parquet", "3 columns, want 4")
	_, err = Open(t.TempDir(), o)
	datasettest.MustContain(t, err, "folder", ".parquet")
}

// TestParquetMemory: memory does not grow with the rows of a file, and columns that are left out are not read.
func TestParquetMemory(t *testing.T) {
	columns := []parquet.WriteColumn{{Name: "x", Kind: parquet.Double}, {Name: "y", Kind: parquet.Double},
		{Name: "label_a", Kind: parquet.Float}, {Name: "label_b", Kind: parquet.Float}}
	const rows = 1 << 19
	path := datasettest.WriteFile(t, "a.parquet", string(parquetOf(columns, rows, func(row, column int) any {
		return []any{math.Sin(float64(row)), math.Cos(float64(row)), .25, .75}[column]
	})))
	n := 0
	allocs.AtMost(t, 16<<20, "4 columns of 524,288 rows", func() {
		src, err := Open(path, OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := src.Scan(func(r *dataset.Row) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
	})
	if n != rows {
		t.Errorf("%d rows", n)
	}
}

const emotions = `@relation 'emotions: -C 2'
@attribute sad {0,1}
@attribute calm {0,1}
@attribute loud numeric
@attribute mode {major,minor}
@data
1,0,2.5,major
{0 1, 1 1, 3 minor}
0,1,-1,minor
`

// TestLabelsOfARFF: labels are the columns of MEKA's relation or Mulan's list. Nominal attributes become categories.
func TestLabelsOfARFF(t *testing.T) {
	csv := datasettest.WriteFile(t, "a.csv", "label_sad,label_calm,loud,mode\n1,0,2.5,major\n1,1,0,minor\n0,1,-1,minor\n")
	o := OpenOptions{Labels: LabelOptions{Kind: dataset.Counts}}
	like := o
	like.CSV.Categories = []string{"mode"}
	want := digestOfFile(t, csv, like)
	meka := datasettest.WriteFile(t, "a.arff", emotions)
	if got := digestOfFile(t, meka, o); got != want {
		t.Errorf("MEKA: %s, want %s", got, want)
	}
	mulan := datasettest.WriteFile(t, "b.arff", strings.Replace(emotions, ": -C 2", "", 1))
	if _, err := Open(mulan, o); err == nil {
		t.Error("a file without labels was read")
	}
	list := strings.TrimSuffix(mulan, "arff") + "xml"
	const names = `<labels xmlns="http://mulan.sourceforge.net/labels"><label name="calm"/><label name="sad"/></labels>`
	if err := os.WriteFile(list, []byte(names), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := digestOfFile(t, mulan, o); got != want {
		t.Errorf("Mulan: %s, want %s", got, want)
	}
	src, err := Open(mulan, o)
	if err != nil {
		t.Fatal(err)
	}
	if notes := fmt.Sprint(src.Info().Notes); !strings.Contains(notes, "the labels are listed in "+list) {
		t.Errorf("notes %s", notes)
	}
	if names := src.Info().LabelNames; !slices.Equal(names, []string{"sad", "calm"}) {
		t.Errorf("labels %q", names)
	}
	o.Arrays.LabelsFile = datasettest.WriteFile(t, "c.xml", `<labels><label name="angry"/></labels>`)
	_, err = Open(mulan, o)
	datasettest.MustContain(t, err, "c.xml", `"angry"`)
	_, err = Open(datasettest.WriteFile(t, "d.arff", strings.Replace(emotions, "-1,minor", "x,minor", 1)), OpenOptions{
		Labels: LabelOptions{Kind: dataset.Counts}})
	if err == nil {
		src, _ = Open(datasettest.WriteFile(t, "d.arff", strings.Replace(emotions, "-1,minor", "x,minor", 1)),
			OpenOptions{Labels: LabelOptions{Kind: dataset.Counts}})
		err = src.Scan(func(*dataset.Row) error { return nil })
	}
	datasettest.MustContain(t, err, "d.arff", "row 2", "line 9", `"loud"`)
}

// TestAnswersOfARFF: labels with the levels no and yes, or false and true, are 0 and 1. Features with these levels are
// categories, and classes keep their names.
func TestAnswersOfARFF(t *testing.T) {
	text := strings.NewReplacer("sad {0,1}", "sad {no,Yes}", "calm {0,1}", "calm {False,True}", "{0 1, 1 1, 3 minor}",
		"{0 Yes, 1 True, 3 minor}", "1,0,2.5", "Yes,False,2.5", "0,1,-1", "no,True,-1").Replace(emotions)
	path := datasettest.WriteFile(t, "a.arff", text)
	o := OpenOptions{Labels: LabelOptions{Kind: dataset.Counts}}
	want := digestOfFile(t, datasettest.WriteFile(t, "b.arff", emotions), o)
	if got := digestOfFile(t, path, o); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	src, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	if notes := fmt.Sprint(src.Info().Notes); !strings.Contains(notes, "the labels are listed in the relation's option -C") {
		t.Errorf("notes %s", notes)
	}
	info := src.Info()
	schema := &dataset.Schema{Features: info.Features, Labels: info.Labels, FeatureNames: info.FeatureNames,
		LabelNames: info.LabelNames, LabelColumns: info.LabelColumns, Reading: info.Reading}
	rows, _, err := OpenFor(path, o, schema)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"[1 0]", "[0.5 0.5]", "[0 1]"} {
		if got := fmt.Sprint(datasettest.Collect(t, rows)[i].Labels); got != want {
			t.Errorf("for a model, row %d: labels %s, want %s", i, got, want)
		}
	}
	src, err = Open(path, OpenOptions{Labels: LabelOptions{Kind: dataset.Class, Columns: []string{"sad"}}})
	if err != nil {
		t.Fatal(err)
	}
	if i := src.Info(); fmt.Sprint(i.LabelNames) != "[Yes no]" || len(i.FeatureNames) != 5 || len(i.Notes) == 0 ||
		strings.Contains(fmt.Sprint(i.Notes), "option -C") {
		t.Errorf("classes %q, features %q, notes %q", i.LabelNames, i.FeatureNames, i.Notes)
	}
}

// TestTableForModel: a file for a model is read by names, whichever kind the model's file had.
func TestTableForModel(t *testing.T) {
	o := OpenOptions{Labels: LabelOptions{Kind: dataset.Counts}}
	src, err := Open(datasettest.WriteFile(t, "a.arff", emotions), o)
	if err != nil {
		t.Fatal(err)
	}
	info := src.Info()
	schema := &dataset.Schema{Features: info.Features, Labels: info.Labels, FeatureNames: info.FeatureNames,
		LabelNames: info.LabelNames, LabelColumns: info.LabelColumns, Reading: info.Reading}
	columns := []parquet.WriteColumn{{Name: "mode", Kind: parquet.Text}, {Name: "extra", Kind: parquet.Text},
		{Name: "loud", Kind: parquet.Int}}
	path := datasettest.WriteFile(t, "a.parquet", string(parquetOf(columns, 2, func(row, column int) any {
		return []any{[]string{"minor", "major"}[row], "x", int64(row)}[column]
	})))
	rows, _, err := OpenFor(path, OpenOptions{NoLabels: true, Drop: []string{"extra"}}, schema)
	if err != nil {
		t.Fatal(err)
	}
	got := datasettest.Collect(t, rows)
	if fmt.Sprint(got[0].Values, got[1].Values) != "[0 0 1] [1 1 0]" {
		t.Errorf("%v %v of %v", got[0].Values, got[1].Values, info.FeatureNames)
	}
}

// TestParquetPattern: a pattern names the files of one dataset, in the order of their names. It has the digest of a
// file with the same samples. A folder whose name looks like a pattern is a folder.
func TestParquetPattern(t *testing.T) {
	columns := []parquet.WriteColumn{{Name: "x", Kind: parquet.Double}, {Name: "label_a", Kind: parquet.Float},
		{Name: "label_b", Kind: parquet.Float}}
	rowsOf := func(columns []parquet.WriteColumn, numbers ...int) string {
		return string(parquetOf(columns, len(numbers), func(row, column int) any {
			return []any{float64(numbers[row]) / 3, .25, .75, 1.0}[column]
		}))
	}
	dir := filepath.Join(t.TempDir(), "a[1]*")
	for name, content := range map[string]string{
		"part-10.parquet": rowsOf(columns, 1, 2, 3), "part-2.parquet": rowsOf(columns, 4, 5),
		"part-3.parquet": rowsOf(columns, 6),
		"b/1.parquet":    rowsOf(columns, 1, 2), "c/1.parquet": rowsOf(columns, 3, 4, 5), "d/0.parquet": rowsOf(columns, 6),
		".part-1.parquet": "", "_part-1.parquet": "", "other.csv": "x\n1\n",
		"wrong/a.parquet": rowsOf(columns, 1), "wrong/b.parquet": rowsOf(columns[:2], 1),
		"more/a.parquet": rowsOf(columns, 1), "more/b.parquet": rowsOf(append(columns[:3:3], columns[0]), 1),
		"damaged/a.parquet": rowsOf(columns, 1), "damaged/b.parquet": "PAR1PAR1",
		"plain[1].parquet": rowsOf(columns, 1, 2, 3, 4, 5, 6), "plain1.parquet": rowsOf(columns, 9),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := digestOfFile(t, datasettest.WriteFile(t, "one.parquet", rowsOf(columns, 1, 2, 3, 4, 5, 6)), OpenOptions{})
	for _, pattern := range []string{"part-*.parquet", "part-*", "*part-*.parquet", "[p]art-?*.parquet",
		"plain[1].parquet"} {
		if got := digestOfFile(t, filepath.Join(dir, pattern), OpenOptions{}); got != want {
			t.Errorf("%s has the digest %s, one file %s", pattern, got, want)
		}
	}
	t.Chdir(dir)
	for _, pattern := range []string{"[b-d]/*.parquet", "part-*.parquet"} {
		if got := digestOfFile(t, pattern, OpenOptions{Format: "parquet"}); got != want {
			t.Errorf("%s has the digest %s, one file %s", pattern, got, want)
		}
	}
	for pattern, says := range map[string][]string{
		"wrong/*.parquet":     {"wrong/*.parquet: b.parquet differs from a.parquet", `no column "label_b"`, "2 columns, want 3"},
		"more/*.parquet":      {"b.parquet differs from a.parquet", "4 columns, want 3"},
		"dama*/*.parquet":     {"dama*/*.parquet", "b.parquet"},
		"none-*.parquet":      {"none-*.parquet: no file matches this pattern"},
		"none/*/none-?":       {"none/*/none-?: no file matches this pattern"},
		"*":                   {"*: the pattern matches", "not a .parquet file"},
		"other*.csv":          {"other*.csv: the pattern matches other.csv", "not a .parquet file"},
		"[.parquet":           {"[.parquet: this is no pattern"},
		"_part*1[02].parquet": {"no file matches"},
	} {
		_, err := Open(pattern, OpenOptions{})
		datasettest.MustContain(t, err, says...)
	}
	_, err := Open("none-*.parquet", OpenOptions{})
	if _, missing := Size("none-*.parquet"); !errors.Is(err, fs.ErrNotExist) || !errors.Is(missing, fs.ErrNotExist) {
		t.Errorf("%v, %v: want fs.ErrNotExist", err, missing)
	}
	_, err = Open("part-*.parquet", OpenOptions{Format: "csv"})
	datasettest.MustContain(t, err, "--data-format csv", ".parquet files")
	if files := FilesOf("part-*"); fmt.Sprint(files) != "[part-10.parquet part-2.parquet part-3.parquet]" {
		t.Errorf("the files are %q", files)
	}
}
