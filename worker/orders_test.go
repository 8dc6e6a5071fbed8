package worker

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// TestDrivenAgain: a leader that drives a job again begins at an earlier round: where its Forget got
// lost, the worker asks, and the Setup of the later start makes the job new. One of
// the same start, or of an earlier one, changes nothing.
func TestDrivenAgain(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{})
	j := newTestJob(t, d, 7, param.Values{"scaling": "standard"})
	list, sums := rounds(t, d, j, 1)
	r := list[0]
	setup := &protocol.Setup{Epoch: 5, Start: 2, ID: 40, Job: j, Manifest: d.manifest}
	l.to(w, setup)
	l.to(w, l.message(40, 9, r, allTasks(r.Tasks)))
	receive(t, "a part", l.parts)
	for _, start := range []uint64{2, 1} {
		setup.Start = start
		l.to(w, setup)
		l.to(w, l.message(40, 3, r, allTasks(r.Tasks)))
		if n := receive(t, "a need", l.needs); !n.Setup || n.Round != 3 {
			t.Fatalf("start %d: %+v", start, n)
		}
	}
	setup.Start = 3
	l.to(w, setup)
	l.to(w, l.message(40, 3, r, allTasks(r.Tasks)))
	p := receive(t, "a part", l.parts)
	if err := samePartial(p.Partial, sums[0]); err != nil || p.Round != 3 {
		t.Errorf("round %d: %v", p.Round, err)
	}
}

// TestProbe: a worker takes a probe without a word, as a message of its epoch; once
// it is gone, the server says so on the worker's own results subject.
func TestProbe(t *testing.T) {
	c := newCluster(t)
	c.lead("a", 5)
	w := c.start(Config{})
	results := c.subjects.Results("a", 5)
	gone, answers := make(chan string, 100), make(chan bus.Message, 100)
	sub, err := c.conn.SubscribeReplies(protocol.ResultsOf(results, "*"),
		func(m bus.Message) { answers <- m }, func(reply string) { gone <- reply })
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	probe := func(epoch uint64) {
		m := protocol.Probe{Epoch: epoch}
		if err := c.conn.Send(c.subjects.Work(w.id), protocol.ResultsOf(results, w.id), m.Append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	probe(7)
	eventually(t, "the epoch", func() bool {
		return w.jobs.epoch() == 7
	})
	probe(6) // of a leader of before
	w.stop()
	probe(8)
	if got, want := receive(t, "the server's word", gone), protocol.ResultsOf(results, w.id); got != want {
		t.Errorf("the server names %s, want %s", got, want)
	}
	if len(answers) > 0 || w.jobs.epoch() != 7 {
		t.Errorf("%d answers, epoch %d", len(answers), w.jobs.epoch())
	}
}

// TestUnable: a task on the whole dataset beyond --memory is refused as one that
// this worker never can compute.
func TestUnable(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{MemoryBytes: 1000})
	j, r := foldsRound(t, d, 2, nil)
	l.setup(w, 40, j, d.manifest)
	run := l.message(40, 0, r, []uint32{1})
	run.Payload = [][]byte{nil}
	l.to(w, run)
	f := receive(t, "a failure", l.fails)
	if !f.Unable || f.Permanent || f.NonFinite || !strings.Contains(f.Reason, "(coppice worker --memory)") {
		t.Errorf("got %+v", f)
	}
}
