package local

import (
	"context"
	"errors"
	"io/fs"
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
	"github.com/coppice-ldl/coppice/experiment/datasets"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/google/go-cmp/cmp"
)

// newRun returns a run of a spec on one dataset in a folder, and its notes. The results are in dir/out, and the run
// agrees to every plan.
func newRun(t *testing.T, dir, text string) (*Run, *[]string) {
	t.Helper()
	var b strings.Builder
	if err := write.WriteCSV(&b, generate.Artificial(30, 1), importer.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.csv"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	file, notes := filepath.Join(dir, "e.yaml"), new([]string)
	s, err := experiment.Parse(t.Context(), file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	note := func(text string) { *notes = append(*notes, text) }
	reader := datasets.Reader{
		Spec: s, File: file, Note: note,
		Flags: func([]string) (datasets.Opener, error) {
			return func(path string) (dataset.Source, importer.Checks, error) {
				src, err := read.Open(path, read.OpenOptions{})
				return src, importer.Checks{}, err
			}, nil
		},
		Options: func(importer.Checks) importer.Options { return importer.Options{} },
	}
	sets, l, err := reader.Load(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	return &Run{
		Spec: s, File: file, Folder: filepath.Join(dir, "out"), Sets: sets, Layout: l, Lanes: 2, Note: note,
		Agree: func(*protocol.ExperimentPlan) error { return nil },
		Show:  func(Status, func(columns, lines int) []string) {},
	}, notes
}

const text = "name: e\nfolds: 3\nmeasures: [kl]\ndatasets: [a.csv]\nmethods: [aa-knn, ranking]\n"

// TestDo: runs with a result are kept. Runs that the spec lacks need consent. The table that Read returns equals the
// table of Do.
func TestDo(t *testing.T) {
	dir := t.TempDir()
	planned := func(r *Run, runs, kept, orphaned int) {
		t.Helper()
		p, err := r.Check()
		if err != nil || p.Runs != runs || p.Kept != kept || p.Orphaned != orphaned || len(p.Refused) != 1 {
			t.Errorf("%+v, error %v; want %d new runs, %d kept, %d orphaned", p, err, runs, kept, orphaned)
		}
	}
	do := func(r *Run) *result.Table {
		t.Helper()
		table, err := r.Do(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	r, notes := newRun(t, dir, text)
	planned(r, 3, 0, 0)
	first := do(r)
	if n := experiment.Count(first); n.Done != 3 || n.Failed != 3 ||
		!strings.HasPrefix(first.Runs[slices.IndexFunc(first.Runs, failed)].Command, "coppice train ") {
		t.Errorf("%+v", n)
	}
	if !slices.Contains(*notes, "3 runs to do, 0 runs ended before") {
		t.Errorf("%q", *notes)
	}
	e, err := Read(t.Context(), r.Folder, r.File)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, e.Table); diff != "" || e.Notes != nil {
		t.Errorf("notes %q, %s", e.Notes, diff)
	}

	r, notes = newRun(t, dir, text)
	planned(r, 0, 3, 0)
	do(r)
	if !slices.Contains(*notes, "0 runs to do, 3 runs ended before") {
		t.Errorf("%q", *notes)
	}

	r, _ = newRun(t, dir, text)
	if err := r.Spec.SetRecorded([]string{"curve"}); err != nil {
		t.Fatal(err)
	}
	planned(r, 0, 3, 0)
	r.RecordAgain = true
	planned(r, 3, 0, 0)

	refused := errors.New("no")
	r, _ = newRun(t, dir, strings.Replace(text, "folds: 3", "folds: 2", 1))
	r.Agree = func(*protocol.ExperimentPlan) error { return refused }
	planned(r, 2, 0, 3)
	if _, err := r.Do(t.Context()); !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
	if e, err := Read(t.Context(), r.Folder, ""); err != nil || len(e.Table.Runs) != len(first.Runs) {
		t.Errorf("a refused plan was written: %v", err)
	}
}

// TestDoOnce: methods with equal keys are run once, and each has the results.
func TestDoOnce(t *testing.T) {
	r, notes := newRun(t, t.TempDir(), strings.Replace(text, "[aa-knn, ranking]",
		"[{algorithm: aa-knn, settings: {k: 3}}, {algorithm: aa-knn, preset: auto, settings: {k: 3, scaling: standard}}]", 1))
	grid := ""
	r.Show = func(_ Status, lines func(columns, lines int) []string) {
		grid = strings.Join(lines(80, 20), "\n")
	}
	if p, err := r.Check(); err != nil || p.Runs != 3 || len(p.Notes) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	table, err := r.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := experiment.Count(table); n.Done != 6 || table.Methods[1].Same != table.Methods[0].Name ||
		strings.Count(grid, "3/3") != 2 {
		t.Errorf("%+v, methods %+v, progress\n%s", n, table.Methods, grid)
	}
	e, err := experiment.ReadFolder(r.Folder)
	if err != nil || len(e.Records) != 3 || !slices.Contains(*notes, "3 runs to do, 0 runs ended before") {
		t.Errorf("%d records, notes %q, %v", len(e.Records), *notes, err)
	}
}

func failed(c result.Run) bool { return c.State == result.Failed }

// TestDoInterrupted: an interrupt is told apart from other errors, and the next run does the rest.
func TestDoInterrupted(t *testing.T) {
	r, _ := newRun(t, t.TempDir(), text)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Do(ctx); !errors.Is(err, ErrInterrupted) {
		t.Errorf("error %v", err)
	}
	if p, err := r.Check(); err != nil || p.Runs != 3 {
		t.Errorf("%+v, %v", p, err)
	}
	if table, err := r.Do(t.Context()); err != nil || experiment.Count(table).Done != 3 {
		t.Errorf("%+v, %v", table, err)
	}
}

// TestRead: a damaged record is named, and a folder without an experiment does not exist.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(t.Context(), filepath.Join(dir, "out"), ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	r, _ := newRun(t, dir, text)
	if _, err := r.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	runs := filepath.Join(r.Folder, "cells.log")
	b, err := os.ReadFile(runs)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	lines[1] = "damage\n"
	if err := os.WriteFile(runs, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := Read(t.Context(), r.Folder, r.File)
	if err != nil || experiment.Count(e.Table).Missing != 1 || len(e.Notes) != 1 ||
		!strings.HasPrefix(e.Notes[0], r.Folder+": line 2 of cells.log is damaged") {
		t.Errorf("%+v, error %v", e, err)
	}
}

// TestDamagedNote: at most ten lines are named.
func TestDamagedNote(t *testing.T) {
	lines := make([]int, 12)
	for i := range lines {
		lines[i] = i + 1
	}
	want := []string{"f: line 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, and 2 more of cells.log is damaged and was left out; stop"}
	if got := damagedNote("f", lines, "stop"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestCommandFolder: a command finds a relative path in the folder of the data, of the spec that is given, or of the
// spec that was run, in this order, and otherwise next to the folder of the results. Without the file there is no
// command.
func TestCommandFolder(t *testing.T) {
	r, _ := newRun(t, t.TempDir(), text)
	root := t.TempDir()
	in := func(names ...string) string { return filepath.Join(append([]string{root}, names...)...) }
	for _, folder := range []string{"data", "given", "ran", "results"} {
		if err := errors.Join(os.Mkdir(in(folder), 0o700), os.WriteFile(in(folder, "a.csv"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		in   *experiment.Inputs
		spec string
		want string
	}{
		{&experiment.Inputs{Data: in("data"), Spec: in("ran")}, in("given", "e.yaml"), in("data", "a.csv")},
		{&experiment.Inputs{Spec: in("ran")}, in("given", "e.yaml"), in("given", "a.csv")},
		{&experiment.Inputs{Spec: in("ran")}, "", in("ran", "a.csv")},
		{nil, "", in("results", "a.csv")},
	} {
		r.Layout.Inputs = c.in
		table := r.Layout.Fill(nil)
		addCommands(table, r.Layout, in("results", "out"), c.spec)
		if got := table.Runs[slices.IndexFunc(table.Runs, failed)].Command; !strings.Contains(got, "--data "+c.want+" ") {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	r.Layout.Inputs = &experiment.Inputs{Spec: in("gone")}
	table := r.Layout.Fill(nil)
	addCommands(table, r.Layout, in("results", "out"), "")
	run := &table.Runs[slices.IndexFunc(table.Runs, failed)]
	if run.Command != "" || !strings.Contains(run.NoCommand,
		"needs the file a.csv of the spec, which is not known here") ||
		!strings.Contains(run.NoCommand, "the key only of folds") {
		t.Errorf("command %q, no command %q", run.Command, run.NoCommand)
	}
}
