package dispatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// fakeReporter takes the length of a result for its steps, and writes down what is counted and shown.
type fakeReporter struct {
	mu    sync.Mutex
	steps []uint64             // of each call of count
	tasks []round.TaskProgress // as they were shown last
	shown int                  // tasks of the round that was shown last
	last  round.Progress
}

func (*fakeReporter) ResultProgress(result []byte) (round.Progress, error) {
	if len(result) == 0 {
		return round.Progress{}, errors.New("an empty result")
	}
	return round.Progress{Step: uint64(len(result))}, nil
}

// RoundProgress adds up the steps.
func (f *fakeReporter) RoundProgress(tasks []round.TaskProgress) (p round.Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tasks = slices.Clone(tasks)
	for i := range tasks {
		p.Step += tasks[i].Step
	}
	return p
}

func (f *fakeReporter) count(w protocol.Work) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.steps = append(f.steps, w.Steps)
}

func (f *fakeReporter) show(tasks int, p round.Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown, f.last = tasks, p
}

// isShown reports whether the tasks were shown like this last, by task: "." has not ended, "+" has a result that was
// read, and "-" is not run.
func (f *fakeReporter) isShown(want string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	got, steps := "", uint64(0)
	for i := range f.tasks {
		switch t := &f.tasks[i]; {
		case t.NotRun && t.Done:
			got += "-"
		case t.Known && t.Done:
			got += "+"
			steps += t.Step
		default:
			got += "."
		}
	}
	return got == want && f.shown == len(want) && f.last.Step == steps
}

func (f *fakeReporter) options() ProgressOptions {
	return ProgressOptions{Reporter: f, Count: f.count, Show: f.show}
}

// TestProgressOfSubJobs: what a worker says of a sub-job that it has is taken in, and nothing else.
func TestProgressOfSubJobs(t *testing.T) {
	l, reporter := newLab(t, never), new(fakeReporter)
	l.options.Progress = reporter.options()
	w1 := l.join("w1", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 3, &round.Round{Tasks: 1, How: &round.Gather{SubJob: round.Jobs(&round.Job{Seed: 1})},
		Scope: round.Whole})
	task := w1.first(0)
	say := func(step uint64, change func(*protocol.Progress)) {
		m := protocol.Progress{Stamp: task.run.Stamp, Worker: "w1", Done: protocol.Work{Steps: step}}
		change(&m)
		task.send(m.Append(nil))
	}
	say(1, func(*protocol.Progress) {})
	say(2, func(m *protocol.Progress) { m.Worker = "ghost" }) // it has not the task
	say(3, func(m *protocol.Progress) { m.Round-- })
	l.dropped(metrics.DropStale, 1)
	say(4, func(m *protocol.Progress) { m.Task = 1 })
	l.dropped(metrics.DropMisshapen, 1)
	say(5, func(*protocol.Progress) {})
	task.announce(0)
	d.gathers()
	steps := uint64(len(resultOf(0)))
	if want := []uint64{1, 4, steps - 5}; !slices.Equal(reporter.steps, want) {
		t.Errorf("counted were %v steps, want %v", reporter.steps, want)
	}
	if !x.Gathered() {
		t.Error("the progress of the round is not known")
	}
	x.Show(1, round.Progress{Step: 7})
	if live, ok := l.d.Live(jobID); !ok || live.Tasks != 1 || live.Progress.Step != 7 {
		t.Errorf("live is %+v", live)
	}
	if _, ok := l.d.Live(jobID + 1); ok {
		t.Error("a job that nobody drives is live")
	}
}

// TestRecordedResultsAreRead: what an earlier leader recorded is read and shown, and not counted again.
func TestRecordedResultsAreRead(t *testing.T) {
	l, reporter := newLab(t, never), new(fakeReporter)
	l.options.Progress = reporter.options()
	l.results.known = map[uint32]string{0: digestOf(0), 2: digestOf(2)}
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 3, gatherRound(3))
	read := len(resultOf(0))
	l.until("the recorded results to be shown", func() bool { return reporter.isShown("+.+") })
	l.join("w1", 1).first(0).announce(1)
	d.gathers()
	if want := []uint64{uint64(read)}; !slices.Equal(reporter.steps, want) {
		t.Errorf("counted were %v steps, want %v", reporter.steps, want)
	}
	if x.progress.show(time.Now()); reporter.last.Step != 2*uint64(read) {
		t.Errorf("after the round %d steps were shown", reporter.last.Step)
	}
	if r := &x.results; x.progress.tasks != nil || x.progress.counted != nil || r.bytes != nil || r.digests != nil ||
		r.took != nil {
		t.Error("what is known of the round outlives it")
	}
}

