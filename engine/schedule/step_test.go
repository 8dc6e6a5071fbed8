package schedule

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/engine/round"
)

// world is a cluster that a property test makes up: what jobs ask of it may be done, lost or repeated.
type world struct {
	t       *rapid.T
	workers *Workers
	now     time.Time
	jobs    []*Job
	rounds  map[*Job]*worldRound
	budgets Budgets
	pending []func() // what the world may do next, in any order
	liar    string   // a worker whose results are wrong
	accused map[string]bool
	gentle  bool // true if nothing fails any longer
}

// worldRound is what is known of a job's round from its actions.
type worldRound struct {
	n        uint64
	r        *round.Round
	audit    []int
	ended    map[int]bool
	kept     map[string]bool
	covered  map[int]bool
	complete bool
	failed   error
}

var worldNames = []string{"a", "b", "c"}

func (w *world) join(name string) {
	report := Report{Name: name, Slots: 1 + len(w.jobs)%2, Full: true}
	for s := range 4 {
		if rapid.Bool().Draw(w.t, "has shard") {
			report.Shards = append(report.Shards, shard(s).Digest)
		}
	}
	w.workers.Hear(report, w.now)
}

func (w *world) begin(j *Job) {
	at := w.rounds[j]
	at.ended, at.kept, at.covered, at.complete = make(map[int]bool), make(map[string]bool), make(map[int]bool), false
	w.perform(j, j.Begin(nil, w.now, at.n, at.r, nil, at.audit))
}

func (w *world) step(j *Job, e Event) {
	w.perform(j, j.Step(nil, w.now, e))
}

// perform notes what actions ask for, and fails the test if they may not.
func (w *world) perform(j *Job, actions []Action) {
	if err := checkAll(w.workers, w.jobs...); err != nil {
		w.t.Fatal(err)
	}
	at := w.rounds[j]
	for _, a := range actions {
		switch a := a.(type) {
		case *SendRun:
			worker, tasks := a.Worker, slices.Clone(a.Tasks)
			w.pending = append(w.pending, func() { w.run(j, at.n, worker, tasks) })
		case *Store:
			w.pending = append(w.pending, func() { w.store(j, at.n, a) })
		case *Record:
			recorded := &ResultRecorded{Round: at.n, Task: a.Task, Result: a.Result}
			recorded.Late = a.Async && !w.gentle && rapid.IntRange(0, 9).Draw(w.t, "late") == 0
			w.pending = append(w.pending, func() {
				if recorded.Late {
					w.step(j, &RecordingLate{})
				}
				w.pending = append(w.pending, func() { w.step(j, recorded) })
			})
		case *RecordSkips:
			tasks := slices.Clone(a.Tasks)
			w.pending = append(w.pending, func() { w.step(j, &SkipsRecorded{Round: at.n, Tasks: tasks}) })
		case *Compute:
			w.pending = append(w.pending, func() { w.verify(j, at.n, a.Task) })
		case *Quarantine:
			if w.accused[a.Worker] = true; a.Worker != w.liar {
				w.t.Fatalf("worker %s is quarantined: %s", a.Worker, a.Reason)
			}
		case *KeepPartial:
			at.kept[fmt.Sprint(a.Task, a.Worker)] = true
		case *UseKept:
			if !at.kept[fmt.Sprint(a.Task, a.Worker)] || at.covered[a.Task] || a.Worker == w.liar {
				w.t.Fatalf("the partial %d of %s is used", a.Task, a.Worker)
			}
			at.covered[a.Task] = true
		case *Restart:
			w.begin(j)
			return
		case *Ended:
			at.ended[a.Task] = true
		case *EndedBefore:
			for _, t := range a.Tasks {
				at.ended[int(t)] = true
			}
		case *NotRun:
			for _, t := range a.Tasks {
				at.ended[int(t)] = true
			}
		case *Finish:
			if at.complete = true; at.r.Gather() != nil && len(at.ended) != at.r.Tasks || at.r.Reduce() != nil &&
				len(at.covered) != at.r.Tasks {
				w.t.Fatalf("the round of %d tasks is complete after %v %v", at.r.Tasks, at.ended, at.covered)
			}
		case *Fail:
			at.failed = a.Err
		}
	}
}

