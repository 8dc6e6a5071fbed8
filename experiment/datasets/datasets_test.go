package datasets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/external"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/parquet"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/dataset/write"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// newReader returns a reader of a spec in a folder with data files, and the notes that it prints. It refuses flags
// about the header.
func newReader(t *testing.T, text string) (r *Reader, dir string, notes *[]string, mistakes error) {
	t.Helper()
	dir, notes = t.TempDir(), new([]string)
	for name, rows := range map[string]int{"first.csv": 20, "second.csv": 24} {
		var b strings.Builder
		if err := write.WriteCSV(&b, generate.Artificial(rows, 1), importer.Options{}); err != nil {
			t.Fatal(err)
		}
		writeText(t, dir, name, b.String())
	}
	r = &Reader{
		File: filepath.Join(dir, "e.yaml"),
		Flags: func(flags []string) (Opener, error) {
			if len(flags) > 0 && flags[0] == "--header=maybe" {
				return nil, errors.New("--header: maybe is no answer")
			}
			return func(path string) (dataset.Source, importer.Checks, error) {
				src, err := read.Open(path, read.OpenOptions{})
				return src, importer.Checks{}, err
			}, nil
		},
		Options: func(checks importer.Checks) importer.Options { return importer.Options{Checks: checks} },
		Note:    func(text string) { *notes = append(*notes, text) },
	}
	r.Spec, mistakes = experiment.Parse(t.Context(), r.File, []byte(text))
	return r, dir, notes, mistakes
}

func writeText(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLoadPattern: a dataset may be a pattern. One that matches nothing is a file that does not exist.
func TestLoadPattern(t *testing.T) {
	spec := "name: e\nmissing: skip\ndatasets: [{file: 'part-*.parquet', name: parts}, {file: 'none-*.parquet', name: no}]\n" +
		"folds: 2\nmethods: [aa-knn]\n"
	r, dir, notes, err := newReader(t, spec)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"part-1.parquet", "part-2.parquet"} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := write.WriteParquet(f, generate.Artificial(20, uint64(i+1)), importer.Options{}); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	sets, layout, err := r.Load(t.Context(), false)
	if err != nil || len(sets) != 1 || sets[0].Data.Manifest.Rows != 40 || !slices.Equal(layout.Skipped, []string{"no"}) ||
		len(*notes) != 1 {
		t.Errorf("%d datasets, skipped %q, notes %q, %v", len(sets), layout.Skipped, *notes, err)
	}
	r.Spec.SkipMissing = false
	if _, _, err := r.Load(t.Context(), false); err == nil ||
		!strings.Contains(err.Error(), "none-*.parquet: no such file") {
		t.Errorf("without missing: skip: %v", err)
	}
	file := experiment.FileIn(dir)
	if file("part-*.parquet") == "" || file("none-*.parquet") != "" {
		t.Errorf("the files of commands are %q and %q", file("part-*.parquet"), file("none-*.parquet"))
	}
}

