package worker

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

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

// TestUnable: a unit on the whole dataset beyond --memory is refused as one that
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
	if !f.Unable || f.Permanent || f.NonFinite || !strings.Contains(f.Reason, "--memory of worker") {
		t.Errorf("got %+v", f)
	}
}
