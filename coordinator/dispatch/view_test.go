package dispatch

import (
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// Each reason for which a worker computes nothing is told with the job that it comes from. What somebody can change
// comes before what passes.
func TestIdleReason(t *testing.T) {
	// planned is a summed round of a plan with w as an owner, as a target, or without tasks.
	planned := func(id uint64, owner, target string) openJob {
		p := &spreadPlan{plan: &plan{owner: []string{owner}, target: []string{target}}, workers: []string{"v", "w"}}
		j := openJob{id: id, at: underWay{units: 1, plan: p}}
		j.readPlan()
		return j
	}
	collected := func(id uint64, at underWay) openJob {
		at.collected = true
		return openJob{id: id, at: at}
	}
	between := openJob{id: 1}
	small := collected(2, underWay{units: 3, left: 3, ready: 1})
	small.unable = map[string]string{"w": "it takes up to 2 MiB, and --memory allows 1 MiB"}
	few := collected(3, underWay{units: 5, left: 2})
	w := standing{id: "w"}
	slow := standing{id: "w", stalled: 1500 * time.Millisecond}
	for _, test := range []struct {
		what string
		w    standing
		jobs []openJob
		want protocol.IdleReason
		job  uint64
		says string
	}{
		{"no job", w, nil, "", 0, ""},
		{"refused", standing{id: "w", out: protocol.IdleRefused, why: "protocol 9"}, []openJob{planned(1, "w", "w")}, protocol.IdleRefused, 0, "protocol 9"},
		{"between rounds", w, []openJob{between}, protocol.IdleNextRound, 1, "next distributes tasks"},
		{"it has a part of the plan", w, []openJob{small, planned(4, "w", "w")}, protocol.IdleNextRound, 4, "next round"},
		{"no shards", w, []openJob{planned(4, "v", "w")}, protocol.IdleShards, 4, "shards"},
		{"fewer tasks", w, []openJob{planned(4, "v", "v")}, protocol.IdleFewTasks, 4, "1 task for 2 workers"},
		{"stalled", slow, []openJob{planned(4, "v", "v")}, protocol.IdleStalled, 4, "1.5s"},
		{"stalled in a collected round, which ignores it", slow, []openJob{few}, protocol.IdleFewTasks, 3, "2 of 5 tasks"},
		{"memory", w, []openJob{small}, protocol.IdleMemory, 2, "2 MiB"},
		{"memory before fewer tasks", w, []openJob{few, small}, protocol.IdleMemory, 2, "--memory"},
		{"the last tasks", w, []openJob{few}, protocol.IdleFewTasks, 3, "2 of 5 tasks"},
		{"tasks are there", w, []openJob{collected(1, underWay{units: 3, left: 3, ready: 2})}, protocol.IdleNextRound, 1, "the worker gets tasks when the leader next distributes tasks"},
		{"tasks rest", w, []openJob{collected(1, underWay{units: 3, left: 3, resting: 2})}, protocol.IdleJobWaits, 1, "2 tasks failed"},
		{"1 task cannot start yet: a time budget is used up, or other tasks with the same budget are running", w, []openJob{collected(1, underWay{units: 3, left: 3, held: 1})}, protocol.IdleJobWaits, 1, "1 task cannot start yet: a time budget is used up, or other tasks with the same budget are running"},
		{"others are not small", standing{id: "v"}, []openJob{small}, protocol.IdleNextRound, 2, "the worker gets tasks when the leader next distributes tasks"},
	} {
		got, is := idleReason(&test.w, test.jobs)
		if !is {
			t.Errorf("%s: it computes", test.what)
		}
		if got.Reason != test.want || got.Job != test.job || !strings.Contains(got.Text, test.says) || (got.Text == "") != (test.want == "") {
			t.Errorf("%s: %+v; want %s of job %d with %q", test.what, got, test.want, test.job, test.says)
		}
	}
}

// A worker that is busy in each round is not idle, though a heartbeat does not see it compute.
func TestShortTasksAreNotIdle(t *testing.T) {
	p := &spreadPlan{plan: &plan{owner: []string{"w"}, target: []string{"w"}}, workers: []string{"w"}}
	j := openJob{id: 1, at: underWay{units: 1, plan: p}}
	j.readPlan()
	if why, is := idleReason(&standing{id: "w", recent: true}, []openJob{j}); is {
		t.Errorf("%+v", why)
	}
	if _, is := idleReason(&standing{id: "v", recent: true}, []openJob{j}); !is {
		t.Error("another worker computes")
	}
	c := newCrew(time.Second, nil)
	now := time.Now()
	w := &worker{id: "w", result: now.Add(-shortly / 2)}
	if !c.standing(w, now).recent || c.standing(w, now.Add(shortly)).recent {
		t.Error("the last result is not known")
	}
}

// A worker that is not used tells why, and what helps.
func TestStanding(t *testing.T) {
	c := newCrew(time.Second, map[string]string{"wrong": "other bytes"})
	now := time.Now()
	for _, id := range []string{"good", "wrong", "cut", "old", "full", "slow"} {
		beat := protocol.Beat{Worker: id, Protocol: protocol.Version, Numerics: round.Numerics}
		switch id {
		case "old":
			beat.Numerics++
		case "full":
			beat.Problem = "the worker's folder cannot be written: no space"
		}
		c.hear(&beat, now)
	}
	c.lose("cut")
	c.stall("slow", now)
	for id, want := range map[string]struct {
		out  protocol.IdleReason
		says string
	}{
		"good": {"", ""}, "slow": {"", ""}, "cut": {protocol.IdleUnreachable, "connection"}, "wrong": {protocol.IdleQuarantined, "other bytes; to use the worker again: coppice cluster trust wrong"},
		"old": {protocol.IdleRefused, "the same version"}, "full": {protocol.IdleFolder, "no space"},
	} {
		got := c.standing(c.workers[id], now)
		if got.out != want.out || !strings.Contains(got.why, want.says) || (got.stalled > 0) != (id == "slow") {
			t.Errorf("%s: %+v", id, got)
		}
	}
}

// What the rounds of jobs say of workers is what the leader does: of a single collected unit one worker has no part,
// one with too little memory says what it takes, and the worker that computes is not idle.
func TestIdleInARound(t *testing.T) {
	l, w1, w2, x := withTwo(t)
	if idle := l.d.Idle(); idle["w1"].Reason != protocol.IdleNextRound || idle["w1"].Job != jobID {
		t.Errorf("before the first round: %+v", idle)
	}
	d := l.do(x, 1, collecting(1))
	task := w1.first(0)
	l.until("the other worker to be idle", func() bool {
		idle := l.d.Idle()
		_, w1Idle := idle["w1"]
		return !w1Idle && idle["w2"].Reason == protocol.IdleFewTasks
	})
	task.send((&protocol.Fail{Stamp: task.run.Stamp, Worker: "w1", Unit: 0, Unable: true, Reason: "it takes up to 2 MiB"}).Append(nil))
	other := w2.first(0)
	l.until("the small worker to say so", func() bool {
		idle := l.d.Idle()
		_, w2Idle := idle["w2"]
		return !w2Idle && idle["w1"].Reason == protocol.IdleMemory && strings.Contains(idle["w1"].Text, "2 MiB")
	})
	other.collected(0)
	d.collects()
	l.until("the round to end", func() bool { return l.d.Idle()["w2"].Reason == protocol.IdleNextRound })
}

// A worker that joins during a summed round has no shards of its tasks yet, and gets tasks once it has them.
func TestIdleWithoutShards(t *testing.T) {
	l := newLab(t, never)
	w1 := l.join("w1", 1, 0, 1, 2, 3, 4, 5, 6, 7)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, summed(2))
	task := w1.first(0)
	l.join("w2", 1)
	l.until("the new worker to lack shards", func() bool { return l.d.Idle()["w2"].Reason == protocol.IdleShards })
	task.parts()
	d.sums()
}
