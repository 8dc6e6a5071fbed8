package state

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// startRuns starts a job of runs.
func startRuns(m *machine, cells *round.Cells) *Job {
	m.start()
	e := experimentEntry("t", "e", 1)
	e.Jobs[0].Job.Cells = cells
	j := m.do(protocol.EntryExperiment, e).([]*Job)[0]
	m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: m.s.Epoch(), Job: j.ID, State: protocol.Running})
	return j
}

// TestMethodRuns: while a job runs, each recorded task counts once for its method, in any order
// and if it is recorded twice; the times of failed runs do not count. The counts outlive a
// snapshot, a pause and the end of a job.
func TestMethodRuns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cells := &round.Cells{Rows: []round.CellRow{{Algorithm: "ldlf"}, {Algorithm: "rf"}, {Algorithm: "sa-iis"}},
			Repeats: 2, Folds: 3}
		if rapid.Bool().Draw(rt, "some folds") {
			cells.Rows[1].Only = []int{0, 4}
		}
		m, all := newMachine(t), cells.All()
		j := startRuns(m, cells)
		var want []MethodRuns
		seen := make(map[uint32]bool)
		for range rapid.IntRange(0, 30).Draw(rt, "entries") {
			task, took := rapid.Uint32Range(0, uint32(len(all)-1)).Draw(rt, "task"), rapid.Uint64Range(0, 5).Draw(rt, "took")
			failed, withheld := rapid.Bool().Draw(rt, "failed"), rapid.Bool().Draw(rt, "withheld")
			if withheld {
				m.do(protocol.EntryWithhold, &protocol.WithholdEntry{Epoch: m.s.Epoch(), Job: j.ID, Round: 1,
					Tasks: []uint32{task, task}, Compute: took})
			} else {
				m.do(protocol.EntryResult, &protocol.ResultEntry{
					Epoch: m.s.Epoch(), Job: j.ID, Round: 1, Task: task, Of: uint32(len(all)), Digest: digest('c'), Bytes: 8,
					Compute: took, Failed: failed,
				})
			}
			if seen[task] {
				continue
			}
			seen[task] = true
			if want == nil {
				want = make([]MethodRuns, len(cells.Rows))
			}
			of := &want[all[task].Row]
			if of.Ended++; !failed && !withheld && took > 0 {
				of.Timed, of.Compute = of.Timed+1, of.Compute+took
			}
		}
		for _, then := range []func(){
			func() {},
			func() { m.s = decode(t, encode(t, m.s)) },
			func() { m.do(protocol.EntryPause, &protocol.JobEntry{Job: j.ID}) },
			func() { m.do(protocol.EntryCancel, &protocol.JobEntry{Job: j.ID}) },
			func() { m.s = decode(t, encode(t, m.s)) },
		} {
			if then(); !slices.Equal(m.s.Job(j.ID).Methods(), want) {
				rt.Fatalf("%v, want %v", m.s.Job(j.ID).Methods(), want)
			}
		}
	})
}

// TestMethodRunsAtTheEnd: a Finish entry has the times of all runs, also of runs without a
// recorded result. Without times the recorded ones stay.
func TestMethodRunsAtTheEnd(t *testing.T) {
	cells := &round.Cells{Rows: []round.CellRow{{Algorithm: "ldlf"}, {Algorithm: "rf", Only: []int{1, 2}}},
		Repeats: 1, Folds: 3}
	for what, c := range map[string]struct {
		times []protocol.RunTimes
		want  []MethodRuns // nil: the entry is refused
		error string
	}{
		"all":            {[]protocol.RunTimes{{Runs: 3, Nanoseconds: 30}, {}}, []MethodRuns{{3, 3, 30}, {2, 0, 0}}, ""},
		"not known":      {nil, []MethodRuns{{1, 1, 7}, {0, 0, 0}}, ""},
		"another number": {[]protocol.RunTimes{{Runs: 3}}, nil, "times of 1 methods"},
		"more than there": {[]protocol.RunTimes{{}, {Runs: 3}}, nil,
			"times of 3 runs of method 1, counted from 0, which has 2"},
	} {
		m := newMachine(t)
		j := startRuns(m, cells)
		m.do(protocol.EntryResult, &protocol.ResultEntry{Epoch: m.s.Epoch(), Job: j.ID, Round: 1, Of: 5, Digest: digest('c'),
			Compute: 7})
		finish := &protocol.FinishEntry{Epoch: m.s.Epoch(), Job: j.ID, Outcome: []byte(`{}`), Methods: c.times}
		if c.want == nil {
			if err := m.refused(protocol.EntryFinish, finish); !errors.Is(err, ErrInvalid) ||
				!strings.Contains(err.Error(), c.error) {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		m.do(protocol.EntryFinish, finish)
		m.s = decode(t, encode(t, m.s))
		if got := m.s.Job(j.ID).Methods(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// TestMethodRunsOfOthers: entries about a job without runs count nothing, also if its list of runs is not valid.
func TestMethodRunsOfOthers(t *testing.T) {
	for _, cells := range []*round.Cells{{Repeats: 1, Folds: 3}, {Rows: []round.CellRow{{}}},
		{Rows: []round.CellRow{{Only: []int{5, -1}}}, Repeats: 1, Folds: 1}} {
		m := newMachine(t)
		j := startRuns(m, cells)
		m.do(protocol.EntryResult, &protocol.ResultEntry{Epoch: m.s.Epoch(), Job: j.ID, Round: 1, Of: 5, Task: 4,
			Digest: digest('c'), Compute: 7})
		if got := m.s.Job(j.ID).Methods(); got != nil {
			t.Errorf("%+v: %v", cells, got)
		}
	}
	m := newMachine(t)
	j := m.start()
	if err := m.refused(protocol.EntryFinish, &protocol.FinishEntry{Epoch: m.s.Epoch(), Job: j.ID,
		Methods: []protocol.RunTimes{{}}}); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
	s := golden(t)
	i := slices.IndexFunc(s.jobs, func(j *Job) bool { return j.methods != nil })
	withJob(i, func(j *Job) { j.methods = slices.Repeat(j.methods, 2) })(s)
	if _, err := Decode(strings.NewReader(string(encode(t, s)))); !errors.Is(err, ErrSnapshot) ||
		!strings.Contains(err.Error(), "2 methods") {
		t.Errorf("a snapshot with counts of other methods: %v", err)
	}
}
