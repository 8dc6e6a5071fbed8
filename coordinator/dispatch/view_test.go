package dispatch

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestIdleReason: each reason why a worker computes nothing is told with its job. Reasons that somebody can change come
// first.
func TestIdleReason(t *testing.T) {
	between := schedule.JobView{Job: 1}
	small := gathering(2, schedule.JobView{Tasks: 3, Left: 3, Ready: 1})
	small.Unable = map[string]string{"w": "it takes up to 2 MiB, and --memory allows 1 MiB"}
	few := gathering(3, schedule.JobView{Tasks: 5, Left: 2})
	w := standing{name: "w"}
	slow := standing{name: "w", slow: 1500 * time.Millisecond}
	for _, test := range []struct {
		what string
		w    standing
		jobs []schedule.JobView
		want protocol.IdleReason
		job  uint64
		says string
	}{
		{"no job", w, nil, "", 0, ""},
		{"refused", standing{name: "w", out: protocol.IdleRefused, why: "protocol 9"},
			[]schedule.JobView{planned(1, "w", "w")}, protocol.IdleRefused, 0, "protocol 9"},
		{"between rounds", w, []schedule.JobView{between}, protocol.IdleNextRound, 1, "next distributes tasks"},
		{"it has a task of the plan", w, []schedule.JobView{small, planned(4, "w", "w")}, protocol.IdleNextRound, 4,
			"next round"},
		{"no shards", w, []schedule.JobView{planned(4, "v", "w")}, protocol.IdleShards, 4, "shards"},
		{"fewer tasks", w, []schedule.JobView{planned(4, "v", "v")}, protocol.IdleFewTasks, 4, "1 task for 2 workers"},
		{"slow", slow, []schedule.JobView{planned(4, "v", "v")}, protocol.IdleStalled, 4, "1.5s"},
		{"slow in a gather round, which ignores it", slow, []schedule.JobView{few}, protocol.IdleFewTasks, 3, "2 of 5 tasks"},
		{"memory", w, []schedule.JobView{small}, protocol.IdleMemory, 2, "2 MiB"},
		{"memory before fewer tasks", w, []schedule.JobView{few, small}, protocol.IdleMemory, 2, "--memory"},
		{"the last tasks", w, []schedule.JobView{few}, protocol.IdleFewTasks, 3, "2 of 5 tasks"},
		{"tasks are there", w, []schedule.JobView{gathering(1, schedule.JobView{Tasks: 3, Left: 3, Ready: 2})},
			protocol.IdleNextRound, 1, "the worker gets tasks when the leader next distributes tasks"},
		{"tasks rest", w, []schedule.JobView{gathering(1, schedule.JobView{Tasks: 3, Left: 3, Resting: 2})},
			protocol.IdleJobWaits, 1, "2 tasks failed"},
		{"1 task cannot start yet: a time budget is used up, or other tasks with the same budget are running", w,
			[]schedule.JobView{gathering(1, schedule.JobView{Tasks: 3, Left: 3, Held: 1})}, protocol.IdleJobWaits, 1,
			"1 task cannot start yet: a time budget is used up, or other tasks with the same budget are running"},
		{"others are not small", standing{name: "v"}, []schedule.JobView{small}, protocol.IdleNextRound, 2,
			"the worker gets tasks when the leader next distributes tasks"},
	} {
		got, is := idleReason(&test.w, test.jobs)
		if !is {
			t.Errorf("%s: it computes", test.what)
		}
		if got.Reason != test.want || got.Job != test.job || !strings.Contains(got.Text, test.says) ||
			(got.Text == "") != (test.want == "") {
			t.Errorf("%s: %+v; want %s of job %d with %q", test.what, got, test.want, test.job, test.says)
		}
	}
}

// planned describes a reduce round of one task, which owner has and target should have, on the workers v and w.
func planned(id uint64, owner, target string) schedule.JobView {
	return schedule.JobView{Job: id, Tasks: 1, Owner: []string{owner}, Target: []string{target}, Able: []string{"v", "w"}}
}

// gathering describes a gather round.
func gathering(id uint64, v schedule.JobView) schedule.JobView {
	v.Job, v.Gather = id, true
	return v
}

