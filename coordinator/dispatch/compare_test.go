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
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
)

// court is a Referee that computes as honest workers do, and the record of who was
// suspected.
type court struct {
	round uint64 // of the units that it is asked for
	fail  error  // instead of an answer, once
	bad   bool   // its numbers are not finite either

	mu       sync.Mutex
	asked    []int
	refuse   int // how often a suspicion is not recorded
	suspects []suspicion
}

type suspicion struct {
	worker string
	jobs   []uint64
	reason string
}

func (c *court) ask(u int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, u)
	err := c.fail
	c.fail = nil
	return err
}

func (c *court) Sum(_ context.Context, k *Case, dst *round.Partial) error {
	if err := c.ask(k.Unit); err != nil {
		return err
	}
	fill(dst, c.round, k.Unit)
	if c.bad {
		dst.F64[0] = math.NaN()
	}
	return nil
}

func (c *court) Collect(_ context.Context, k *Case) ([]byte, error) {
	return honest(uint32(k.Unit)), c.ask(k.Unit)
}

func (c *court) suspect(_ context.Context, worker string, jobs []uint64, reason string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse > 0 {
		c.refuse--
		return errors.New("no leader")
	}
	c.suspects = append(c.suspects, suspicion{worker, jobs, reason})
	return nil
}

// accused checks that one worker was suspected once, with the only job, and that
// it is out of use; the reason is returned.
func (c *court) accused(l *lab, worker string) string {
	l.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.suspects) != 1 || c.suspects[0].worker != worker || !slices.Equal(c.suspects[0].jobs, []uint64{jobID}) {
		l.t.Fatalf("suspects %+v, want %s", c.suspects, worker)
	}
	for _, w := range l.d.Workers() {
		if refused := strings.HasPrefix(w.State, "refused: the worker is quarantined"); refused != (w.ID == worker) {
			l.t.Errorf("worker %+v", w)
		}
	}
	return c.suspects[0].reason
}

// inCourt is a lab with a court; every unit is audited as ppm says.
func inCourt(t *testing.T, ppm uint32) (*lab, *court) {
	t.Helper()
	c := &court{round: 1}
	l := newLabWith(t, never, func(cfg *Config) { cfg.Referee, cfg.Suspect = c, c.suspect })
	l.options.AuditPPM = ppm
	return l, c
}

// honest is what a collected unit's bytes are.
func honest(unit uint32) []byte { return fmt.Appendf(nil, "bytes of unit %d", unit) }

// says tells where a unit's bytes are.
func (t *task) says(unit uint32, digest string) {
	t.f.l.t.Helper()
	m := protocol.Collected{Stamp: t.run.Stamp, Worker: t.f.id, Unit: unit, Digest: digest, Bytes: 10}
	t.send(m.Append(nil))
}

// flip turns one bit of a partial over.
func flip(p *protocol.Part) {
	p.Partial.F32[1] = math.Float32frombits(math.Float32bits(p.Partial.F32[1]) ^ 1)
}

// alone returns the worker's next n Runs, of one unit each, by unit; the first
// comes behind a Setup where it is new.
func (f *fake) alone(n int, isNew bool) map[uint32]*task {
	f.l.t.Helper()
	tasks := make(map[uint32]*task)
	for i := range n {
		var t *task
		if i == 0 && isNew {
			t = f.first(0)
		} else {
			t = f.run()
		}
		tasks[t.unit()] = t
	}
	if len(tasks) != n {
		f.l.t.Fatalf("worker %s has %d of %d units", f.id, len(tasks), n)
	}
	return tasks
}

// TestAudit: each unit goes to two workers alone, is used once both have answered,
// and nobody is asked to judge where they agree.
func TestAudit(t *testing.T) {
	l, c := inCourt(t, million)
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, summed(4))
	first, second := w1.alone(4, true), w2.alone(4, true)
	for u := range uint32(4) {
		first[u].part(u, nil)
	}
	first[3].part(3, nil) // doubled
	l.dropped("duplicate", 1)
	d.pending()
	second[0].part(0, func(p *protocol.Part) { p.Level = 2 }) // it would cover what is compared
	l.dropped("stale", 1)
	for u := range uint32(4) {
		second[u].part(u, nil)
	}
	d.sums()
	l.counted("audits_total", "", 4)
	l.counted("audit_differences_total", "", 0)
	if len(c.asked) > 0 || len(c.suspects) > 0 {
		t.Errorf("asked %v, suspects %v", c.asked, c.suspects)
	}
}

