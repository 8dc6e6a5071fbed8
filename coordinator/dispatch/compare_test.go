package dispatch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// fakeVerifier is a Verifier that computes as workers do whose results are right. It writes down who is quarantined.
type fakeVerifier struct {
	round uint64 // of the tasks that it is asked for
	fail  error  // instead of a result, once
	bad   bool   // true if its numbers are not finite either

	mu          sync.Mutex
	asked       []int
	refuse      int // how often a quarantine cannot be recorded
	quarantines []quarantine
}

type quarantine struct {
	worker string
	jobs   []uint64
	reason string
}

func (c *fakeVerifier) ask(task int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, task)
	err := c.fail
	c.fail = nil
	return err
}

func (c *fakeVerifier) Reduce(_ context.Context, k *Case, dst *round.Partial) error {
	if err := c.ask(k.Task); err != nil {
		return err
	}
	fill(dst, c.round, k.Task)
	if c.bad {
		dst.F64[0] = math.NaN()
	}
	return nil
}

func (c *fakeVerifier) Gather(_ context.Context, k *Case) ([]byte, error) {
	return rightResult(uint32(k.Task)), c.ask(k.Task)
}

func (c *fakeVerifier) quarantine(_ context.Context, worker string, jobs []uint64, reason string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse > 0 {
		c.refuse--
		return errors.New("no leader")
	}
	c.quarantines = append(c.quarantines, quarantine{worker, jobs, reason})
	return nil
}

// quarantined checks that one worker was quarantined once, with the only job, and that it is not used. It returns the
// reason.
func (c *fakeVerifier) quarantined(l *lab, worker string) string {
	l.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.quarantines) != 1 || c.quarantines[0].worker != worker ||
		!slices.Equal(c.quarantines[0].jobs, []uint64{jobID}) {
		l.t.Fatalf("quarantined are %+v, want %s", c.quarantines, worker)
	}
	for _, w := range l.d.Workers() {
		if refused := strings.HasPrefix(w.State, "refused: the worker is quarantined"); refused != (w.ID == worker) {
			l.t.Errorf("worker %+v", w)
		}
	}
	return c.quarantines[0].reason
}

// untilQuarantined waits until a worker is quarantined.
func (c *fakeVerifier) untilQuarantined(l *lab, worker string) {
	l.t.Helper()
	l.until("a quarantine", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.quarantines) == 1 })
	c.quarantined(l, worker)
}

// newVerifiedLab returns a lab with a verifier. ppm millionths of the tasks are audited.
func newVerifiedLab(t *testing.T, ppm uint32) (*lab, *fakeVerifier) {
	t.Helper()
	c := &fakeVerifier{round: 1}
	l := newLabWith(t, never, func(cfg *Config) { cfg.Verifier, cfg.Quarantine = c, c.quarantine })
	l.options.AuditPPM = ppm
	return l, c
}

// rightResult returns the right bytes of a task of a gather round.
func rightResult(task uint32) []byte { return fmt.Appendf(nil, "bytes of task %d", task) }

// announceDigest says which digest a task's result has.
func (a *assignment) announceDigest(task uint32, digest string) {
	a.f.l.t.Helper()
	m := protocol.Result{Stamp: a.run.Stamp, Worker: a.f.id, Task: task, Digest: digest, Bytes: 10}
	a.send(m.Append(nil))
}

// flip changes one bit of a partial.
func flip(p *protocol.Partial) {
	p.Partial.F32[1] = math.Float32frombits(math.Float32bits(p.Partial.F32[1]) ^ 1)
}

// alone returns the worker's next n Runs, each of one task, by task. The first one follows a Setup if isNew.
func (f *fake) alone(n int, isNew bool) map[uint32]*assignment {
	f.l.t.Helper()
	tasks := make(map[uint32]*assignment)
	for i := range n {
		var a *assignment
		if i == 0 && isNew {
			a = f.first(0)
		} else {
			a = f.run()
		}
		tasks[a.task()] = a
	}
	if len(tasks) != n {
		f.l.t.Fatalf("worker %s has %d of %d tasks", f.id, len(tasks), n)
	}
	return tasks
}

// TestAudit: each task goes to two workers, in a message of its own, and is used once both have answered. The leader is
// not asked if they agree.
func TestAudit(t *testing.T) {
	l, c := newVerifiedLab(t, million)
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(4))
	first, second := w1.alone(4, true), w2.alone(4, true)
	for u := range uint32(4) {
		first[u].partial(u, nil)
	}
	first[3].partial(3, nil) // again
	l.dropped("duplicate", 1)
	d.pending()
	second[0].partial(0, func(p *protocol.Partial) { p.Level = 2 }) // it would cover what is compared
	l.dropped("stale", 1)
	for u := range uint32(4) {
		second[u].partial(u, nil)
	}
	d.sums()
	l.counted("audits_total", "", 4)
	l.counted("audit_differences_total", "", 0)
	if len(c.asked) > 0 || len(c.quarantines) > 0 {
		t.Errorf("asked %v, quarantined %v", c.asked, c.quarantines)
	}
}