// run answers a Run for some or all of its tasks.
func (w *world) run(j *Job, n uint64, worker string, tasks []uint32) {
	at := w.rounds[j]
	if at.n != n {
		return
	}
	for _, t := range tasks {
		task := int(t)
		what := 0
		if !w.gentle {
			what = rapid.IntRange(0, 9).Draw(w.t, "answer")
		}
		text := fmt.Sprint("r", task)
		if worker == w.liar {
			text = "wrong"
		}
		took := time.Duration(1+task) * 100 * time.Millisecond
		var e Event
		switch {
		case what == 9: // lost
			continue
		case what == 8:
			e = &TaskFailed{Round: n, Worker: worker, Task: task, Reason: "the disk is full"}
		case what == 7:
			e = &WorkerLacks{Round: n, Worker: worker, Setup: rapid.Bool().Draw(w.t, "lacks the job"), Values: []Value{{1, n}}}
		case at.r.Gather() != nil:
			e = &ResultAnnounced{Round: n, Worker: worker, Task: task, Result: Result{Digest: digest(text), Took: took}}
		default:
			e = &PartialArrived{Round: n, Worker: worker, Task: task, Digest: digest(text), Took: took}
			if !at.covered[task] && !j.Compares(task) {
				at.covered[task] = j.workers.Trusts(worker)
			}
		}
		w.step(j, e)
	}
}

func (w *world) store(j *Job, n uint64, a *Store) {
	var e Event = &ResultStored{Round: n, Task: a.Task, Result: a.Result}
	if !w.gentle && rapid.IntRange(0, 5).Draw(w.t, "stored") == 0 {
		e = &ResultLost{Round: n, Task: a.Task, Err: errors.New("the disk is full")}
	}
	w.step(j, e)
}

func (w *world) verify(j *Job, n uint64, task int) {
	e := &LeaderComputed{Round: n, Task: task, Result: Result{Digest: digest(fmt.Sprint("r", task))}}
	if !w.gentle && rapid.IntRange(0, 5).Draw(w.t, "verified") == 0 {
		e.Err = errors.New("a shard is not available")
	}
	w.step(j, e)
}

// turn does one thing.
func (w *world) turn() {
	switch what := rapid.IntRange(0, 19).Draw(w.t, "turn"); {
	case what < 12 && len(w.pending) > 0:
		i := rapid.IntRange(0, len(w.pending)-1).Draw(w.t, "which")
		do := w.pending[i]
		w.pending = slices.Delete(w.pending, i, i+1)
		do()
	case what < 14:
		w.join(rapid.SampledFrom(worldNames).Draw(w.t, "joins"))
	case what == 14:
		w.workers.Hear(Report{Name: rapid.SampledFrom(worldNames).Draw(w.t, "leaves"), Leaving: true}, w.now)
	case what == 15:
		w.workers.Unreachable(rapid.SampledFrom(worldNames).Draw(w.t, "unreachable"))
	default:
		w.now = w.now.Add(time.Duration(rapid.IntRange(1, 900).Draw(w.t, "ms")) * time.Millisecond)
		w.workers.HeardAll(w.now)
		w.workers.Expire(w.now)
	}
	for _, j := range w.jobs {
		var e Event = &Woken{}
		if rapid.Bool().Draw(w.t, "tick") {
			e = &Tick{}
		}
		w.step(j, e)
	}
}

// share opens the share of a job in two budgets, and groups the tasks of its round.
func (w *world) share(r *round.Round) *Share {
	for range r.Tasks {
		r.Gather().Groups = append(r.Gather().Groups, int32(rapid.IntRange(0, 3).Draw(w.t, "group")))
	}
	limit := rapid.SampledFrom([]float64{0, 0.3, 1, 3, 1000}).Draw(w.t, "limit")
	s := w.budgets.Open(ShareOptions{
		Limits: map[string]float64{"x": limit, "y": 2},
		Rows:   []Row{{Budget: "x"}, {Budget: "y"}, {}, {Budget: "x", Ended: 1, Seconds: 0.2}},
	})
	w.budgets.Spend(nil)
	return s
}

