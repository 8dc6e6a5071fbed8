package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
)

// gridSite is a site with an experiment of two methods and eight runs, in one job that runs.
type gridSite struct {
	*study
	live *dispatch.Live // of the job
}

func newGridSite(t *testing.T) *gridSite {
	t.Helper()
	s := &gridSite{study: &study{site: newSite(t)}, live: new(dispatch.Live)}
	s.put("art", 200)
	cfg := s.cfg
	cfg.Running.Live = func(uint64) (dispatch.Live, bool) { return *s.live, true }
	s.web.Config.Handler = inClear(cfg)
	s.submitStudy("first", "aa-knn, rf")
	return s
}

// submitStudy submits the experiment, and starts the jobs that are made.
func (s *gridSite) submitStudy(token, methods string) {
	s.t.Helper()
	var p protocol.ExperimentPlan
	s.get("POST", "/v1/experiments", specOf(token, methods), &p)
	s.epoch, s.jobs = s.cfg.Store.State().Epoch(), append(s.jobs, p.Jobs...)
	for _, j := range p.Jobs {
		s.running(j.ID)
	}
}

func (s *gridSite) grid(query string) (g protocol.ExperimentGrid) {
	s.t.Helper()
	s.get("GET", "/v1/experiments/e/grid"+query, nil, &g)
	return g
}

// check checks the counts of the first method, which has four runs, and of all.
func (s *gridSite) check(what string, first, sum protocol.RunCounts) protocol.ExperimentGrid {
	s.t.Helper()
	g := s.grid("")
	first.All = 4
	if got := g.Methods[0].Runs[0].RunCounts; got != first || g.Runs != sum {
		s.t.Errorf("%s: %+v, and %+v of all; want %+v and %+v", what, got, g.Runs, first, sum)
	}
	return g
}

// TestGrid: a grid follows the runs of an experiment from its submission to its end and through another submission. The
// outcome of a run is read only to say why it failed.
func TestGrid(t *testing.T) {
	s := newGridSite(t)
	g := s.check("nothing has begun", protocol.RunCounts{}, protocol.RunCounts{All: 8})
	if g.Name != "e" || !slices.Equal(g.Datasets, []string{"art"}) || g.Total != 2 || g.Methods[1].Name != "rf" ||
		g.Index == 0 {
		t.Errorf("%+v", g)
	}
	// the runs of one fold follow each other: runs 0, 2, 4 and 6 are of the first method
	s.live.Running = []schedule.RunningTask{{Task: 0, Since: time.Now()}, {Task: 3, Since: time.Now()}}
	s.check("two runs are computed", protocol.RunCounts{Running: 1}, protocol.RunCounts{All: 8, Running: 2})
	s.record(0, 0, outcomeOf(0))
	s.record(0, 3, outcomeOf(3))
	failed := s.record(0, 2, failedOutcome)
	s.propose(protocol.EntryWithhold, protocol.WithholdEntry{Epoch: s.epoch, Job: s.jobs[0].ID, Round: 1,
		Tasks: []uint32{4}})
	first := protocol.RunCounts{Done: 1, Failed: 1, NotRun: 1}
	for range 2 {
		g = s.check("some have ended", first, protocol.RunCounts{All: 8, Done: 2, Failed: 1, NotRun: 1})
		want := []protocol.FailedRun{{Fold: 1, Error: "why", Job: s.jobs[0].ID, Task: 2}}
		if got := g.Methods[0].Runs[0].Failures; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
		_ = s.cfg.Blobs.Folder.Delete(failed) // the reason is known
	}
	var through protocol.ExperimentGrid
	s.follower().get("GET", "/v1/experiments/e/grid", nil, &through)
	if !reflect.DeepEqual(through, g) {
		t.Errorf("through a follower: %+v", through)
	}
	if part := s.grid("?from=1&limit=1"); len(part.Methods) != 1 || part.Methods[0].Name != "rf" || part.Total != 2 ||
		part.Next != 0 || part.Runs != g.Runs {
		t.Errorf("%+v", part)
	}
	// the outcomes of the done job are not here, but its own outcome lists the runs
	parts := make([][]byte, 8)
	for run := range parts {
		parts[run] = outcomeOf(run)
	}
	parts[2], parts[4], parts[5] = failedOutcome, nil, nil
	outcomes := childjob.AppendCells(nil, parts, make([]uint64, len(parts)))
	e := protocol.FinishEntry{Epoch: s.epoch, Job: s.jobs[0].ID, Time: 9, Outcome: json.RawMessage(
		`{"run_count":8,"runs_failed":1,"failed_runs":[2],"runs_not_run":2,"not_run_runs":[4,5]}`),
		Cells: []protocol.CellsRef{{BlobRef: protocol.BlobRef{Blob: blobs.Sum(outcomes), Bytes: 1}, Count: 8}}}
	s.propose(protocol.EntryFinish, e)
	s.live.Running = nil
	done := protocol.RunCounts{All: 8, Done: 5, Failed: 1, NotRun: 2}
	s.check("the job is done", protocol.RunCounts{Done: 2, Failed: 1, NotRun: 1}, done)
	s.blob(outcomes)
	// another submission has a method more, and the runs that were not run
	s.submitStudy("second", "aa-knn, rf, sa-bfgs")
	s.check("runs that were not run wait again", protocol.RunCounts{Done: 2, Failed: 1},
		protocol.RunCounts{All: 12, Done: 5, Failed: 1})
	s.refuse(404, "GET", "/v1/experiments/none/grid", nil, "none")
	s.refuse(400, "GET", "/v1/experiments/e/grid?from=-1", nil, "from", "at least 0")
	s.refuse(400, "GET", "/v1/experiments/e/grid?method=x", nil, "a grid takes from, limit")
}

