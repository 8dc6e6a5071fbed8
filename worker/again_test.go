package worker

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/protocol"
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
	l.to(w, l.message(40, 9, r, allUnits(r.Units)))
	receive(t, "a part", l.parts)
	for _, start := range []uint64{2, 1} {
		setup.Start = start
		l.to(w, setup)
		l.to(w, l.message(40, 3, r, allUnits(r.Units)))
		if n := receive(t, "a need", l.needs); !n.Setup || n.Round != 3 {
			t.Fatalf("start %d: %+v", start, n)
		}
	}
	setup.Start = 3
	l.to(w, setup)
	l.to(w, l.message(40, 3, r, allUnits(r.Units)))
	p := receive(t, "a part", l.parts)
	if err := samePartial(p.Partial, sums[0]); err != nil || p.Round != 3 {
		t.Errorf("round %d: %v", p.Round, err)
	}
}