// TestWorkByWorker: tasks and their time are counted by worker and by kind. The time that a worker says is bounded, and
// a partial that does not fit the round is not counted.
func TestWorkByWorker(t *testing.T) {
	l, w1, w2, x := withTwo(t)
	r := reduceRound(4)
	r.Kind = "step"
	d := l.do(x, 1, r)
	task1, task2 := w1.first(0), w2.first(0)
	if task1.run.Kind != "step" {
		t.Errorf("the worker is told of %q", task1.run.Kind)
	}
	task1.partials()
	nobody := &assignment{w1, task1.run, protocol.ResultsOf(subjects.Results("a", epoch), "nobody")}
	nobody.partial(task1.run.Tasks[0], func(p *protocol.Partial) {
		p.Worker, p.Compute = "nobody", uint64(protocol.MaxCompute)
	})
	nobody.partial(task1.run.Tasks[0], func(p *protocol.Partial) { p.Worker, p.Level = "nobody", 200 })
	l.dropped(metrics.DropDuplicate, 1)
	l.dropped(metrics.DropMisshapen, 1)
	task2.partials()
	d.sums()
	total := 0.0
	for _, id := range []string{"w1", "w2"} {
		got := l.metric("leader_worker_tasks_total", id)
		if total += got; got == 0 {
			t.Errorf("%s has computed nothing", id)
		}
	}
	l.counted("leader_worker_tasks_total", metrics.Other, 1)
	if seconds := l.metric("leader_worker_task_seconds_total", metrics.Other); total != 4 ||
		seconds != protocol.MaxCompute.Seconds() {
		t.Errorf("%v tasks, and %v s of a worker that nobody knows", total, seconds)
	}
	if n := l.metric("task_seconds", "step"); n < 3 {
		t.Errorf("%v tasks are of kind step", n)
	}
	for _, w := range l.d.Workers() {
		if _, ok := w.TaskSeconds["step"]; !ok || w.Tasks == 0 || w.MainKind != "step" || w.LastSeen < 0 {
			t.Errorf("worker %+v", w)
		}
	}
}

// TestSecondsByKind: the mean follows what is new, and kinds are bounded.
func TestSecondsByKind(t *testing.T) {
	var p said
	for range 100 {
		p.add("step", 1, 2)
	}
	for range 100 {
		p.add("step", 4, 1)
	}
	if m := p.mean["step"]; m < 1 || m > 1.001 {
		t.Errorf("a mean of %v", m)
	}
	for i := range 100 {
		p.add(fmt.Sprint("kind ", i), 1, 1000)
	}
	if p.add("", 1, 1); len(p.mean) != maxKinds || p.mainKind() != "kind 0" {
		t.Errorf("%d kinds, mostly %q", len(p.mean), p.mainKind())
	}
}

// foldsOf is a TaskReporter of folds. A result is the number of its task.
type foldsOf []round.Progress

func (f foldsOf) ResultProgress(result []byte) (round.Progress, error) { return f[result[0]], nil }
func (f foldsOf) RoundProgress(tasks []round.TaskProgress) round.Progress {
	return pipeline.SumFolds(tasks)
}

// told is a progress and what it has told.
type told struct {
	*progress
	work protocol.Work
	last round.Progress
}

func newTold(r round.TaskReporter, tasks int) *told {
	x := &told{}
	x.progress = &progress{ProgressOptions: ProgressOptions{
		Reporter: r,
		Count: func(w protocol.Work) {
			x.work = protocol.Work{Rounds: x.work.Rounds + w.Rounds, Steps: x.work.Steps + w.Steps,
				Samples: x.work.Samples + w.Samples}
		},
		Show: func(_ int, p round.Progress) { x.last = p },
	}}
	x.begin(&round.Round{Tasks: tasks, How: &round.Gather{}})
	return x
}

// now returns how far the tasks are now.
func (x *told) now() round.Progress {
	x.shown, x.news = time.Time{}, true
	x.show(time.Now())
	return x.last
}

// arrive has the result of a task arrive.
func (x *told) arrive(task int, known bool) { x.have(task, x.read([]byte{byte(task)}), 0, known) }