// TestLoad: the layout has the datasets with files, and names the others.
func TestLoad(t *testing.T) {
	r, dir, notes, err := newReader(t, "name: e\nmissing: skip\nfolds: 2\nmethods: [aa-knn]\ndatasets: [first.csv, "+
		"third.csv, second.csv]\n")
	if err != nil {
		t.Fatal(err)
	}
	sets, l, err := r.Load(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if len(sets) != 2 || sets[1].Data.Manifest.Rows != 24 || sets[1].Plan.Dataset.Name != "second" ||
		!sets[0].Plan.Job.Cells.Models {
		t.Errorf("%d datasets: %+v", len(sets), sets[1].Plan.Dataset)
	}
	if !slices.Equal(l.Skipped, []string{"third"}) || len(l.Table.Runs) != 4 || l.Inputs.Spec != dir {
		t.Errorf("%+v", l)
	}
	if want := "skipped: dataset third, because " + filepath.Join(dir, "third.csv") +
		" does not exist"; !slices.Equal(*notes, []string{want}) {
		t.Errorf("%q", *notes)
	}
	r.Spec.Data = filepath.Join(dir, "none")
	if _, _, err := r.Load(t.Context(), false); err == nil ||
		!strings.Contains(err.Error(), "the files of all datasets are missing") {
		t.Error(err)
	}
}

// mistaken is a spec with five datasets, each with another mistake.
const mistaken = `name: e
folds: 30
methods: [aa-knn]
datasets:
  - {dataset: there}
  - none.csv
  - {file: first.csv, header: maybe}
  - {file: second.csv, name: other, folds: {file: folds.csv}}
  - second.csv
`

// places are the mistakes of mistaken, in order.
var places = []string{
	":2:8: dataset second: want 2 to 24 folds", ":5:5: dataset there is on a cluster", ":6:5: dataset none: ",
	":7:5: dataset first: --header: maybe is no answer",
	":8:44: the folds of dataset other: ",
}

// TestLoadMistakes: all mistakes are told together, and only these if the spec has others.
func TestLoadMistakes(t *testing.T) {
	check := func(err error, places ...string) {
		t.Helper()
		var all experiment.Errors
		if !errors.As(err, &all) || len(all) != len(places) {
			t.Fatalf("%d mistakes, want %d: %v", len(all), len(places), err)
		}
		for i, at := range places {
			if !strings.Contains(all[i].Error(), "e.yaml"+at) {
				t.Errorf("%s is not about %s", all[i], at)
			}
		}
	}
	r, dir, _, err := newReader(t, mistaken)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = r.Load(t.Context(), false)
	check(err, places...)
	if !strings.Contains(err.Error(), filepath.Join(dir, "folds.csv")+": no such file or folder") {
		t.Error(err)
	}

	r, _, _, err = newReader(t, strings.Replace(mistaken, "aa-knn", "no-such", 1))
	if err == nil {
		t.Fatal("no mistake in the spec")
	}
	all := slices.Insert(slices.Clone(places), 1, ":3:11: ")
	check(r.WithMistakes(t.Context(), err, true), all...)
	check(r.WithMistakes(t.Context(), err, false), slices.Delete(all, 2, 3)...)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	check(r.WithMistakes(ended, err, true), ":3:11: ")
}

// TestKeysError: flags become keys, with values as in YAML.
func TestKeysError(t *testing.T) {
	formed := &keysError{errtext.Errorf(errtext.WrongOption,
		"{sigma} needs {labels=age}, {decimal=,} or {label-columns=a b}; see {server}")}
	if got, want := formed.Error(),
		`sigma needs labels: age, decimal: "," or label_columns: "a b"; see --server`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if f := errtext.Of("dataset d: "+formed.Error(), fmt.Errorf("dataset d: %w", formed)); f == nil ||
		f.Code != errtext.WrongOption || len(f.Text) != 10 || f.Text[3].Value != "age" {
		t.Errorf("the form %v lacks places", f)
	}
}

// withPredictions is a spec with a method of another program, on two folds of first.csv.
const withPredictions = "name: e\nfolds: 2\nmethods: [aa-knn, {external: theirs, name: mine}]\ndatasets: [first.csv]\n"

// TestExternal: the predictions of another program for each fold are read, and mistakes name their file and line.
func TestExternal(t *testing.T) {
	file := func(rows []uint32, header string) string {
		text := header + "\n"
		for _, row := range rows {
			text += fmt.Sprintf("%d,0.25,0.5,0.25\n", row)
		}
		return text
	}
	r, dir, _, err := newReader(t, withPredictions)
	if err != nil {
		t.Fatal(err)
	}
	tested := make([][]uint32, 2)
	if err := r.Folds(t.Context(), func(d *experiment.Dataset, m *dataset.Manifest, repeat int,
		list *dataset.SplitList) error {
		for row, fold := range list.Assigned {
			tested[fold] = append(tested[fold], uint32(row))
		}
		return nil
	}); err != nil || len(tested[0])+len(tested[1]) != 20 {
		t.Fatal(tested, err)
	}
	folder := filepath.Join(dir, "theirs", "first")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	const plain = "row,label_0,label_1,label_2"
	all := map[string]string{"fold-0.csv": file(tested[0], "\ufeffrow,label_0,label_1,label_2"),
		"fold-1.csv": file(tested[1], "row,label_2,label_1,label_0"), "README.md": "no predictions"}
	for name, text := range all {
		writeText(t, folder, name, text)
	}
	sets, _, err := r.Load(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	job := sets[0].Plan.Job
	if row := job.Cells.Rows[1]; job.Weights == "" || len(row.External) != 2 || row.External[0] == row.External[1] ||
		len(sets[0].Data.Weights) == 0 {
		t.Errorf("%+v", row)
	}
	first, err := sets[0].Plan.Runs()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, text, want string }{
		{"fold-0.csv", "", "fold-0.csv: the file is empty"},
		{"fold-0.csv", plain + "\n", "has no predictions"},
		{"fold-0.csv", file(tested[0], "line,label_0,label_1,label_2"), `the column "row" is missing`},
		{"fold-0.csv", file(tested[0], "row,label_0,label_1,label_3"), `the column "label_2" of a label is missing`},
		{"fold-0.csv", plain + ",x\n1,1,0,0,0\n", `the column "x" is of no label`},
		{"fold-0.csv", plain + "\n20,1,0,0\n", `line 2: row "20": want a whole number from 0 to 19`},
		{"fold-0.csv", plain + "\n-1,1,0,0\n", "line 2: row"},
		{"fold-0.csv", plain + "\n1,1,0,0\n1,1,0,0\n", "line 3: row 1 is in line 2, too"},
		{"fold-0.csv", plain + "\n1,1,0,none\n", `line 2: "none" in column label_2 is not a number`},
		{"fold-0.csv", plain + "\n1,0.5,0.4,0\n", "line 2: the degrees sum to 0.9, not 1"},
		{"fold-0.csv", plain + "\n1,1.5,-0.5,0\n", "line 2: degree 1.5 of label 0"},
		{"fold-0.csv", plain + "\n1,NaN,0,0\n", "line 2: degree NaN of label 0"},
		{"fold-0.csv", plain + "\n1,1,0\n", "wrong number of fields"},
		{"fold-2.csv", file(tested[0], plain), "which the experiment does not run: it has 1 repeat of 2 folds"},
		{"repeat-0-fold-1.csv", file(tested[1], plain), "another file has the same fold"},
		{"mine.csv", file(tested[1], plain), "want a name such as fold-3.csv"},
	} {
		writeText(t, folder, c.name, c.text)
		if _, _, err := r.Load(t.Context(), false); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "e.yaml:3:") {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		if text, ok := all[c.name]; ok {
			writeText(t, folder, c.name, text)
		} else if err := os.Remove(filepath.Join(folder, c.name)); err != nil {
			t.Fatal(err)
		}
	}
	writeText(t, folder, "fold-0.csv", file(tested[0], "row,label_1,label_0,label_2"))
	if sets, _, err = r.Load(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	again, err := sets[0].Plan.Runs()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(folder, "fold-0.csv"), filepath.Join(dir, "before.csv")); err != nil {
		t.Fatal(err)
	}
	writeText(t, folder, "fold-0.parquet", predictedInParquet(t, tested[0]))
	if sets, _, err = r.Load(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if same, err := sets[0].Plan.Runs(); err != nil || !slices.Equal(same, again) {
		t.Errorf("with the same predictions in a Parquet file, the runs are %v, want %v (%v)", same, again, err)
	}
	for i := range again { // the runs are fold 0 of both methods, then fold 1
		if changed := i == 1; (first[i].Key != again[i].Key) != changed {
			t.Errorf("run %d with other predictions for fold 0: changed is not %v", i, changed)
		}
	}
	if err := os.Remove(filepath.Join(folder, "fold-1.csv")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Load(t.Context(), false); err == nil || !strings.Contains(err.Error(),
		"theirs has no predictions of fold 1") {
		t.Error(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "fold-1.csv"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Load(t.Context(), false); err == nil || strings.Count(err.Error(), "fold-1.csv") != 1 {
		t.Error(err)
	}
}

// FuzzReadTable: a file of predictions is an error, or a table that its package takes.
func FuzzReadTable(f *testing.F) {
	m, _, err := importer.Build(generate.Artificial(20, 1), importer.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("row,label_0,label_1,label_2\n3,0.25,0.5,0.25\n1,1,0,0\n")
	f.Add("\ufeffrow,fold,true_label_0,predicted_label_2,predicted_label_1,predicted_label_0\n0,2,,0,1,0\n")
	f.Add("row\n\"")
	f.Fuzz(func(t *testing.T, text string) {
		var table *external.Table
		var err error
		allocs.AtMost(t, 64*len(text)+64<<10, "predictions", func() { table, err = readTable(strings.NewReader(text), m) })
		if err != nil {
			return
		}
		if list, err := external.Decode(external.Encode([]*external.Table{table})); err != nil ||
			list[0].Digest() != table.Digest() {
			t.Fatalf("%+v: %v", table, err)
		}
	})
}

// predictedInParquet returns a Parquet file with predictions of rows.
func predictedInParquet(t *testing.T, rows []uint32) string {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewWriter(&b, []parquet.WriteColumn{{Name: "row", Kind: parquet.Int},
		{Name: "label_1", Kind: parquet.Float}, {Name: "label_0", Kind: parquet.Float},
		{Name: "label_2", Kind: parquet.Double}})
	for _, row := range rows {
		w.Int(0, int64(row))
		for column, degree := range []float64{0.25, 0.5, 0.25} {
			w.Number(1+column, degree)
		}
		if err := w.Row(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