// TestShortTasksAreNotIdle: a worker that is busy in each round is not idle, though no heartbeat sees it compute.
func TestShortTasksAreNotIdle(t *testing.T) {
	jobs := []schedule.JobView{planned(1, "w", "w")}
	if why, is := idleReason(&standing{name: "w", recent: true}, jobs); is {
		t.Errorf("%+v", why)
	}
	if _, is := idleReason(&standing{name: "v", recent: true}, jobs); !is {
		t.Error("another worker computes")
	}
	now := time.Now()
	s, w := &said{lastOne: now.Add(-shortly / 2)}, &schedule.WorkerView{Name: "w"}
	s.beat = *beatOf("w")
	if !s.standing(w, now).recent || s.standing(w, now.Add(shortly)).recent {
		t.Error("the last result is not known")
	}
}

// TestStanding: a worker that is not used tells why, and what helps.
func TestStanding(t *testing.T) {
	d, now := New(Config{Heartbeat: time.Second, Quarantined: map[string]string{"wrong": "other bytes"}}), time.Now()
	for _, name := range []string{"good", "wrong", "cut", "old", "full"} {
		b := beatOf(name)
		switch name {
		case "old":
			b.Numerics++
		case "full":
			b.Problem = "the worker's folder cannot be written: no space"
		}
		d.hear(b, now)
	}
	d.workers.Unreachable("cut")
	wants := map[string]struct {
		out  protocol.IdleReason
		says string
	}{
		"good": {"", ""}, "cut": {protocol.IdleUnreachable, "connection"},
		"wrong": {protocol.IdleQuarantined, "other bytes; to use the worker again: coppice cluster trust wrong"},
		"old":   {protocol.IdleRefused, "the same version"}, "full": {protocol.IdleFolder, "no space"},
	}
	views := d.workers.View(now)
	if len(views) != len(wants) {
		t.Errorf("%d workers are known", len(views))
	}
	for i := range views {
		w := &views[i]
		got, want := d.said[w.Name].standing(w, now), wants[w.Name]
		if got.name != w.Name || got.out != want.out || !strings.Contains(got.why, want.says) || got.slow != 0 {
			t.Errorf("%s: %+v", w.Name, got)
		}
	}
	if got := d.said["good"].standing(&schedule.WorkerView{Name: "good", SlowFor: time.Second},
		now); got.slow != time.Second || got.out != "" {
		t.Errorf("a slow worker: %+v", got)
	}
}

// TestIdleInARound: a worker is idle if the only task of a gather round is on another. A worker with too little memory
// says what the task needs.
func TestIdleInARound(t *testing.T) {
	l, w1, w2, x := withTwo(t)
	if idle := l.d.Idle(); idle["w1"].Reason != protocol.IdleNextRound || idle["w1"].Job != jobID {
		t.Errorf("before the first round: %+v", idle)
	}
	d := l.do(x, 1, gatherRound(1))
	task := w1.first(0)
	l.until("the other worker to be idle", func() bool {
		idle := l.d.Idle()
		_, w1Idle := idle["w1"]
		return !w1Idle && idle["w2"].Reason == protocol.IdleFewTasks
	})
	task.send((&protocol.Fail{Stamp: task.run.Stamp, Worker: "w1", Task: 0, Unable: true, Reason: "it takes up to 2 MiB"}).
		Append(nil))
	other := w2.first(0)
	l.until("the small worker to say so", func() bool {
		idle := l.d.Idle()
		_, w2Idle := idle["w2"]
		return !w2Idle && idle["w1"].Reason == protocol.IdleMemory && strings.Contains(idle["w1"].Text, "2 MiB")
	})
	other.announce(0)
	d.gathers()
	l.until("the round to end", func() bool { return l.d.Idle()["w2"].Reason == protocol.IdleNextRound })
}

// TestIdleWithoutShards: a worker that joins during a reduce round lacks the shards of its tasks, and gets tasks once
// it has them.
func TestIdleWithoutShards(t *testing.T) {
	l := newLab(t, never)
	w1 := l.join("w1", 1, 0, 1, 2, 3, 4, 5, 6, 7)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(2))
	task := w1.first(0)
	l.join("w2", 1)
	l.until("the new worker to lack shards", func() bool { return l.d.Idle()["w2"].Reason == protocol.IdleShards })
	task.partials()
	d.sums()
}

