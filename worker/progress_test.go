package worker

import (
	"testing"

	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// A worker tells how far a child job is while it runs, and tells a new leader how much
// of that an earlier one knows.
func TestChildJobsReport(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{Slots: 1})
	j, r := foldsRound(t, d, 2, long)
	l.setup(w, 40, j, d.manifest)
	l.to(w, l.message(40, 0, r, []uint32{1}))
	first := receive(t, "a report", l.progress)
	second := receive(t, "another", l.progress)
	if first.Unit != 1 || first.Worker != w.id || first.Done.Rounds == 0 || first.Done.Steps == 0 || first.Done.Samples == 0 ||
		first.Steps != 1<<40 || first.Counted != (protocol.Work{}) {
		t.Errorf("reported %+v", first)
	}
	if second.Done.Steps <= first.Done.Steps || second.Counted != (protocol.Work{}) {
		t.Errorf("reported %+v, then %+v", first, second)
	}
	next := c.lead("b", 6)
	next.to(w, next.message(40, 0, r, []uint32{1}))
	after := receive(t, "a report to the new leader", next.progress)
	if after.Epoch != 6 || after.Counted.Steps < second.Done.Steps || after.Done.Steps <= after.Counted.Steps {
		t.Errorf("the new leader is told %+v; the old one was told %+v", after, second)
	}
	again := receive(t, "another", next.progress)
	if again.Counted != after.Counted {
		t.Errorf("told is %+v at first, then %+v", after.Counted, again.Counted)
	}
}

// The last report of a child job comes before its result, and says all that it did.
func TestChildJobsReportTheirEnd(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{Slots: 1})
	j, r := foldsRound(t, d, 2, nil)
	l.setup(w, 40, j, d.manifest)
	run := l.message(40, 0, r, []uint32{0})
	l.to(w, run)
	receive(t, "the result", l.collected)
	alone := must[*pipeline.Outcome](t)(local.Run(t.Context(), pipeline.Child(j, 0), d.local, local.Options{}))
	last := func(l *leader) (m *protocol.Progress) {
		for len(l.progress) > 0 {
			m = <-l.progress
		}
		return m
	}
	if m := last(l); m == nil || m.Done.Steps != alone.Steps || m.Done.Samples != alone.Samples || m.Done.Rounds < alone.Steps {
		t.Errorf("the end is told as %+v; alone it has %d steps and %d samples", m, alone.Steps, alone.Samples)
	}
	next := c.lead("b", 6) // it asks for a result that there is
	next.to(w, next.message(40, 0, r, []uint32{0}))
	receive(t, "the result again", next.collected)
	if m := last(next); m == nil || m.Counted != m.Done || m.Done.Steps != alone.Steps {
		t.Errorf("the new leader is told %+v", m)
	}
}

// Units are timed by the kind that the leader says; what says none is "other".
func TestKindsOfUnits(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{Slots: 1})
	j, r := foldsRound(t, d, 2, nil)
	l.setup(w, 40, j, d.manifest)
	l.to(w, l.message(40, 0, r, []uint32{0}))
	receive(t, "a result", l.collected)
	run := l.message(40, 0, r, []uint32{1})
	run.Kind = ""
	l.to(w, run)
	receive(t, "another", l.collected)
	idle(t, w)
	kinds := make(map[string]uint64)
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == "coppice_worker_task_seconds" {
				kinds[m.Label[0].GetValue()] = m.Histogram.GetSampleCount()
			}
		}
	}
	if len(kinds) != 2 || kinds["fold"] != 1 || kinds["other"] != 1 {
		t.Errorf("units of kinds %v", kinds)
	}
}