// TestAuditFindsWrongResults: one bit of one task differs. The leader's own result tells which worker is wrong. That
// worker is quarantined and not used any longer, and the others compute the round again.
func TestAuditFindsWrongResults(t *testing.T) {
	for _, wrong := range []string{"w1", "w2"} {
		t.Run(wrong, func(t *testing.T) {
			l, c := newVerifiedLab(t, million)
			c.refuse = 2 // it is recorded at the third try
			w1, w2 := l.join("w1", 1), l.join("w2", 1)
			x := l.executor(jobID)
			defer x.Close()
			d := l.do(x, 1, reduceRound(2))
			for _, w := range []*fake{w1, w2} {
				tasks := w.alone(2, true)
				change := flip
				if w.id != wrong {
					change = nil
				}
				tasks[0].partial(0, nil)
				tasks[1].partial(1, change)
			}
			rest := w1
			if wrong == "w1" {
				rest = w2
			}
			again := rest.alone(2, false) // the leader computes them as well now
			again[0].partial(0, nil)
			again[1].partial(1, nil)
			d.sums()
			if reason := c.quarantined(l, wrong); !strings.Contains(reason, "task 1 of round 1 of job 40") {
				t.Errorf("reason %q", reason)
			}
			l.counted("audit_differences_total", "", 1)
			if !slices.Contains(c.asked, 1) {
				t.Errorf("the leader was asked for %v", c.asked)
			}
		})
	}
}

// TestAuditOfOne: with one worker the leader computes each task as well. If the worker is wrong, its tasks wait for
// another.
func TestAuditOfOne(t *testing.T) {
	l, c := newVerifiedLab(t, million)
	w := l.join("w", 1)
	x := l.executor(jobID)
	defer x.Close()
	c.fail = errors.New("a shard is not there yet")
	d := l.do(x, 1, reduceRound(1))
	w.first(0).partial(0, nil)
	l.until("the leader's failure", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.asked) == 1 })
	d.cancel() // it would be asked again in some seconds
	d.wait()
	d = l.do(x, 1, reduceRound(2))
	tasks := w.alone(2, false)
	tasks[0].partial(0, nil)
	tasks[1].partial(1, flip)
	c.untilQuarantined(l, "w")
	d.pending()
	tasks[0].partial(0, nil) // it is not trusted any longer
	other := l.join("other", 1).alone(2, true)
	d.pending()
	other[0].partial(0, nil)
	other[1].partial(1, nil)
	d.sums()
}

// TestComparedPartialsAreReleased: once a partial is used, the other partials of its task are released.
func TestComparedPartialsAreReleased(t *testing.T) {
	l := newLab(t, never)
	x := l.executor(jobID)
	defer x.Close()
	x.sum.tree.Reset(2, labShape)
	for _, at := range []result{{0, "w1"}, {0, "w2"}, {1, "w1"}} {
		x.sum.kept[at] = x.sum.tree.Partial()
	}
	x.mem.actions = []schedule.Action{&schedule.UseKept{Task: 0, Worker: "w1"}}
	if err := x.perform(l.ctx()); err != nil {
		t.Fatal(err)
	}
	if len(x.sum.kept) != 1 || x.sum.kept[result{1, "w1"}] == nil {
		t.Errorf("%d partials are kept", len(x.sum.kept))
	}
}

// TestSample: the sample has the wanted fraction of tasks.
func TestSample(t *testing.T) {
	const tasks = 20_000
	for _, ppm := range []uint32{0, 50_000, million} {
		list := sample(tasks, ppm)
		want := float64(ppm) / million * tasks
		if got := float64(len(list)); math.Abs(got-want) > 200 || !slices.IsSorted(list) {
			t.Errorf("%d ppm: %v of %d tasks", ppm, got, tasks)
		}
	}
}

// TestAuditOfSome: the tasks that are not in the sample are sent in one message.
func TestAuditOfSome(t *testing.T) {
	l, _ := newVerifiedLab(t, 1) // most likely none
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(8))
	w1.first(0).nodes()
	w2.first(0).nodes()
	d.sums()
}

