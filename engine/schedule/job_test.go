package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/digests"
)

// TestTasksAreSmall: a round may have a million tasks. Next to nothing is kept of a task that nobody was given, or that
// has ended.
func TestTasksAreSmall(t *testing.T) {
	if size := unsafe.Sizeof(task{}); size > 16 {
		t.Errorf("a task takes %d bytes", size)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := newStage(nil).job(1, Options{})
		n := rapid.IntRange(1, 5).Draw(t, "tasks")
		given := make([]bool, n)
		ended := make([]bool, n)
		follow := func(list []Action) {
			for _, a := range list {
				switch a := a.(type) {
				case *SendRun:
					for _, task := range a.Tasks {
						given[task] = true
					}
				case *Ended:
					ended[a.Task] = true
				}
			}
		}
		follow(s.begin(gatherRound(n)))
		s.join("w", 1)
		for range rapid.IntRange(0, 20).Draw(t, "events") {
			task, result := rapid.IntRange(0, n-1).Draw(t, "task"), Result{Digest: digests.Digest{1}}
			var e Event
			switch rapid.SampledFrom([]string{"wake", "fail", "announce", "store", "record", "lose"}).Draw(t, "event") {
			case "wake":
				e = &Woken{}
			case "fail":
				e = &TaskFailed{Task: task, Worker: "w"}
			case "announce":
				if !given[task] {
					continue
				}
				e = &ResultAnnounced{Task: task, Worker: "w", Result: result}
			case "store":
				e = &ResultStored{Task: task, Result: result}
			case "record":
				e = &ResultRecorded{Task: task, Result: result}
			case "lose":
				e = &ResultLost{Task: task}
				ended[task] = false
			}
			s.now = s.now.Add(10 * time.Second)
			if s.round == 0 || s.job.over {
				break
			}
			follow(s.step(e))
			for i := range s.job.tasks {
				if has := s.job.tasks[i].attempt != nil; has != (given[i] && !ended[i]) {
					t.Fatalf("task %d was given: %v, has ended: %v; it has an attempt: %v", i, given[i], ended[i], has)
				}
			}
		}
	})
}

// TestLeasesBehind: a lease waits for a slot if its worker has as many earlier ones as slots, of all jobs.
func TestLeasesBehind(t *testing.T) {
	st := newStage(t)
	a, b := st.job(1, Options{}), st.job(2, Options{})
	st.join("w", 1)
	a.begin(gatherRound(1))
	b.begin(gatherRound(1))
	first, second := &a.job.tasks[0].leases[0], &b.job.tasks[0].leases[0]
	if first.on == nil || second.on == nil || first.isBehind() || !second.isBehind() {
		t.Fatalf("leases %+v and %+v", first, second)
	}
	if v := b.job.View(st.now); v.Left != 1 {
		t.Errorf("view %+v", v)
	}
	list := a.step(&ResultAnnounced{Worker: "w", Result: Result{Digest: digests.Digest{1}}})
	if len(actionsOf[Store](list)) != 1 || second.isBehind() {
		t.Errorf("actions %s; behind: %v", showAll(list), second.isBehind())
	}
}

// TestUnableWorkers: a failure that passes does not fail the job, though no other worker can ever compute the task.
func TestUnableWorkers(t *testing.T) {
	s := newStage(t).job(1, Options{})
	s.join("w1", 1)
	s.begin(gatherRound(1))
	if list := s.step(&TaskFailed{Worker: "w1", Unable: true}); len(actionsOf[Fail](list)) != 1 {
		t.Error("the only worker is unable, and the job goes on")
	}
	s.job.End(nil, s.now)
	s.join("w2", 1)
	if tasks := runsOf(s.begin(gatherRound(1)), "w2"); !slices.Equal(tasks, []uint32{0}) {
		t.Fatalf("w2 is sent %v", tasks)
	}
	s.workers.Hear(Report{Name: "w2", Leaving: true}, s.now) // the round has not seen it yet
	if list := s.step(&TaskFailed{Worker: "w2"}); len(actionsOf[Fail](list)) > 0 {
		t.Errorf("actions %s", showAll(list))
	}
}

