package datasets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/dataset/write"
	"github.com/coppice-ldl/coppice/experiment"
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
