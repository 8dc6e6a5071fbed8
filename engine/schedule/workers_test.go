package schedule

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// limitsForTest are the limits of a leader whose heartbeat is a second.
var limitsForTest = Limits{
	Heartbeat: time.Second, Dead: 5 * time.Second, Slow: 2 * time.Second, Lost: 5 * time.Second, Remind: 20 * time.Second,
	Hold: 50 * time.Second, Avoided: 100 * time.Second, GiveUp: 10 * time.Minute, Short: time.Second, Ahead: 1,
}

// stage is jobs and workers without a cluster. Time passes only if the test says so.
type stage struct {
	t       testing.TB
	workers *Workers
	now     time.Time
	shards  []dataset.ShardRef
}

// newStage returns a stage with a dataset of eight shards.
func newStage(t testing.TB) *stage {
	s := &stage{t: t, workers: NewWorkers(limitsForTest, nil), now: time.Unix(1000, 0)}
	for i := range 8 {
		s.shards = append(s.shards, dataset.ShardRef{Digest: fmt.Sprintf("%064d", i)})
	}
	return s
}

// join has the workers hear of a worker with so many slots and all shards.
func (s *stage) join(name string, slots int) {
	r := Report{Name: name, Slots: slots, Full: true}
	for i := range s.shards {
		r.Shards = append(r.Shards, s.shards[i].Digest)
	}
	s.workers.Hear(r, s.now)
}

// scene is one job of a stage, and its round.
type scene struct {
	*stage
	job   *Job
	round uint64
}

// job makes a job.
func (s *stage) job(id uint64, o Options) *scene {
	return &scene{stage: s, job: s.workers.NewJob(id, s.shards, o)}
}

// begin begins the next round.
func (s *scene) begin(r *round.Round, audit ...int) []Action {
	s.round++
	return s.job.Begin(nil, s.now, s.round, r, nil, audit)
}

// step applies an event of the round.
func (s *scene) step(e Event) []Action {
	if n := reflect.ValueOf(e).Elem().FieldByName("Round"); n.IsValid() {
		n.SetUint(s.round)
	}
	return s.job.Step(nil, s.now, e)
}

// pass lets time pass, and applies a tick.
func (s *scene) pass(d time.Duration) []Action {
	s.now = s.now.Add(d)
	return s.step(&Tick{})
}

func reduceRound(tasks int) *round.Round {
	return &round.Round{Op: 3, Tasks: tasks, How: &round.Reduce{}}
}

func gatherRound(tasks int) *round.Round {
	return &round.Round{Op: 4, Tasks: tasks, How: &round.Gather{}}
}

// actionsOf returns the actions of a type.
func actionsOf[T any](list []Action) (found []*T) {
	for _, a := range list {
		if a, ok := any(a).(*T); ok {
			found = append(found, a)
		}
	}
	return found
}

// showAll writes actions as a trace does.
func showAll(list []Action) string {
	var lines []string
	for _, a := range list {
		lines = append(lines, show(a))
	}
	return strings.Join(lines, "; ")
}

// runsOf lists the tasks that a worker is sent.
func runsOf(list []Action, worker string) (tasks []uint32) {
	for _, a := range actionsOf[SendRun](list) {
		if a.Worker == worker {
			tasks = append(tasks, a.Tasks...)
		}
	}
	return tasks
}

// namesOf lists the workers that may be given tasks.
func namesOf(w *Workers, reduce bool) (names []string) {
	for _, at := range w.list(reduce) {
		names = append(names, at.Name)
	}
	return names
}

// TestWorkersChange: the version grows if a worker comes, goes or has other shards, and for nothing else.
func TestWorkersChange(t *testing.T) {
	w, now := NewWorkers(limitsForTest, nil), time.Now()
	brief := Report{Name: "w1", Slots: 1}
	full := func(shards ...string) Report { return Report{Name: "w1", Slots: 1, Full: true, Shards: shards} }
	leaving := Report{Name: "w1", Leaving: true}
	for i, step := range []struct {
		report          Report
		changed, joined bool
	}{
		{brief, true, true},
		{brief, false, false},
		{full("s1", "s2"), true, false},
		{full("s2", "s1"), false, false},
		{brief, false, false}, // it is not full: the last full one is in force
		{full("s1", "s3"), true, false},
		{full("s1"), true, false},
		{leaving, true, false},
		{leaving, false, false},
		{full("s1"), true, true},
	} {
		before := w.version
		changed, joined := w.Hear(step.report, now)
		if changed != step.changed || joined != step.joined || changed != (w.version > before) {
			t.Errorf("step %d: changed %v, joined %v, version %d after %d", i, changed, joined, w.version, before)
		}
	}
	if at := w.Get("w1"); at == nil || len(at.shards) != 1 || !at.shards["s1"] {
		t.Errorf("w1 is known as %+v", at)
	}
}