// TestFirstIsWhoCan: a job lets another go first only if the other can use the slot.
func TestFirstIsWhoCan(t *testing.T) {
	st := newStage(t)
	st.join("w", 2)
	x, y := st.workers.NewJob(1, nil, Options{}), st.workers.NewJob(2, nil, Options{})
	x.leased, y.wants = make([]*Lease, 1), true
	if on, next := st.workers.lease(x.claim, "", 1); on != nil || next != y.claim {
		t.Error("the other job does not go first")
	}
	y.unable["w"] = "it lacks the memory"
	if on, next := st.workers.lease(x.claim, "", 1); on == nil || next != nil {
		t.Error("nobody has the slot")
	}
}

// TestLateEvents: what was done for an earlier round, which had more tasks, changes nothing. Nothing is given out
// twice.
func TestLateEvents(t *testing.T) {
	s := newStage(t).job(1, Options{})
	s.join("w", 1)
	s.begin(gatherRound(9))
	s.job.End(nil, s.now)
	for _, r := range []*round.Round{gatherRound(1), reduceRound(1)} {
		s.begin(r)
		for _, e := range []Event{
			&ResultStored{Round: 1, Task: 8}, &ResultRecorded{Round: 1, Task: 8}, &ResultLost{Round: 1, Task: 8},
			&SkipsRecorded{Round: 1, Tasks: []uint32{7, 8}}, &LeaderComputed{Round: 1, Task: 8},
		} {
			list := s.job.Step(nil, s.now, e)
			if len(list) > 0 || s.job.open != 1 {
				t.Errorf("event %T: %s, %d tasks are open", e, showAll(list), s.job.open)
			}
		}
		s.job.End(nil, s.now)
	}
}

// TestViewAfterRound: of a gather round that is over there is nothing to show, and nothing is kept.
func TestViewAfterRound(t *testing.T) {
	s := newStage(t).job(1, Options{})
	s.join("w", 1)
	r := gatherRound(3)
	r.Gather().Groups = []int32{0, 0, 0}
	s.begin(r)
	result := Result{Digest: digests.Digest{1}, Took: 10 * time.Second}
	s.step(&ResultAnnounced{Worker: "w", Result: result})
	s.step(&ResultStored{Result: result})
	s.step(&ResultRecorded{Result: result})
	s.pass(estimateEvery)
	if v := s.job.View(s.now); v.Left != 2 || len(v.Running) == 0 {
		t.Errorf("during the round: %+v", v)
	}
	s.job.End(nil, s.now)
	if v := s.job.View(s.now); v.Left != 0 || len(v.Running) != 0 || s.job.gather.queue != nil {
		t.Errorf("after the round: %+v", v)
	}
}

// TestViewOfSharedWorker: a slot counts once, although a worker has a lease of each job, and a task that waits for the
// slot is computed from the moment on when the task before it has ended.
func TestViewOfSharedWorker(t *testing.T) {
	st := newStage(t)
	st.join("w", 1)
	a, b := st.job(1, Options{}), st.job(2, Options{})
	a.begin(gatherRound(3))
	b.begin(gatherRound(3))
	began := st.now
	b.pass(0) // the lease that a has beyond its slot is b's
	running := func() string {
		text := ""
		for _, s := range []*scene{a, b} {
			for _, r := range s.job.View(st.now).Running {
				text += fmt.Sprintf("task %d of job %d after %v;", r.Task, s.job.job, r.Since.Sub(began))
			}
		}
		return text
	}
	if got := running(); got != "task 0 of job 1 after 0s;" {
		t.Fatalf("running: %s", got)
	}
	st.now = st.now.Add(10 * time.Second)
	a.step(&ResultAnnounced{Worker: "w", Result: Result{Digest: digests.Digest{1}, Took: 10 * time.Second}})
	b.pass(time.Second)
	got := running()
	if strings.Count(got, ";") != 1 || !strings.Contains(got, "after 10s;") {
		t.Errorf("after a result: %s", got)
	}
}

