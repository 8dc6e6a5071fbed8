package schedule

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/internal/digests"
)

// oneWorker is a process that computes the tasks of one gather round with so many slots, as experiments without a
// cluster do.
type oneWorker struct {
	*scene
	slots   int
	group   []int32
	took    []float64 // seconds, by task
	given   []int     // tasks, in the order in which they were given out
	running []runningTask
	done    bool
	skipped int
}

type runningTask struct {
	task int
	end  time.Time
}

// newOneWorker begins the round.
func newOneWorker(t testing.TB, slots int, group []int32, took []float64, budget *Share) *oneWorker {
	st := newStage(t)
	st.workers = NewWorkers(Limits{Remind: math.MaxInt64}, nil)
	st.join("here", slots)
	w := &oneWorker{scene: st.job(1, Options{Budget: budget}), slots: slots, group: group, took: took}
	r := gatherRound(len(group))
	r.Gather().Groups = group
	w.perform(w.begin(r))
	return w
}

func (w *oneWorker) perform(actions []Action) {
	if len(w.group) <= 40 { // it goes through all tasks
		if err := checkAll(w.workers, w.job); err != nil {
			w.t.Fatal(err)
		}
	}
	var then []Event
	for _, a := range actions {
		switch a := a.(type) {
		case *SendRun:
			for _, t := range a.Tasks {
				w.given = append(w.given, int(t))
				w.running = append(w.running, runningTask{int(t), w.now.Add(time.Duration(w.took[t] * float64(time.Second)))})
			}
		case *SendStop:
			w.running = slices.DeleteFunc(w.running, func(r runningTask) bool { return r.task == a.Task })
		case *Store:
			then = append(then, &ResultStored{Task: a.Task, Result: a.Result})
		case *Record:
			then = append(then, &ResultRecorded{Task: a.Task, Result: a.Result})
		case *RecordSkips:
			w.skipped += len(a.Tasks)
			then = append(then, &SkipsRecorded{Tasks: slices.Clone(a.Tasks)})
		case *Finish:
			w.done = true
		case *Fail:
			w.t.Fatal(a.Err)
		}
	}
	for _, e := range then {
		w.perform(w.step(e))
	}
	if len(w.running) > w.slots {
		w.t.Fatalf("%d tasks are computed in %d slots", len(w.running), w.slots)
	}
}

// finish computes until the round is complete, with a tick each second, and returns how many seconds that took.
func (w *oneWorker) finish() float64 {
	began, tick := w.now, w.now.Add(time.Second)
	for turn := 0; !w.done; turn++ {
		if turn > 100_000 {
			w.t.Fatal("the round does not end")
		}
		first := -1
		for i := range w.running {
			if first < 0 || w.running[i].end.Before(w.running[first].end) {
				first = i
			}
		}
		if first < 0 || tick.Before(w.running[first].end) {
			w.now, tick = tick, tick.Add(time.Second)
			w.perform(w.step(&Tick{}))
			continue
		}
		r := w.running[first]
		w.running = slices.Delete(w.running, first, first+1)
		w.now = r.end
		took := time.Duration(w.took[r.task] * float64(time.Second))
		w.perform(w.step(&ResultAnnounced{Worker: "here", Task: r.task, Result: Result{Digest: digests.Digest{1},
			Took: took}}))
	}
	return w.now.Sub(began).Seconds()
}

// TestOneWorker: each task is given out once, and no slot is free while a task waits. So the round takes no longer than
// any list of tasks (Graham 1966).
func TestOneWorker(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		groups, folds, slots := rapid.IntRange(1, 6).Draw(r, "groups"), rapid.IntRange(1, 6).Draw(r, "folds"),
			rapid.IntRange(1, 5).Draw(r, "slots")
		var group []int32
		var took []float64
		total, longest := 0.0, 0.0
		for range folds {
			for g := range groups {
				s := rapid.Float64Range(0.01, 20).Draw(r, "took")
				group, took = append(group, int32(g)), append(took, s)
				total, longest = total+s, max(longest, s)
			}
		}
		w := newOneWorker(t, slots, group, took, nil)
		if seconds, bound := w.finish(), total/float64(slots)+longest; seconds > bound+1e-3 {
			r.Fatalf("%v s for tasks of %v s in %d slots", seconds, took, slots)
		}
		seen := make(map[int]bool)
		for _, task := range w.given {
			if seen[task] {
				r.Fatalf("task %d was given out twice", task)
			}
			seen[task] = true
		}
		if len(seen) != len(group) {
			r.Fatalf("%d of %d tasks were given out", len(seen), len(group))
		}
	})
}