// TestWorkersExpire: a worker is forgotten after five heartbeats of silence, and not before.
func TestWorkersExpire(t *testing.T) {
	w, began := NewWorkers(limitsForTest, nil), time.Now()
	for _, name := range []string{"w3", "w1", "w2"} {
		w.Hear(Report{Name: name, Slots: 1}, began)
	}
	w.Hear(Report{Name: "w2", Slots: 1}, began.Add(3*time.Second))
	if gone := w.Expire(began.Add(limitsForTest.Dead)); gone != nil {
		t.Errorf("%v were forgotten too early", gone)
	}
	version := w.version
	if gone := w.Expire(began.Add(limitsForTest.Dead + 1)); !slices.Equal(gone, []string{"w1", "w3"}) ||
		w.version == version {
		t.Errorf("%v were forgotten", gone)
	}
	if names := namesOf(w, false); !slices.Equal(names, []string{"w2"}) {
		t.Errorf("%v are left", names)
	}
}

// TestLateWorkersExpire: the silence of a worker may last longer if the way to it does.
func TestLateWorkersExpire(t *testing.T) {
	w, now := NewWorkers(limitsForTest, nil), time.Now()
	for name, late := range map[string]time.Duration{"near": 0, "far": 300 * time.Millisecond} {
		w.Hear(Report{Name: name, Slots: 1, Late: late}, now)
	}
	for _, step := range []struct {
		after time.Duration
		gone  []string
	}{
		{limitsForTest.Dead, nil},
		{limitsForTest.Dead + time.Millisecond, []string{"near"}},
		{limitsForTest.Dead + 300*time.Millisecond, nil},
		{limitsForTest.Dead + 301*time.Millisecond, []string{"far"}},
	} {
		if gone := w.Expire(now.Add(step.after)); !slices.Equal(gone, step.gone) {
			t.Errorf("after %v of silence %v are forgotten, want %v", step.after, gone, step.gone)
		}
	}
}

// TestSlowWorkersArePassedOver while there are others, until they answer or some time has passed.
func TestSlowWorkersArePassedOver(t *testing.T) {
	w, began := NewWorkers(limitsForTest, nil), time.Now()
	for _, name := range []string{"w1", "w2"} {
		w.Hear(Report{Name: name, Slots: 1}, began)
	}
	check := func(want ...string) {
		t.Helper()
		if got := namesOf(w, true); !slices.Equal(got, want) {
			t.Errorf("tasks of reduce rounds go to %v, want %v", got, want)
		}
		if got := namesOf(w, false); len(got) != 2 {
			t.Errorf("tasks of gather rounds go to %v", got)
		}
	}
	answers := func(name string) bool {
		before := w.version
		w.answered(name, began)
		return w.version > before
	}
	version := w.version
	w.slow("w1", began)
	w.slow("none", began)
	if check("w2"); w.version != version+1 {
		t.Errorf("version %d after %d", w.version, version)
	}
	w.slow("w2", began)
	check("w1", "w2") // all are slow
	if !answers("w1") || answers("w1") || answers("none") {
		t.Error("a slow period ends once")
	}
	check("w1")
	for _, wait := range []time.Duration{time.Second, limitsForTest.Avoided + time.Second} {
		now := began.Add(wait)
		w.Hear(Report{Name: "w1", Slots: 1}, now)
		w.Hear(Report{Name: "w2", Slots: 1}, now)
		before := w.version
		gone := w.Expire(now)
		if ends := wait > limitsForTest.Avoided; len(gone) > 0 || (w.version > before) != ends {
			t.Errorf("after %v %v are forgotten, version %d after %d", wait, gone, w.version, before)
		} else if ends {
			check("w1", "w2")
		} else {
			check("w1")
		}
	}
}