// TestAvailability: each worker counts once, by what keeps it from computing tasks of a job.
func TestAvailability(t *testing.T) {
	d := New(Config{Heartbeat: time.Second, Quarantined: map[string]string{"wrong": "other bytes"}})
	now := time.Now()
	for _, name := range []string{"b", "a", "small", "wrong", "cut", "old"} {
		b := beatOf(name)
		if name == "old" {
			b.Protocol++
		}
		d.hear(b, now)
	}
	d.workers.Unreachable("cut")
	got := availability(d.workers.View(now), map[string]string{"small": "a", "gone": "b", "wrong": "c"})
	want := Availability{
		Usable: 2, Unable: []string{"small"}, Unreachable: []string{"cut"}, Quarantined: []string{"wrong"},
		Refused: []string{"old: " + d.workers.Refused("old")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestYoungLeaderKnowsNoWorkers: a leader that has just begun does not say yet that there is no worker.
func TestYoungLeaderKnowsNoWorkers(t *testing.T) {
	l := newLab(t, quick)
	l.d.began = time.Now()
	if a := l.d.Availability(jobID); !a.Unknown || a.Usable != 0 {
		t.Errorf("at first: %+v", a)
	}
	l.d.began = time.Now().Add(-protocol.LeastLost - protocol.DeadBeats*quick)
	if a := l.d.Availability(jobID); a.Unknown {
		t.Errorf("later: %+v", a)
	}
}

// TestWhyAJobStops: why a job stops is told once it has stopped twice, for a while.
func TestWhyAJobStops(t *testing.T) {
	d := New(Config{Heartbeat: quick})
	now := time.Now().Add(-soon / 2)
	d.Stopped(jobID, errors.New("first"), now.Add(-soon))
	d.Stopped(jobID, errors.New("second"), now.Add(time.Millisecond)) // long after the first
	if why := d.Availability(jobID).Stops; why != "" {
		t.Errorf("after one stop: %q", why)
	}
	d.Stopped(jobID, errors.New("third"), now.Add(2*time.Millisecond))
	if why := d.Availability(jobID).Stops; why != "third" {
		t.Errorf("after two: %q", why)
	}
	if why := d.Availability(jobID + 1).Stops; why != "" {
		t.Errorf("another job: %q", why)
	}
	if why := d.stops[jobID].why(now.Add(2 * soon)); why != "" {
		t.Errorf("later: %q", why)
	}
}

// TestStopsAreBounded: recent stops are kept, with the beginning of a long reason.
func TestStopsAreBounded(t *testing.T) {
	l := newLab(t, quick)
	now := time.Now()
	for job := range uint64(100) {
		l.d.Stopped(job, errors.New("old"), now.Add(-2*soon))
	}
	for range 2 {
		l.d.Stopped(100, errors.New(strings.Repeat("é", 30_000)), now)
	}
	l.d.expire(now)
	l.d.mu.Lock()
	kept := len(l.d.stops)
	l.d.mu.Unlock()
	if why := l.d.Availability(100).Stops; kept != 1 || why == "" || len(why) > 2*protocol.BriefText ||
		!utf8.ValidString(why) {
		t.Errorf("%d jobs are kept, the last with %d bytes", kept, len(why))
	}
}

// TestFailingTask: a task that fails on each worker tells why. A task that another worker computes does not.
func TestFailingTask(t *testing.T) {
	l, w1, w2, x := withTwo(t)
	d := l.do(x, 1, reduceRound(2))
	task1, task2 := w1.first(0), w2.first(0)
	task := task1.run.Tasks[0]
	task1.fail(task, false)
	again := w2.run(task)
	if why := l.d.Availability(jobID).Stops; why != "" {
		t.Errorf("after one failure: %q", why)
	}
	again.fail(task, false)
	last := w1.run(task)
	last.fail(task, false)
	l.until("the reason to be told", func() bool { return l.d.Availability(jobID).Stops != "" })
	w2.run(task).partials()
	task2.partials()
	d.sums()
}

// TestWorkerWithAProblem: a worker that says why it takes no tasks is given none until it says so no longer.
func TestWorkerWithAProblem(t *testing.T) {
	d, now := New(Config{Heartbeat: time.Second}), time.Now()
	b := beatOf("a")
	d.hear(b, now)
	b.Problem = "the worker's folder cannot be written: " + strings.Repeat("ö", 500)
	if changed, joined := d.hear(b, now); !changed || !joined || d.workers.Get("a") != nil {
		t.Errorf("changed %v, told %v, used %v", changed, joined, d.workers.Get("a") != nil)
	}
	a := availability(d.workers.View(now), nil)
	if len(a.Refused) != 1 || !strings.Contains(a.Refused[0], "folder cannot be written") ||
		len(a.Refused[0]) > 2*protocol.BriefText || !utf8.ValidString(a.Refused[0]) || a.Usable != 0 {
		t.Errorf("%+v", a)
	}
	if changed, _ := d.hear(b, now); changed {
		t.Error("the same again is news")
	}
	b.Problem = ""
	if changed, _ := d.hear(b, now); !changed || d.workers.Get("a") == nil {
		t.Error("it is not used again")
	}
}