// TestViewOfLargerWorker: a task that waits for a slot is computed once its worker has more slots, although nothing
// ends.
func TestViewOfLargerWorker(t *testing.T) {
	st := newStage(t)
	st.join("w", 1)
	a := st.job(1, Options{})
	a.begin(gatherRound(2))
	for slots := 1; slots <= 2; slots++ {
		st.join("w", slots)
		if got := len(a.job.View(st.now).Running); got != slots {
			t.Errorf("with %d slots, %d tasks are computed", slots, got)
		}
	}
}

// TestSpeculateBesideHeld: an idle worker is given a task that takes long, although a budget holds other tasks back.
func TestSpeculateBesideHeld(t *testing.T) {
	var b Budgets
	share := b.Open(ShareOptions{Limits: map[string]float64{"x": 100}, Rows: []Row{{}, {Budget: "x"}}})
	b.Spend(nil)
	s := newStage(t).job(1, Options{Budget: share})
	s.join("w1", 2)
	s.join("w2", 2)
	r := gatherRound(4)
	r.Gather().Groups = []int32{0, 0, 1, 1} // task 3 waits until it is known how long task 2 takes
	s.begin(r)
	s.step(&ResultAnnounced{Worker: "w1", Result: Result{Digest: digests.Digest{1}, Took: time.Second}})
	list := s.pass(10 * time.Second)
	if v := s.job.View(s.now); v.Held != 1 || len(runsOf(list, "w1")) != 1 || len(runsOf(list, "w2")) != 1 {
		t.Errorf("%d tasks are held back; actions %s", v.Held, showAll(list))
	}
}

// TestBudgetOfLostResult: a result comes of a lease that was lost, and cannot be stored. Its task is left to begin
// once.
func TestBudgetOfLostResult(t *testing.T) {
	var b Budgets
	share := b.Open(ShareOptions{Limits: map[string]float64{"x": 100}, Rows: []Row{{Budget: "x"}}})
	b.Spend(nil)
	s := newStage(t).job(1, Options{Budget: share})
	s.join("w", 1)
	r := gatherRound(1)
	r.Gather().Groups = []int32{0}
	s.begin(r)
	s.workers.Unreachable("w")
	s.step(&Woken{})
	s.step(&ResultAnnounced{Worker: "w", Result: Result{Digest: digests.Digest{1}}})
	s.step(&ResultLost{})
	if g := &share.groups[0]; s.job.tasks[0].state != Waiting || g.left != 1 {
		t.Errorf("%d tasks are left", g.left)
	}
}

// TestManyChunks: a value of many chunks takes few actions. A step gives it to all workers.
func TestManyChunks(t *testing.T) {
	s := newStage(t).job(1, Options{})
	s.workers.Hear(Report{Name: "w", Slots: 1}, s.now)
	v := round.Var{ID: 1, Version: 1}
	for i := range 1000 {
		v.Chunks = append(v.Chunks, chunk(i))
	}
	r := gatherRound(2)
	r.Vars = []round.Var{v}
	if list := actionsOf[SendChunks](s.begin(r)); len(list) != 1 || list[0].N != 1000 || list[0].Known {
		t.Errorf("actions %+v", list)
	}
	s.step(&ResultAnnounced{Worker: "w", Result: Result{Digest: digest("7")}})
	s.job.End(nil, s.now)
	r.Vars[0].Version = 2
	list := actionsOf[SendChunks](s.begin(r))
	if len(list) != 3 || list[1].From != 7 || list[1].N != 1 || !list[1].Known || list[2].From != 8 || list[2].N != 992 {
		t.Errorf("actions %+v", list)
	}
}
