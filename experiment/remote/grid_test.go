package remote

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/experiment/overview"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestGridSees: a run that is not run is missing, a failed run is done once another job has it, and what was
// told again, or before the grid was read, counts once.
func TestGridSees(t *testing.T) {
	table := &result.Table{Datasets: []result.Dataset{{Name: "d"}}, Methods: []result.Method{{Name: "r"}},
		Runs: make([]result.Run, 3000)}
	g := &Grid{ended: make(map[runOfJob]protocol.CellState), of: "2 2 outline", keys: make(map[runOfJob]string),
		done: make(map[string]bool)}
	keys := make([]string, len(table.Runs))
	for i := range table.Runs {
		table.Runs[i].State = result.Missing
		keys[i] = fmt.Sprint(i)
		g.keys[runOfJob{1, i}] = keys[i]
	}
	g.keys[runOfJob{2, 0}] = keys[7] // of another submission
	g.grid = overview.GridOf(table, keys)
	check := func(want string, job uint64, runs ...protocol.CellState) {
		t.Helper()
		x := &protocol.ExperimentLine{RunsEnded: []protocol.EndedRuns{{Job: job, Runs: runs}}}
		x.Newest, x.Jobs, x.Outline = 2, 2, "outline"
		g.See(t.Context(), x)
		if got := strings.Join(strings.Fields(g.Lines(80, 24)[1]), " "); got != want {
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