// TestAuditGather: a result is recorded once two workers have the same bytes. If they differ, the leader's bytes count.
func TestAuditGather(t *testing.T) {
	right, wrong := blobs.Sum(rightResult(0)), blobs.Sum([]byte("other bytes"))
	for _, c := range []struct {
		name        string
		one, two    string
		quarantined string
		recorded    string
		differing   float64
	}{
		{"they agree", right, right, "", right, 0},
		{"the first is wrong", wrong, right, "w1", right, 1},
		{"the second is wrong", right, wrong, "w2", right, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, verifier := newVerifiedLab(t, million)
			w1, w2 := l.join("w1", 1), l.join("w2", 1)
			x := l.executor(jobID)
			defer x.Close()
			d := l.do(x, 1, gatherRound(1))
			task1, task2 := w1.first(0), w2.first(0)
			task1.announceDigest(0, c.one)
			d.pending()
			task2.announceDigest(0, c.two)
			if err := d.wait(); err != nil {
				t.Fatal(err)
			}
			if want := "result " + c.recorded; string(d.res.Gathered[0]) != want {
				t.Errorf("result %q, want %q", d.res.Gathered[0], want)
			}
			if c.quarantined != "" {
				verifier.quarantined(l, c.quarantined)
			}
			l.counted("audits_total", "", 1)
			l.counted("audit_differences_total", "", c.differing)
			if n := l.leases(); n != 0 {
				t.Errorf("%d slots are taken", n)
			}
		})
	}
}

// TestAuditGatherByTheLeader: if the only worker is wrong, the result is the leader's.
func TestAuditGatherByTheLeader(t *testing.T) {
	l, verifier := newVerifiedLab(t, million)
	w := l.join("w", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, gatherRound(1))
	w.first(0).announceDigest(0, blobs.Sum([]byte("other bytes")))
	if err := d.wait(); err != nil {
		t.Fatal(err)
	}
	if got := string(d.res.Gathered[0]); got != string(rightResult(0)) {
		t.Errorf("result %q", got)
	}
	verifier.quarantined(l, "w")
}

// TestNotFinite: a task whose partial is not finite runs on another worker. If it is finite there, the first worker is
// quarantined. Otherwise the job fails and says where.
func TestNotFinite(t *testing.T) {
	notFinite := func(a *assignment, task uint32) {
		m := protocol.Fail{Stamp: a.run.Stamp, Worker: a.f.id, Task: task, NonFinite: true, Reason: "value 3 is NaN"}
		a.send(m.Append(nil))
	}
	t.Run("finite elsewhere", func(t *testing.T) {
		l, c := newVerifiedLab(t, 0)
		w1, w2 := l.join("w1", 1), l.join("w2", 1)
		x := l.executor(jobID)
		defer x.Close()
		d := l.do(x, 1, reduceRound(2))
		task1, task2 := w1.first(0), w2.first(0)
		task2.partials()
		notFinite(task1, task1.run.Tasks[0])
		w2.run(task1.run.Tasks...).partials()
		w2.run(0, 1).partials() // the whole round, without w1
		d.sums()
		if reason := c.quarantined(l, "w1"); !strings.Contains(reason, "value 3 is NaN") {
			t.Errorf("reason %q", reason)
		}
		if len(c.asked) > 0 {
			t.Errorf("the leader computed tasks %v", c.asked)
		}
	})
	t.Run("nowhere finite", func(t *testing.T) {
		l, c := newVerifiedLab(t, 0)
		w1, w2 := l.join("w1", 1), l.join("w2", 1)
		x := l.executor(jobID)
		defer x.Close()
		d := l.do(x, 1, reduceRound(2))
		task1 := w1.first(0)
		w2.first(0)
		task := task1.run.Tasks[0]
		notFinite(task1, task)
		notFinite(w2.run(task), task)
		err := d.wait()
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("task %d of round 1 at step 5 on w1: value 3 is NaN",
			task)) || !strings.Contains(err.Error(), "on w2") {
			t.Errorf("error %v", err)
		}
		if len(c.quarantines) > 0 {
			t.Errorf("quarantined are %v", c.quarantines)
		}
	})
	for _, bad := range []bool{false, true} {
		t.Run(fmt.Sprintf("one worker, and the leader not finite: %v", bad), func(t *testing.T) {
			l, c := newVerifiedLab(t, 0)
			c.bad = bad
			w := l.join("w", 1)
			x := l.executor(jobID)
			defer x.Close()
			d := l.do(x, 1, reduceRound(1))
			notFinite(w.first(0), 0)
			if bad {
				if err := d.wait(); err == nil || !strings.Contains(err.Error(), "the same task on the leader") {
					t.Errorf("error %v", err)
				}
				return
			}
			c.untilQuarantined(l, "w")
			l.join("other", 1).first(0).partials()
			d.sums()
		})
	}
}