// TestProgressCountsOnce: tasks may be computed twice or again, and workers may report in any order. Each task counts
// once, and exactly once its result is here.
func TestProgressCountsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tasks := rapid.IntRange(1, 5).Draw(t, "tasks")
		ends := make(foldsOf, tasks)
		for u := range ends {
			steps := rapid.Uint64Range(1, 100).Draw(t, "steps")
			ends[u] = round.Progress{Step: steps, Steps: steps, Samples: 10 * steps, Loss: 0.5}
		}
		x := newTold(ends, tasks)
		var want protocol.Work
		known := make([]protocol.Work, tasks) // of earlier leaders
		recorded := make([]bool, tasks)
		for u := range ends {
			if recorded[u] = rapid.Bool().Draw(t, "recorded"); recorded[u] {
				x.have(u, nil, 0, true)
				x.arrive(u, true)
				continue
			}
			n := rapid.Uint64Range(0, ends[u].Step).Draw(t, "known")
			known[u] = protocol.Work{Rounds: n, Steps: n, Samples: 10 * n}
		}
		for range rapid.IntRange(0, 30).Draw(t, "reports") {
			u := rapid.IntRange(0, tasks-1).Draw(t, "task")
			if recorded[u] {
				continue
			}
			n := rapid.Uint64Range(known[u].Steps, ends[u].Step).Draw(t, "step")
			x.report(&protocol.Progress{Task: uint32(u), Done: protocol.Work{Rounds: n, Steps: n, Samples: 10 * n}, Steps: 200,
				Loss: 1, Counted: known[u]})
			if p := x.now(); p.Step > p.Steps {
				t.Fatalf("step %d of %d", p.Step, p.Steps)
			}
		}
		sum := uint64(0)
		for u, end := range ends {
			sum += end.Step
			if recorded[u] {
				continue
			}
			w := protocol.Work{Rounds: end.Step, Steps: end.Step, Samples: end.Samples}
			x.report(&protocol.Progress{Task: uint32(u), Done: w, Steps: 200, Loss: 1, Counted: known[u]})
			x.arrive(u, false)
			x.arrive(u, false)
			more := w.Beyond(known[u])
			want = protocol.Work{Rounds: want.Rounds + more.Rounds, Steps: want.Steps + more.Steps, Samples: want.Samples +
				more.Samples}
		}
		if x.work != want {
			t.Fatalf("counted %+v, want %+v", x.work, want)
		}
		if p := x.now(); p.Step != sum || p.Steps != sum || p.Samples != 10*sum || math.Abs(p.Loss-0.5) > 1e-12 {
			t.Fatalf("at the end %+v, want %d steps", p, sum)
		}
	})
}

// TestProgressOfAFoldComputedAgain: progress does not fall back, and nothing counts twice.
func TestProgressOfAFoldComputedAgain(t *testing.T) {
	x := newTold(foldsOf{{Step: 100, Steps: 100, Samples: 1000, Loss: 0.25}, {Loss: -1}}, 2)
	report := func(step uint64) {
		x.report(&protocol.Progress{Done: protocol.Work{Rounds: step, Steps: step, Samples: 10 * step}, Steps: 100, Loss: 1})
	}
	for _, step := range []uint64{60, 10, 30, 70} { // its worker died at 60
		report(step)
	}
	if p := x.now(); p.Step != 70 || p.Steps != 200 || x.work != (protocol.Work{Rounds: 70, Steps: 70, Samples: 700}) {
		t.Errorf("%+v, counted %+v", p, x.work)
	}
	report(40)
	if p := x.now(); p.Step != 70 {
		t.Errorf("fell back to step %d", p.Step)
	}
}

// TestProgressOfWrongReports: impossible reports do no harm: no panic, and no ratio above 1. Once the result is here
// progress is right.
func TestProgressOfWrongReports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newTold(foldsOf{{Step: 5, Steps: 5, Samples: 50, Loss: 0.5}, {Step: 5, Steps: 5, Samples: 50, Loss: 0.5}}, 2)
		count := rapid.SampledFrom([]uint64{0, 1, 7, 1 << 40, protocol.MaxCount})
		for range 10 {
			m := &protocol.Progress{
				Task: rapid.Uint32Range(0, 1).Draw(t, "task"), Steps: count.Draw(t, "most"), Loss: rapid.Float64Range(-5, 1e300).
					Draw(t, "loss"),
				Done: protocol.Work{Rounds: count.Draw(t, "rounds"), Steps: count.Draw(t, "steps"),
					Samples: count.Draw(t, "samples")},
				Counted: protocol.Work{Steps: count.Draw(t, "counted")},
			}
			x.report(m)
			if p := x.now(); p.Steps > 0 && p.Step > p.Steps || p.Loss-p.Loss != 0 {
				t.Fatalf("%+v after %+v", p, m)
			}
		}
		x.arrive(0, false)
		x.arrive(1, false)
		if p := x.now(); p.Step != 10 || p.Steps != 10 || p.Samples != 100 || p.Loss != 0.5 {
			t.Fatalf("at the end %+v", p)
		}
	})
}

