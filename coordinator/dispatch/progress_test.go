package dispatch

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// notes is a Watcher that writes down what it is told.
type notes struct {
	mu   sync.Mutex
	list []string
}

func (n *notes) note(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, fmt.Sprintf(format, args...))
}

func (n *notes) has(text string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Contains(n.list, text)
}

func (n *notes) count(prefix string) (found int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, text := range n.list {
		if strings.HasPrefix(text, prefix) {
			found++
		}
	}
	return found
}

func (n *notes) Begin(r *round.Round) { n.note("begin %d", r.Units) }

// Read takes the length of a part for its steps.
func (n *notes) Read(part []byte) (round.Progress, bool) {
	return round.Progress{Step: uint64(len(part))}, len(part) > 0
}

func (n *notes) Have(unit int, p *round.Progress, before bool) {
	if p == nil {
		n.note("have %d before=%v", unit, before)
		return
	}
	n.note("have %d before=%v step %d", unit, before, p.Step)
}

func (n *notes) NotRun(unit int) { n.note("not run %d", unit) }

func (n *notes) Report(m *protocol.Progress) {
	n.note("report %d %s %d", m.Unit, m.Worker, m.Done.Steps)
}
func (*notes) Look(time.Time) {}

// TestProgressOfChildren: what a worker says of a child job that it has is taken in,
// and nothing else.
func TestProgressOfChildren(t *testing.T) {
	l, n := newLab(t, never), new(notes)
	l.options.Watcher = n
	w1 := l.join("w1", 1)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 3, &round.Round{Units: 1, How: round.Collect, Scope: round.Whole, Child: round.Jobs(&round.Job{Seed: 1})})
	task := w1.first(0)
	say := func(step uint64, change func(*protocol.Progress)) {
		m := protocol.Progress{Stamp: task.run.Stamp, Worker: "w1", Done: protocol.Work{Steps: step}}
		change(&m)
		task.send(m.Append(nil))
	}
	say(1, func(*protocol.Progress) {})
	say(2, func(m *protocol.Progress) { m.Worker = "ghost" }) // it has not the unit
	say(3, func(m *protocol.Progress) { m.Round-- })
	l.dropped(metrics.DropStale, 1)
	say(4, func(m *protocol.Progress) { m.Unit = 1 })
	l.dropped(metrics.DropMisshapen, 1)
	say(5, func(*protocol.Progress) {})
	task.collected(0)
	d.collects()
	if n.count("report") != 2 || !n.has("report 0 w1 1") || !n.has("report 0 w1 5") {
		t.Errorf("taken in were %q", n.list)
	}
	if want := fmt.Sprintf("have 0 before=false step %d", len(partOf(0))); !n.has("begin 1") || !n.has(want) || n.count("have") != 1 {
		t.Errorf("taken in were %q, not %q", n.list, want)
	}
	x.Show(1, round.Progress{Step: 7})
	if live, ok := l.d.Live(jobID); !ok || live.Units != 1 || live.Progress.Step != 7 {
		t.Errorf("live is %+v", live)
	}
	if _, ok := l.d.Live(jobID + 1); ok {
		t.Error("a job that nobody drives is live")
	}
}

// TestRecordedPartsAreRead: what an earlier leader recorded is read, and told apart from
// what is computed now.
func TestRecordedPartsAreRead(t *testing.T) {
	l, n := newLab(t, never), new(notes)
	l.options.Watcher = n
	l.parts.known = map[uint32]string{0: digestOf(0), 2: digestOf(2)}
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 3, collecting(3))
	read := len(partOf(0))
	for _, unit := range []int{0, 2} {
		for _, want := range []string{fmt.Sprintf("have %d before=true", unit), fmt.Sprintf("have %d before=true step %d", unit, read)} {
			l.until(want, func() bool { return n.has(want) })
		}
	}
	l.join("w1", 1).first(0).collected(1)
	d.collects()
	if !n.has(fmt.Sprintf("have 1 before=false step %d", read)) || n.count("have") != 5 {
		t.Errorf("told was %q", n.list)
	}
}

// TestWorkByWorker: units and their time are counted by worker and by kind, whatever
// a worker says that they took.
func TestWorkByWorker(t *testing.T) {
	l, w1, w2, x := withTwo(t)
	r := summed(4)
	r.Kind = "step"
	d := l.do(x, 1, r)
	task1, task2 := w1.first(0), w2.first(0)
	if task1.run.Kind != "step" {
		t.Errorf("the worker is told of %q", task1.run.Kind)
	}
	liar := &protocol.Part{Stamp: task1.run.Stamp, Worker: "nobody", Level: 200, Compute: math.MaxUint64, Partial: new(round.Partial)}
	task1.send(liar.Append(nil))
	task1.parts()
	task2.parts()
	d.sums()
	total := 0.0
	for _, id := range []string{"w1", "w2"} {
		got := l.metric("leader_worker_tasks_total", id)
		if total += got; got == 0 {
			t.Errorf("%s has computed nothing", id)
		}
	}
	l.counted("leader_worker_tasks_total", metrics.Other, 4) // the round has four
	if seconds := l.metric("leader_worker_task_seconds_total", metrics.Other); total != 4 || seconds != mostCompute.Seconds() {
		t.Errorf("%v units, and %v s of a liar", total, seconds)
	}
	if n := l.metric("task_seconds", "step"); n < 3 {
		t.Errorf("%v units are of kind step", n)
	}
	for _, w := range l.d.Workers() {
		if _, ok := w.UnitSeconds["step"]; !ok || w.Units == 0 || w.MainKind != "step" || w.LastSeen < 0 {
			t.Errorf("worker %+v", w)
		}
	}
}

// TestPaces: the mean follows what is new, and kinds are bounded.
func TestPaces(t *testing.T) {
	var p paces
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
	if p.add("", 1, 1); len(p.mean) != maxPaces || p.main() != "kind 0" {
		t.Errorf("%d kinds, mostly %q", len(p.mean), p.main())
	}
}
