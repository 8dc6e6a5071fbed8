package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/grid"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/protocol"
)

func connected(t *testing.T, server string) *client.Client {
	t.Helper()
	cl, err := client.New(server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// TestWatchedGridSees: a cell that is not run is missing, a failed cell is done once another job has it, and what was
// told again, or before the grid was read, counts once.
func TestWatchedGridSees(t *testing.T) {
	table := &tables.Table{Datasets: []tables.Dataset{{Name: "d"}}, Rows: []tables.Row{{Name: "r"}}, Cells: make([]tables.Cell, 3000)}
	w := &watchedGrid{ended: make(map[runOfJob]protocol.CellState), of: "2 2 outline", cells: make(map[runOfJob][]*tables.Cell)}
	for i := range table.Cells {
		table.Cells[i].State = tables.Missing
		w.cells[runOfJob{1, i}] = []*tables.Cell{&table.Cells[i]}
	}
	w.cells[runOfJob{2, 0}] = []*tables.Cell{&table.Cells[7]} // of another submission
	w.grid = grid.Of(table)
	check := func(want string, job uint64, runs ...protocol.CellState) {
		t.Helper()
		x := &protocol.ExperimentLine{RunsEnded: []protocol.EndedRuns{{Job: job, Runs: runs}}}
		x.Newest, x.Jobs, x.Outline = 2, 2, "outline"
		w.see(t.Context(), x)
		if got := strings.Join(strings.Fields(w.lines(80, 24)[1]), " "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	var runs []protocol.CellState
	for u := range 1500 {
		runs = append(runs, protocol.CellState{Task: u, Failed: u == 7, NotRun: u == 8})
	}
	check("r 1498/3000 !1", 1, runs...)
	check("r 1498/3000 !1", 1, runs...)
	check("r 1499/3000 !1", 1, protocol.CellState{Task: 1600})
	check("r 1500/3000", 2, protocol.CellState{Task: 0}, protocol.CellState{Task: 99})
	check("r 1500/3000", 1, runs[7])
}

// TestWatchedGridOnCluster: the grid of an experiment is that of its table, with rows that do not go with the data and
// cells that are not run; two datasets have the same content.
func TestWatchedGridOnCluster(t *testing.T) {
	dir := t.TempDir()
	server := start(t, 1, 1).Servers()
	for _, name := range []string{"first", "second"} {
		artificialFile(t, dir, name+".csv", 60, 1)
	}
	spec := write(t, dir, "e.yaml", `name: e
datasets: [first.csv, second.csv]
folds: 4
measures: [kl]
methods: [aa-knn, ranking, {algorithm: ldlf, budget: 1s, settings: {steps: 100000000, patience: 100000000}}]
`)
	table := tableOf(t, "experiment", "run", spec, "--server", server)
	if sum := experiment.Count(table); sum.Done < 8 || sum.Failed != 8 || sum.Missing == 0 {
		t.Fatalf("%+v", sum)
	}
	w := &watchedGrid{cl: connected(t, server), name: "e", ended: make(map[runOfJob]protocol.CellState)}
	_, err := w.cl.Experiments().Watch(t.Context(), "e", true, func(x *protocol.ExperimentLine) { w.see(t.Context(), x) })
	if err != nil || w.grid == nil {
		t.Fatalf("%s: no grid was read: %v", filepath.Base(spec), err)
	}
	if diff := cmp.Diff(grid.Of(table).Lines(200, 60), w.lines(200, 60)); diff != "" {
		t.Error(diff)
	}
}