// TestSlowPeriodsGrow: a worker that always answers late costs a wait now and then, and not in each round.
func TestSlowPeriodsGrow(t *testing.T) {
	limits := limitsForTest
	limits.Dead = time.Hour
	w, now := NewWorkers(limits, nil), time.Now()
	w.Hear(Report{Name: "w", Slots: 1}, now)
	at := w.Get("w")
	for i, least := range []time.Duration{0, slowBeats, 2 * slowBeats, 4 * slowBeats} {
		w.slow("w", now)
		now = now.Add(time.Second / 2)
		w.answered("w", now)
		if ended := at.slowUntil.IsZero(); ended != (least == 0) {
			t.Errorf("period %d ends at once: %v", i, ended)
		}
		if least == 0 {
			continue
		}
		w.HeardAll(now)
		if w.Expire(now.Add((least - 1) * time.Second)); at.slowUntil.IsZero() {
			t.Errorf("period %d ended too early", i)
		}
		now = now.Add(least * time.Second)
		w.HeardAll(now)
		if w.Expire(now); !at.slowUntil.IsZero() {
			t.Errorf("period %d has not ended", i)
		}
	}
}

// TestRefusalChanges: a worker of another version that was started again under the same name before its silence told is
// what it says now.
func TestRefusalChanges(t *testing.T) {
	w := NewWorkers(limitsForTest, nil)
	for i, refusal := range []string{"", "the worker has arithmetic version 2, this coordinator has 1", ""} {
		changed, joined := w.Hear(Report{Name: "w1", Slots: 1, Refusal: refusal}, time.Now())
		if want := refusal == ""; !changed || !joined || (w.Get("w1") != nil) != want {
			t.Errorf("report %d: changed %v, joined %v, usable %v, want %v", i, changed, joined, w.Get("w1") != nil, want)
		}
		if got := w.Refused("w1"); got != refusal {
			t.Errorf("report %d: refused for %q", i, got)
		}
	}
}

// TestShardsAreBounded: what all workers say that they have is bounded together. A worker that leaves makes room again.
func TestShardsAreBounded(t *testing.T) {
	w := NewWorkers(limitsForTest, nil)
	report := func(name string, n int) int {
		r := Report{Name: name, Full: true}
		for i := range n {
			r.Shards = append(r.Shards, fmt.Sprint(i))
		}
		w.Hear(r, time.Unix(1, 0))
		return len(w.byName[name].shards)
	}
	if n := report("a", maxShards-10); n != maxShards-10 {
		t.Fatalf("%d are known", n)
	}
	if n := report("b", 10); n != 10 || w.shards != maxShards {
		t.Errorf("%d are known of the second, %d in all", n, w.shards)
	}
	if n := report("b", 11); n != 10 {
		t.Errorf("%d are known of a worker that says too many", n)
	}
	if n := report("a", maxShards-11); n != maxShards-11 || w.shards != maxShards-1 {
		t.Errorf("%d are known, %d in all", n, w.shards)
	}
	w.Hear(Report{Name: "a", Leaving: true}, time.Unix(1, 0))
	if n := report("b", 11); n != 11 || w.shards != 11 {
		t.Errorf("%d are known once there is room, %d in all", n, w.shards)
	}
	w.Hear(Report{Name: "b", Full: true, Shards: []string{"1", "1", "2"}}, time.Unix(1, 0))
	if n := len(w.byName["b"].shards); n != 2 || w.shards != 2 {
		t.Errorf("%d are known of a worker that repeats itself, %d in all", n, w.shards)
	}
}

// TestWantsNothing: a job whose tasks avoid the only worker with a free slot leaves it to others.
func TestWantsNothing(t *testing.T) {
	st := newStage(t)
	st.join("v", 0)
	st.join("w", 1)
	x, y := st.workers.NewJob(1, nil, Options{}), st.workers.NewJob(2, nil, Options{})
	x.leased, y.wants = make([]*Lease, 1), true // y had a task that avoids nobody
	if on, _ := st.workers.lease(y.claim, "w", 1); on != nil {
		t.Fatal("a task is given to the worker that it avoids")
	}
	if on, _ := st.workers.lease(x.claim, "", 1); on == nil {
		t.Error("nobody has the slot")
	}
}