// TestGridOfDoneJob: if the outcome of a done job only counts the failed runs, their outcomes are read, and as soon as
// they can be.
func TestGridOfDoneJob(t *testing.T) {
	s := newGridSite(t)
	parts := make([][]byte, 8)
	for run := range parts {
		parts[run] = outcomeOf(run)
	}
	parts[6], parts[7] = failedOutcome, nil
	s.finishStudy(0, `{"runs_failed":1,"runs_not_run":1}`, parts...)
	blob := s.cfg.Store.State().Job(s.jobs[0].ID).Cells[0].Blob
	outcomes, err := s.cfg.Blobs.Folder.Get(blob)
	if err == nil {
		err = s.cfg.Blobs.Folder.Delete(blob)
	}
	if err != nil {
		t.Fatal(err)
	}
	answer := s.ask("GET", "/v1/experiments/e/grid", nil)
	if answer.Body.Close(); answer.StatusCode == http.StatusOK {
		t.Error("a grid without the outcomes of the runs")
	}
	s.blob(outcomes)
	g := s.check("they are here", protocol.RunCounts{Done: 3, Failed: 1},
		protocol.RunCounts{All: 8, Done: 6, Failed: 1, NotRun: 1})
	if f := g.Methods[0].Runs[0].Failures; len(f) != 1 || f[0].Error != "why" || f[0].Fold != 3 {
		t.Errorf("%+v", f)
	}
}

// TestGridsAreBounded: grids that were not used for longest are dropped.
func TestGridsAreBounded(t *testing.T) {
	s := newGridSite(t)
	of, err := jobsOf(s.cfg.Store.State(), "e")
	if err != nil {
		t.Fatal(err)
	}
	h := &gridHandlers{source: s.experimentsOf()}
	k, err := h.build(t.Context(), "e", of)
	if err != nil || k.Size() != 16 {
		t.Fatalf("%+v, %v", k, err)
	}
	h.most = 3 * k.Size()
	for _, name := range []string{"a", "b", "c", "a", "d"} {
		h.remember(name, &knownGrid{Grid: k.Grid})
	}
	if names := slices.Sorted(maps.Keys(h.known)); !slices.Equal(names, []string{"a", "c", "d"}) {
		t.Errorf("%v", names)
	}
	h.most = 1
	if h.remember("e", k); len(h.known) != 1 || h.find("e") != k {
		t.Errorf("%v", h.known)
	}
}

// BenchmarkGrid measures an answer with the grid of 100,000 runs: if nothing has changed, and after another run.
func BenchmarkGrid(b *testing.B) {
	s := newSite(b)
	s.put("art", 2000)
	text := "name: e\ndatasets: [{dataset: art}]\nfolds: {k: 10, repeats: 100}\nmethods:\n"
	for k := range 100 {
		text += fmt.Sprintf("  - {algorithm: aa-knn, name: knn%d, settings: {k: %d}}\n", k, k+1)
	}
	var p protocol.ExperimentPlan
	s.get("POST", "/v1/experiments", protocol.ExperimentRequest{Token: "t", File: "e.yaml", Spec: text}, &p)
	job, epoch := p.Jobs[0].ID, s.cfg.Store.State().Epoch()
	s.running(job)
	withhold := func(tasks []uint32) {
		s.propose(protocol.EntryWithhold, protocol.WithholdEntry{Epoch: epoch, Job: job, Round: 1, Tasks: tasks})
	}
	var runs []uint32
	for task := range 90_000 {
		runs = append(runs, uint32(task))
	}
	for some := range slices.Chunk(runs, protocol.MaxWithheld) {
		withhold(some)
	}
	handler := inClear(s.cfg)
	ask := func() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/v1/experiments/e/grid", nil))
		if w.Code != http.StatusOK {
			b.Fatal(w.Code, w.Body)
		}
	}
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			handler = inClear(s.cfg) // it knows no grid
			ask()
		}
	})
	b.Run("again", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ask()
		}
	})
	next := uint32(90_000)
	b.Run("after a change", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			withhold([]uint32{next % 100_000})
			next++
			b.StartTimer()
			ask()
		}
	})
}
