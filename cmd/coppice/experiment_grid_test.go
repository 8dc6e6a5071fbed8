package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/experiment"
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

// TestUnknown: the stretches have each unit that is not known, and few that are.
func TestUnknown(t *testing.T) {
	known := make([]bool, 1000)
	for u := range known {
		known[u] = u != 3 && u != 3+betweenStretches && u != 3+2*betweenStretches+1 && u < 990
	}
	want := []cellRange{{3, 4 + betweenStretches}, {4 + 2*betweenStretches, 5 + 2*betweenStretches}, {990, 1000}}
	if got := unknown(known); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := unknown(make([]bool, 5)); fmt.Sprint(got) != "[{0 5}]" {
		t.Errorf("got %v of 5 units of which none is known", got)
	}
}

// TestWatchedGridReadsNews: what is known of the cells is not read again, a cell that is not run is missing, and one that
// failed is done once another job has it.
func TestWatchedGridReadsNews(t *testing.T) {
	const cells = 3000
	table := &tables.Table{Datasets: []tables.Dataset{{Name: "d"}}, Rows: []tables.Row{{Name: "r"}}}
	first := &watchedJob{id: 1, known: make([]bool, cells)}
	table.Cells = make([]tables.Cell, cells)
	for i := range table.Cells {
		table.Cells[i].State = tables.Missing
		first.cells = append(first.cells, []*tables.Cell{&table.Cells[i]})
	}
	second := &watchedJob{id: 2, known: make([]bool, 2), cells: [][]*tables.Cell{{&table.Cells[7]}, nil}} // of another submission
	ended := map[string]map[int]protocol.CellState{"1": {}, "2": {}}
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.String() == protocol.ClusterLocal {
			http.NotFound(w, r)
			return
		}
		var from, until int
		job := strings.Split(r.URL.Path, "/")[3]
		if _, err := fmt.Sscanf(r.URL.RawQuery, "from=%d&until=%d", &from, &until); err != nil || r.URL.Path != "/v1/jobs/"+job+"/runs/states" {
			t.Errorf("%s: %v", r.URL, err)
		}
		asked = append(asked, fmt.Sprintf("%s: %d to %d", job, from, until))
		page := protocol.JobCellStates{}
		for u := from; u < until; u++ {
			if len(page.States) == 1000 {
				page.Next = u
				break
			}
			if c, ok := ended[job][u]; ok {
				page.States = append(page.States, c)
			}
		}
		json.NewEncoder(w).Encode(page)
	}))
	t.Cleanup(s.Close)
	w := &watchedGrid{cl: connected(t, s.URL), of: "2 2 outline", done: -1, jobs: []*watchedJob{first, second}, grid: gridOf(table)}
	check := func(done int, want experiment.Counts, requests ...string) {
		t.Helper()
		asked, w.next = nil, time.Time{}
		w.refresh(t.Context(), &protocol.Experiment{Newest: 2, Jobs: 2, Outline: "outline", Done: done})
		if got := w.grid.at[0][0]; got != want || !slices.Equal(asked, requests) {
			t.Errorf("%+v by %q, want %+v by %q", got, asked, want, requests)
		}
	}
	for u := range 1500 {
		ended["1"][u] = protocol.CellState{Task: u, Failed: u == 7, NotRun: u == 8}
	}
	check(1500, experiment.Counts{Done: 1498, Failed: 1, Missing: 1501}, "1: 0 to 3000", "1: 1000 to 3000", "2: 0 to 2")
	check(1500, experiment.Counts{Done: 1498, Failed: 1, Missing: 1501})
	ended["1"][1600] = protocol.CellState{Task: 1600}
	check(1501, experiment.Counts{Done: 1499, Failed: 1, Missing: 1500}, "1: 1500 to 3000", "2: 0 to 2")
	for u := range 2 {
		ended["2"][u] = protocol.CellState{Task: u}
	}
	check(1503, experiment.Counts{Done: 1500, Missing: 1500}, "1: 1500 to 3000", "2: 0 to 2")
	check(1504, experiment.Counts{Done: 1500, Missing: 1500}, "1: 1500 to 3000")
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
	want := gridOf(tableOf(t, "experiment", "run", spec, "--server", server))
	if sum := addUp(slices.Concat(want.at...)); sum.Done < 8 || sum.Failed != 8 || sum.Missing == 0 {
		t.Fatalf("%+v", sum)
	}
	w := &watchedGrid{cl: connected(t, server), name: "e"}
	w.refresh(t.Context(), &protocol.Experiment{Jobs: 1, Done: 1})
	if w.grid == nil {
		t.Fatalf("%s: no grid was read", filepath.Base(spec))
	}
	if diff := cmp.Diff(want.at, w.grid.at); diff != "" {
		t.Error(diff)
	}
}