// TestAuditFindsTheLiar: one bit in one unit; the leader's own answer tells who is
// wrong, who is recorded as such and used no more, and the round is computed by
// the others alone.
func TestAuditFindsTheLiar(t *testing.T) {
	for _, liar := range []string{"w1", "w2"} {
		t.Run(liar, func(t *testing.T) {
			l, c := inCourt(t, million)
			c.refuse = 2 // it is recorded all the same
			w1, w2 := l.join("w1", 1), l.join("w2", 1)
			x := l.executor(jobID)
			defer x.Close()
			d := l.do(x, 1, summed(2))
			for _, w := range []*fake{w1, w2} {
				tasks := w.alone(2, true)
				change := flip
				if w.id != liar {
					change = nil
				}
				tasks[0].part(0, nil)
				tasks[1].part(1, change)
			}
			rest := w1
			if liar == "w1" {
				rest = w2
			}
			again := rest.alone(2, false) // the leader is the second now
			again[0].part(0, nil)
			again[1].part(1, nil)
			d.sums()
			if reason := c.accused(l, liar); !strings.Contains(reason, "task 1 of round 1 of job 40") {
				t.Errorf("reason %q", reason)
			}
			l.counted("audit_differences_total", "", 1)
			if !slices.Contains(c.asked, 1) {
				t.Errorf("the leader was asked for %v", c.asked)
			}
		})
	}
}

// TestAuditOfOne: with one worker the leader computes the second time; where it is
// wrong, its units wait for another.
func TestAuditOfOne(t *testing.T) {
	l, c := inCourt(t, million)
	w := l.join("w", 1)
	x := l.executor(jobID)
	defer x.Close()
	c.fail = errors.New("a shard is not there yet")
	d := l.do(x, 1, summed(1))
	w.first(0).part(0, nil)
	l.until("the leader's failure", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.asked) == 1 })
	d.cancel() // it would be asked again in some seconds
	d.wait()
	d = l.do(x, 1, summed(2))
	tasks := w.alone(2, false)
	tasks[0].part(0, nil)
	tasks[1].part(1, flip)
	l.until("a suspicion", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.suspects) == 1 })
	c.accused(l, "w")
	d.pending()
	tasks[0].part(0, nil) // not trusted any more
	other := l.join("other", 1).alone(2, true)
	d.pending()
	other[0].part(0, nil)
	other[1].part(1, nil)
	d.sums()
}

// TestAuditSamples as many units as the rate says.
func TestAuditSamples(t *testing.T) {
	x := &Executor{units: newUnits(20_000)}
	for _, ppm := range []uint32{0, 50_000, million} {
		clearUnits(x.units)
		x.options.AuditPPM = ppm
		x.sample()
		want := float64(ppm) / million * float64(len(x.units))
		if got := float64(len(x.checks)); math.Abs(got-want) > 200 {
			t.Errorf("%d ppm: %v of %d units", ppm, got, len(x.units))
		}
	}
}

// TestAuditOfSome: what is not in the sample goes out in one message, as ever.
func TestAuditOfSome(t *testing.T) {
	l, _ := inCourt(t, 1) // none, in all likelihood
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, summed(8))
	w1.first(0).nodes()
	w2.first(0).nodes()
	d.sums()
}

// TestAuditCollected: parts are recorded once two workers have the same bytes;
// where they differ the leader's count, whoever has them.
func TestAuditCollected(t *testing.T) {
	right, wrong := blobs.Sum(honest(0)), blobs.Sum([]byte("other bytes"))
	for _, c := range []struct {
		name      string
		one, two  string
		liar      string
		recorded  string
		differing float64
	}{
		{"they agree", right, right, "", right, 0},
		{"the first is wrong", wrong, right, "w1", right, 1},
		{"the second is wrong", right, wrong, "w2", right, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, court := inCourt(t, million)
			w1, w2 := l.join("w1", 1), l.join("w2", 1)
			x := l.executor(jobID)
			defer x.Close()
			d := l.do(x, 1, collecting(1))
			task1, task2 := w1.first(0), w2.first(0)
			task1.says(0, c.one)
			d.pending()
			task2.says(0, c.two)
			if err := d.wait(); err != nil {
				t.Fatal(err)
			}
			if want := "part " + c.recorded; string(d.res.Collected[0]) != want {
				t.Errorf("part %q, want %q", d.res.Collected[0], want)
			}
			if c.liar != "" {
				court.accused(l, c.liar)
			}
			l.counted("audits_total", "", 1)
			l.counted("audit_differences_total", "", c.differing)
			for _, w := range l.d.crew.workers {
				if w.busy != 0 {
					t.Errorf("worker %s has %d slots taken", w.id, w.busy)
				}
			}
		})
	}
}

// TestAuditCollectedByTheLeader: where both workers are wrong, or the only one is,
// the part is the leader's.
func TestAuditCollectedByTheLeader(t *testing.T) {
	l, court := inCourt(t, million)
	w := l.join("w", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, collecting(1))
	w.first(0).says(0, blobs.Sum([]byte("other bytes")))
	if err := d.wait(); err != nil {
		t.Fatal(err)
	}
	if got := string(d.res.Collected[0]); got != string(honest(0)) {
		t.Errorf("part %q", got)
	}
	court.accused(l, "w")
}

