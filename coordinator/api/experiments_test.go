package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
	progress "github.com/coppice-ldl/coppice/experiment/state"
	"github.com/coppice-ldl/coppice/protocol"
)

// running starts a job of a site and returns it.
func (s *site) running(job uint64) *state.Job {
	s.t.Helper()
	st := s.cfg.Store.State()
	s.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: st.Epoch(), Job: job,
		State: protocol.Running, Time: 5})
	return s.cfg.Store.State().Job(job)
}

// TestRunsOf: the runs of a job are counted by method while it runs and when it is done. The runs of a job that is done
// are the ground for the estimate of another dataset. Times of failed runs do not count.
func TestRunsOf(t *testing.T) {
	s := newSite(t)
	m, small := s.put("art", 200), s.put("small", 100)
	r := studyOf(m, "t", 2)
	for i, name := range []string{"art", "small"} {
		j := &r.Jobs[i]
		j.Spec = json.RawMessage(fmt.Sprintf(`{"dataset":%q,"rows":["x","y"]}`, name))
		j.Job.Cells.Rows = append(j.Job.Cells.Rows, round.CellRow{Algorithm: "rf", Params: json.RawMessage(`{}`),
			Only: []int{0, 3}})
		j.Job.Cells.Rows[1].Ended, j.Job.Cells.Rows[1].EndedSeconds = 7, 70 // the jobs of these runs say it themselves
	}
	r.Jobs[1].Dataset, r.Jobs[1].Job.Dataset = "small", small.Digest()
	list := s.study(r)
	one, other := list.Jobs[0].ID, list.Jobs[1].ID
	now := time.Unix(1000, 0)
	check := func(job uint64, live dispatch.Live, want string) []progress.Runs {
		t.Helper()
		st := s.cfg.Store.State()
		j := st.Job(job)
		runs, text := runsOf(j, st.Dataset(j.Dataset), live, now), ""
		for _, r := range runs {
			text += fmt.Sprintf("%s %s: %d of %d, %d in %v s, %v, size %v; ", r.Dataset, r.Method, r.Ended, r.All, r.Timed,
				r.Seconds, r.Running, r.Size)
		}
		if text != want {
			t.Errorf("job %d: %s\nwant %s", job, text, want)
		}
		return runs
	}
	s.running(one)
	s.running(other)
	epoch := s.cfg.Store.State().Epoch()
	ended := func(task uint32, seconds float64, failed bool) {
		s.propose(protocol.EntryResult, protocol.ResultEntry{Epoch: epoch, Job: one, Round: 1, Task: task, Of: 6,
			Digest: strings.Repeat("a", 64), Compute: uint64(seconds * 1e9), Failed: failed})
	}
	ended(0, 8, false)
	ended(1, 100, true)
	ended(2, 4, false)
	features := float64(m.Features)
	check(one, dispatch.Live{Running: []schedule.RunningTask{{Task: 5, Since: now.Add(-3 * time.Second)}}},
		fmt.Sprintf("art x: 2 of 4, 2 in 12 s, [], size %v; art y: 1 of 2, 0 in 0 s, [3], size %v; ", 200*features,
			200*features))
	s.propose(protocol.EntryFinish, protocol.FinishEntry{
		Epoch: epoch, Job: one, Outcome: json.RawMessage(`{}`), Time: 9,
		Methods: []protocol.RunTimes{{Runs: 4, Nanoseconds: 24e9}, {Runs: 1, Nanoseconds: 5e9}},
	})
	done := check(one, dispatch.Live{}, fmt.Sprintf("art x: 4 of 4, 4 in 24 s, [], size %v; art y: 2 of 2, 1 in 5 s, "+
		"[], size %v; ", 200*features, 200*features))
	rest := check(other, dispatch.Live{Running: []schedule.RunningTask{{Task: 0, Since: now}}},
		fmt.Sprintf("small x: 0 of 4, 0 in 0 s, [0], size %v; small y: 0 of 2, 0 in 0 s, [], size %v; ", 100*features,
			100*features))
	// Half as many samples take half the time: four runs of 3 s, and two of 2.5 s.
	if e := progress.EstimateOf(slices.Concat(done, rest), 1); e.Seconds < 16.9 || e.Seconds > 17.1 ||
		e.From != "from 4 of 8 runs of x, which has most left, scaled to the size of small" {
		t.Errorf("%+v", e)
	}
	s.get("DELETE", "/v1/datasets/art", nil, nil)
	check(one, dispatch.Live{}, "art x: 4 of 4, 4 in 24 s, [], size 0; art y: 2 of 2, 1 in 5 s, [], size 0; ")
}

// BenchmarkRunsOf tells how long it takes to count the runs of a job with 20,000 recorded runs of 100 methods.
func BenchmarkRunsOf(b *testing.B) {
	s := newSite(b)
	r := studyOf(s.put("art", 200), "t", 1)
	rows, names := &r.Jobs[0].Job.Cells.Rows, []string(nil)
	for len(*rows) < 100 {
		*rows = append(*rows, (*rows)[0])
	}
	for i := range *rows {
		names = append(names, fmt.Sprint("method ", i))
	}
	r.Jobs[0].Job.Cells.Repeats = 50
	r.Jobs[0].Spec, _ = json.Marshal(map[string]any{"dataset": "art", "rows": names})
	list := s.study(r)
	s.running(list.Jobs[0].ID)
	st := s.cfg.Store.State()
	tasks := make([]uint32, 20_000)
	for i := range tasks {
		tasks[i] = uint32(i)
	}
	for some := range slices.Chunk(tasks, protocol.MaxWithheld) {
		s.propose(protocol.EntryWithhold, protocol.WithholdEntry{Epoch: st.Epoch(), Job: list.Jobs[0].ID, Round: 1,
			Tasks: some})
	}
	st = s.cfg.Store.State()
	j := st.Job(list.Jobs[0].ID)
	for b.Loop() {
		if runs := runsOf(j, st.Dataset("art"), dispatch.Live{}, time.Now()); len(runs) != 100 || runs[0].Ended != 200 {
			b.Fatal(len(runs))
		}
	}
}