// reporterAlone hides that a TaskReporter counts.
type reporterAlone struct{ round.TaskReporter }

// TestCountedTasks: runs that are counted have the same progress as runs that are listed, and take a fifth of the
// memory.
func TestCountedTasks(t *testing.T) {
	cells := &round.Cells{Rows: []round.CellRow{{Algorithm: "structrf", Params: json.RawMessage(`{}`)}},
		Repeats: 1, Folds: 4}
	trainer, err := pipeline.New(&round.Job{Algorithm: round.AlgorithmCells, Numerics: round.Numerics,
		Split: dataset.Split{Folds: 4}, Cells: cells}, new(dataset.Manifest), nil)
	if err != nil {
		t.Fatal(err)
	}
	g := trainer.(round.TaskReporter)
	if size, of := unsafe.Sizeof(countedTask{}), unsafe.Sizeof(round.TaskProgress{}); 4*size > of {
		t.Errorf("%d bytes of a task, listed %d", size, of)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "tasks")
		counted, listed := newTaskList(g, n), newTaskList(reporterAlone{g}, n)
		if _, ok := counted.(*countedTasks); !ok {
			t.Fatal("runs are not counted")
		}
		for range rapid.IntRange(0, 20).Draw(t, "events") {
			u := rapid.IntRange(0, n-1).Draw(t, "task")
			if rapid.Bool().Draw(t, "ends") {
				notRun := rapid.Bool().Draw(t, "not run")
				counted.end(u, notRun)
				listed.end(u, notRun)
			} else {
				p := round.Progress{Step: rapid.Uint64Range(0, 9).Draw(t, "step"), Samples: rapid.Uint64Range(0, 99).
					Draw(t, "samples"), Loss: 0.5, Phase: rapid.SampledFrom([]string{"", "training", "failed"}).Draw(t, "phase")}
				counted.set(u, p, 0)
				listed.set(u, p, 0)
			}
			a, b := counted.at(u), listed.at(u)
			if a.Step != b.Step || a.Samples != b.Samples || a.Known != b.Known || a.Done != b.Done || a.NotRun != b.NotRun {
				t.Fatalf("task %d is counted as %+v, listed as %+v", u, a, b)
			}
			if got, want := counted.progress(), listed.progress(); got != want {
				t.Fatalf("counted %+v, listed %+v", got, want)
			}
		}
	})
}

// failingReporter is a fakeReporter for which the task with the number 1 failed.
type failingReporter struct{ fakeReporter }

func (*failingReporter) ResultProgress(result []byte) (p round.Progress, err error) {
	if string(result) == string(resultOf(1)) {
		p.Phase = "it failed"
	}
	return p, nil
}

func (*failingReporter) HasFailed(p round.Progress) bool                 { return p.Phase == "it failed" }
func (*failingReporter) CountedProgress(round.TaskCounts) round.Progress { return round.Progress{} }

// TestRecordsFailures: it is recorded which results are of tasks that failed.
func TestRecordsFailures(t *testing.T) {
	l, reporter := newLab(t, never), new(failingReporter)
	l.options.Progress = ProgressOptions{Reporter: reporter, Count: reporter.count, Show: reporter.show}
	w := l.join("w1", 3)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 3, gatherRound(3))
	for task, at := range []*assignment{w.first(0), w.run(), w.run()} {
		at.announce(uint32(task))
	}
	d.gathers()
	l.until("three results to be recorded", func() bool { return len(l.results.tasks()) == 3 })
	l.results.mu.Lock()
	defer l.results.mu.Unlock()
	if !slices.Equal(l.results.failed, []uint32{1}) {
		t.Errorf("tasks %v were recorded as failed", l.results.failed)
	}
}

// TestTimesOfTasks: a task that was heard of while it ran has the times of its messages, and another one the time that
// its worker computed.
func TestTimesOfTasks(t *testing.T) {
	x := newTold(foldsOf{{Step: 10, Steps: 10}, {Step: 10, Steps: 10}}, 2)
	l := x.tasks.(*listedTasks)
	l.set(0, round.Progress{Step: 2, Steps: 10}, 3)
	l.set(0, round.Progress{Step: 10, Steps: 10}, 7)
	l.took(0, 6)
	l.set(1, round.Progress{Step: 10, Steps: 10}, 7)
	l.took(1, 6)
	if got, want := l.tasks[0].Time, (round.TaskTime{Began: 3, Last: 7, From: 2}); got != want {
		t.Errorf("heard of: %+v, want %+v", got, want)
	}
	if got, want := l.tasks[1].Time, (round.TaskTime{Began: 1, Last: 7}); got != want {
		t.Errorf("not heard of: %+v, want %+v", got, want)
	}
}