// TestQuarantined: quarantined workers are refused from the start, and used again once the log trusts them.
func TestQuarantined(t *testing.T) {
	l := newLabWith(t, never, func(cfg *Config) { cfg.Quarantined = map[string]string{"w1": "it was wrong"} })
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(2))
	w2.first(0).partials()
	d.sums()
	w1.idle()
	if got := l.d.Workers()[0].State; got != "refused: the worker is quarantined: it was wrong" {
		t.Errorf("state %q", got)
	}
	l.d.SetQuarantined(nil)
	d = l.do(x, 2, reduceRound(2))
	w1.first(0).partials()
	w2.run().partials()
	d.sums()
	l.d.SetQuarantined(map[string]string{"w2": "it was wrong too"})
	d = l.do(x, 3, reduceRound(2))
	w1.run(0, 1).partials()
	d.sums()
}

// TestUnable: a task that no worker can compute fails the job. A task that some can compute goes to them.
func TestUnable(t *testing.T) {
	l, w1, w2, x := withTwo(t)
	unable := func(a *assignment) {
		m := protocol.Fail{Stamp: a.run.Stamp, Worker: a.f.id, Unable: true, Reason: "too little memory"}
		a.send(m.Append(nil))
	}
	d := l.do(x, 1, gatherRound(2))
	task1, task2 := w1.first(0), w2.first(0)
	unable(task1)
	task2.announce(1)
	w2.run(0).announce(0)
	d.gathers()
	w1.idle()
	d = l.do(x, 2, gatherRound(1))
	unable(w2.run(0))
	if err := d.wait(); err == nil || !strings.Contains(err.Error(),
		"no worker can compute the task: task 0 on worker w2: too little memory") {
		t.Errorf("error %v", err)
	}
	l.free(t, 2)
}

// TestComparedIsFetchedAgain: a task is computed and compared once more if its result could not be brought here after
// the leader had decided.
func TestComparedIsFetchedAgain(t *testing.T) {
	l, verifier := newVerifiedLab(t, million)
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	failed := false
	l.results.fetch = func(*protocol.Result) error {
		if !failed {
			failed = true
			return errors.New("no such blob")
		}
		return nil
	}
	d := l.do(x, 1, gatherRound(1))
	task1, task2 := w1.first(0), w2.first(0)
	task1.announceDigest(0, blobs.Sum([]byte("other bytes")))
	task2.announceDigest(0, blobs.Sum(rightResult(0)))
	w2.run(0).announceDigest(0, blobs.Sum(rightResult(0)))
	if err := d.wait(); err != nil {
		t.Fatal(err)
	}
	verifier.quarantined(l, "w1")
	l.free(t, 1)
}

// TestFailureInQuarantine: a job does not fail for what a quarantined worker says.
func TestFailureInQuarantine(t *testing.T) {
	l, w1, w2, x := withTwo(t)
	d := l.do(x, 1, reduceRound(2))
	task1, task2 := w1.first(0), w2.first(0)
	l.d.SetQuarantined(map[string]string{"w1": "it was wrong"})
	again := w2.run(task1.run.Tasks...)
	task1.fail(task1.run.Tasks[0], true)
	l.dropped(metrics.DropStale, 1)
	task2.partials()
	again.partials()
	d.sums()
}

// TestCheckpointInQuarantine: a sub-job does not go on from what a worker said that is quarantined since.
func TestCheckpointInQuarantine(t *testing.T) {
	l := newLab(t, never)
	w1 := l.join("w1", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 3, &round.Round{Tasks: 1, How: &round.Gather{SubJob: round.Jobs(&round.Job{Seed: 1})},
		Scope: round.Whole})
	first := w1.first(0)
	say := func(task uint32) {
		m := protocol.Checkpoint{Stamp: first.run.Stamp, Worker: "w1", Task: task, Resume: protocol.Resume{Rounds: 500,
			State: []byte("state")}}
		first.send(m.Append(nil))
	}
	say(0)
	say(1) // there is no such task: what came before has been taken in
	l.dropped(metrics.DropMisshapen, 1)
	l.d.SetQuarantined(map[string]string{"w1": "it was wrong"})
	again := l.join("w2", 1).first(0)
	say(0) // another worker has the task
	l.dropped(metrics.DropStale, 1)
	if got := again.run.Payload[0]; len(got) != 0 {
		t.Errorf("the sub-job goes on from %d bytes", len(got))
	}
	again.announce(0)
	d.gathers()
}

// TestAuditSendsAgain: a single worker is sent a task again whose results are compared: the message may be lost.
func TestAuditSendsAgain(t *testing.T) {
	c := &fakeVerifier{round: 1}
	l := newLabWith(t, quick, func(cfg *Config) { cfg.Verifier, cfg.Quarantine = c, c.quarantine })
	l.options.AuditPPM = million
	w := l.join("w", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, reduceRound(1))
	w.first(0)
	w.run(0).partial(0, nil)
	d.sums()
	l.counted("audits_total", "", 1)
}