func drawHow(t *rapid.T) round.Combine {
	if rapid.Bool().Draw(t, "gathers") {
		return &round.Gather{}
	}
	return &round.Reduce{}
}

// TestSteps: whatever happens, invariants hold, only a liar is quarantined, and once nothing fails any longer each
// round ends.
func TestSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := testLimits()
		limits.Ahead = rapid.IntRange(0, 2).Draw(t, "ahead")
		w := &world{t: t, now: time.Unix(1000, 0), workers: NewWorkers(limits, nil), rounds: make(map[*Job]*worldRound),
			accused: make(map[string]bool)}
		if rapid.Bool().Draw(t, "a liar") {
			w.liar = "a"
		}
		for id := range rapid.IntRange(1, 3).Draw(t, "jobs") {
			r := &round.Round{Tasks: 1 << rapid.IntRange(0, 4).Draw(t, "tasks"), How: drawHow(t)}
			o := Options{Verifies: true}
			if r.Gather() != nil && rapid.Bool().Draw(t, "has budgets") {
				o.Budget = w.share(r)
			}
			j := w.workers.NewJob(uint64(id), nil, o)
			at := &worldRound{n: 5, r: r}
			r.Vars = []round.Var{{ID: 1, Version: 5}}
			for task := range r.Tasks {
				if w.liar != "" || rapid.IntRange(0, 3).Draw(t, "audited") == 0 { // a liar that no sample finds is not found
					at.audit = append(at.audit, task)
				}
			}
			w.jobs = append(w.jobs, j)
			w.rounds[j] = at
			w.begin(j)
		}
		for range rapid.IntRange(0, 60).Draw(t, "turns") {
			w.turn()
		}
		w.gentle = true
		w.join("b")
		w.join("c")
		for turn := 0; ; turn++ {
			open := 0
			for _, j := range w.jobs {
				at := w.rounds[j]
				if at.failed != nil && !strings.Contains(at.failed.Error(), "could compute the task for") {
					t.Fatal(at.failed)
				}
				if !at.complete && at.failed == nil {
					open++
				}
			}
			if open == 0 {
				break
			}
			if turn > 300 {
				t.Fatalf("%d rounds do not end", open)
			}
			pending := w.pending
			w.pending = nil
			for _, do := range pending {
				do()
			}
			w.now = w.now.Add(300 * time.Millisecond)
			w.workers.HeardAll(w.now)
			w.workers.Expire(w.now)
			for _, j := range w.jobs {
				w.step(j, &Tick{})
			}
		}
		for _, j := range w.jobs {
			w.perform(j, j.End(nil, w.now))
			if w.rounds[j].complete && j.budget != nil {
				for g := range j.budget.groups {
					if left := j.budget.groups[g].left; left != 0 || len(j.budget.running) > 0 {
						t.Fatalf("after the round %d tasks of group %d are left, and %v run", left, g, j.budget.running)
					}
				}
			}
			w.perform(j, j.Close(nil, w.now))
		}
		for name := range maps.Keys(w.accused) {
			if name != w.liar {
				t.Fatalf("%s is quarantined", name)
			}
		}
	})
}

// BenchmarkStep measures a reduce round of 64 tasks on two workers, by event.
func BenchmarkStep(b *testing.B) {
	w, now := NewWorkers(testLimits(), nil), time.Unix(1000, 0)
	for _, name := range []string{"a", "b"} {
		w.Hear(Report{Name: name, Slots: 1}, now)
	}
	j := w.NewJob(1, nil, Options{})
	r := &round.Round{Tasks: 64, Vars: []round.Var{{ID: 1}}}
	var actions []Action
	var e PartialArrived
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		r.Vars[0].Version++
		actions = j.Begin(actions[:0], now, uint64(n), r, nil, nil)
		for t := range r.Tasks {
			e = PartialArrived{Round: uint64(n), Worker: "a", Task: t}
			actions = j.Step(actions[:0], now, &e)
		}
		actions = j.End(actions[:0], now)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/66, "ns/event")
}