// TestNonFinite: a unit whose partial is not finite runs on another worker. Finite
// there: the first one is out of use. Not finite there either: the job fails and
// says where.
func TestNonFinite(t *testing.T) {
	nonFinite := func(t *task, unit uint32) {
		m := protocol.Fail{Stamp: t.run.Stamp, Worker: t.f.id, Unit: unit, NonFinite: true, Reason: "value 3 is NaN"}
		t.send(m.Append(nil))
	}
	t.Run("finite elsewhere", func(t *testing.T) {
		l, c := inCourt(t, 0)
		w1, w2 := l.join("w1", 1), l.join("w2", 1)
		x := l.executor(jobID)
		defer x.Close()
		d := l.do(x, 1, summed(2))
		task1, task2 := w1.first(0), w2.first(0)
		task2.parts()
		nonFinite(task1, task1.run.Units[0])
		w2.run(task1.run.Units...).parts()
		w2.run(0, 1).parts() // the whole round, without w1
		d.sums()
		if reason := c.accused(l, "w1"); !strings.Contains(reason, "value 3 is NaN") {
			t.Errorf("reason %q", reason)
		}
		if len(c.asked) > 0 {
			t.Errorf("the leader computed units %v", c.asked)
		}
	})
	t.Run("nowhere finite", func(t *testing.T) {
		l, c := inCourt(t, 0)
		w1, w2 := l.join("w1", 1), l.join("w2", 1)
		x := l.executor(jobID)
		defer x.Close()
		d := l.do(x, 1, summed(2))
		task1 := w1.first(0)
		w2.first(0)
		u := task1.run.Units[0]
		nonFinite(task1, u)
		nonFinite(w2.run(u), u)
		err := d.wait()
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("task %d of round 1 at step 5 on w1: value 3 is NaN", u)) || !strings.Contains(err.Error(), "on w2") {
			t.Errorf("error %v", err)
		}
		if len(c.suspects) > 0 {
			t.Errorf("suspects %v", c.suspects)
		}
	})
	for _, bad := range []bool{false, true} {
		t.Run(fmt.Sprintf("one worker, and the leader not finite: %v", bad), func(t *testing.T) {
			l, c := inCourt(t, 0)
			c.bad = bad
			w := l.join("w", 1)
			x := l.executor(jobID)
			defer x.Close()
			d := l.do(x, 1, summed(1))
			nonFinite(w.first(0), 0)
			if bad {
				if err := d.wait(); err == nil || !strings.Contains(err.Error(), "the same task on the leader") {
					t.Errorf("error %v", err)
				}
				return
			}
			l.until("a suspicion", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.suspects) == 1 })
			c.accused(l, "w")
			l.join("other", 1).first(0).parts()
			d.sums()
		})
	}
}

// TestDistrusted workers are refused from the start, and used again once somebody
// trusts them.
func TestDistrusted(t *testing.T) {
	l := newLabWith(t, never, func(cfg *Config) { cfg.Distrusted = map[string]string{"w1": "it lied"} })
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, summed(2))
	w2.first(0).parts()
	d.sums()
	w1.idle()
	if got := l.d.Workers()[0].State; got != "refused: the worker is quarantined: it lied" {
		t.Errorf("state %q", got)
	}
	l.d.SetDistrusted(nil)
	d = l.do(x, 2, summed(2))
	w1.first(0).parts()
	w2.run().parts()
	d.sums()
	l.d.SetDistrusted(map[string]string{"w2": "so did it"})
	d = l.do(x, 3, summed(2))
	w1.run(0, 1).parts()
	d.sums()
}

// TestUnable: a unit that no worker can compute fails the job; one that some can
// goes to those.
func TestUnable(t *testing.T) {
	l, w1, w2, x := withTwo(t)
	unable := func(t *task) {
		m := protocol.Fail{Stamp: t.run.Stamp, Worker: t.f.id, Unable: true, Reason: "too little memory"}
		t.send(m.Append(nil))
	}
	d := l.do(x, 1, collecting(2))
	task1, task2 := w1.first(0), w2.first(0)
	unable(task1)
	task2.collected(1)
	w2.run(0).collected(0)
	d.collects()
	w1.idle()
	d = l.do(x, 2, collecting(1))
	unable(w2.run(0))
	if err := d.wait(); err == nil || !strings.Contains(err.Error(), "no worker can compute the task: task 0 on worker w2: too little memory") {
		t.Errorf("error %v", err)
	}
	l.free(t, 2)
}