// TestOneWorkerEnds: of made-up experiments with methods of very different lengths on datasets of mixed sizes, most
// take hardly longer than their tasks do in sum: no long task is last.
func TestOneWorkerEnds(t *testing.T) {
	var ratios []float64
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		groups, folds, slots := 4+r.IntN(20), 5+r.IntN(10), 4
		usual := make([]float64, groups)
		for g := range usual {
			usual[g] = math.Exp(6 * r.Float64())
		}
		var group []int32
		var took []float64
		total, longest := 0.0, 0.0
		for range folds {
			for g := range groups {
				s := usual[g] * math.Exp(0.1*r.NormFloat64())
				group, took = append(group, int32(g)), append(took, s)
				total, longest = total+s, max(longest, s)
			}
		}
		ratios = append(ratios, newOneWorker(t, slots, group, took, nil).finish()/max(total/float64(slots), longest))
	}
	slices.Sort(ratios)
	if t.Logf("of the least time: median %.3f, ninth decile %.3f", ratios[50], ratios[90]); ratios[50] > 1.01 ||
		ratios[90] > 1.05 {
		t.Error("long tasks are last")
	}
}

// TestEarlierTimes: if little is left of an experiment that was interrupted, the longest task is first at once. Times
// of earlier jobs count, and of results that the log has.
func TestEarlierTimes(t *testing.T) {
	group := []int32{0, 2, 1, 0, 2}
	b := new(Budgets)
	share := b.Open(ShareOptions{Rows: []Row{{Ended: 2, Seconds: 2}, {Ended: 1, Seconds: 30}, {Ended: 1, Seconds: 4}}})
	if w := newOneWorker(t, 1, group, []float64{1, 4, 30, 1, 4}, share); w.finish() != 40 ||
		!slices.Equal(w.given, []int{2, 0, 1, 4, 3}) {
		t.Errorf("after earlier jobs: %v", w.given)
	}
	s := newStage(t).job(1, Options{})
	s.join("w", 1)
	r := gatherRound(6)
	r.Gather().Groups = []int32{0, 1, 2, 0, 1, 2}
	known := []Known{{0, digests.Digest{1}, time.Second}, {1, digests.Digest{1}, 30 * time.Second},
		{2, digests.Digest{1}, 4 * time.Second}}
	if got := runsOf(s.job.Begin(nil, s.now, 1, r, known, nil), "w"); !slices.Equal(got, []uint32{4, 5}) {
		t.Errorf("after recorded results: %v", got)
	}
}

// TestOneWorkerBudget: first tasks begin while anything is left, then the groups go on that fit as a whole. A task that
// takes all of its budget is stopped within two ticks. Nothing else is given out.
func TestOneWorkerBudget(t *testing.T) {
	var group []int32
	var took []float64
	for fold := range 10 {
		for g, seconds := range []float64{5, 1, 4, 100} {
			if fold < []int{3, 10, 10, 2}[g] {
				group, took = append(group, int32(g)), append(took, seconds)
			}
		}
	}
	for _, c := range []struct {
		limit float64
		given []int // by group
	}{{50, []int{3, 10, 1, 2}}, {1000, []int{3, 10, 10, 2}}, {9, []int{1, 1, 1, 2}}, {2, []int{0, 0, 0, 2}}} {
		b := new(Budgets)
		x := Row{Budget: "x"}
		share := b.Open(ShareOptions{Limits: map[string]float64{"x": c.limit}, Rows: []Row{x, x, x, {}}})
		b.Spend(map[string]float64{"x": 2})
		w := newOneWorker(t, 1, group, took, share)
		w.finish()
		given := make([]int, 4)
		for _, task := range w.given {
			given[group[task]]++
		}
		if !slices.Equal(given, c.given) || len(w.given)+w.skipped < len(group) {
			t.Errorf("of %v s: %v were given out, want %v; %d were skipped", c.limit, given, c.given, w.skipped)
		}
		if spent := b.byName["x"].spent; spent > c.limit+2 {
			t.Errorf("of %v s %v are spent", c.limit, spent)
		}
	}
}
