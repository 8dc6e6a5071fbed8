package worker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// foldsRound returns a job of folds and its one round.
func foldsRound(t testing.TB, d *data, folds int, given param.Values) (*round.Job, *round.Round) {
	t.Helper()
	j := newTestJob(t, d, 7, given)
	j.Folds, j.Split.Folds, j.Split.TestFraction = folds, folds, 0
	trainer := must[pipeline.Finisher](t)(pipeline.New(j, d.manifest, nil))
	r := must[*round.Round](t)(trainer.Next())
	return j, r
}

// fetch pulls a result from the worker that announced it.
func (l *leader) fetch(m *protocol.Result) ([]byte, error) {
	var b bytes.Buffer
	err := l.conn.FetchBlob(l.t.Context(), l.subjects.WorkerBlobs(m.Worker), m.Digest, int64(m.Bytes), &b)
	return b.Bytes(), err
}

// A sub-job's outcome has the bytes of the same job run alone; asked for again
// it is announced again; forgotten it is gone.
func TestSubJobs(t *testing.T) {
	for _, name := range []string{"seeded folds", "listed folds", "groups"} {
		t.Run(name, func(t *testing.T) { subJobs(t, name == "listed folds", name == "groups") })
	}
}

func subJobs(t *testing.T, assigned, grouped bool) {
	const folds = 3
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{})
	j, r := foldsRound(t, d, folds, nil)
	if assigned {
		var b []byte
		for row := range d.manifest.Rows {
			d.local.Assigned = append(d.local.Assigned, uint16(row%folds))
			b = binary.LittleEndian.AppendUint16(b, uint16(row%folds))
		}
		j.Split.Assigned = c.put(b)
	}
	if grouped {
		for row := range d.manifest.Rows {
			d.local.Groups = append(d.local.Groups, uint16(row%7))
		}
		j.Split.Groups = c.put(dataset.EncodeFolds(d.local.Groups))
		d.manifest.Groups = &dataset.Groups{Digest: j.Split.Groups, Names: []string{"a", "b", "c", "d", "e", "f", "g"}}
	}
	l.setup(w, 40, j, d.manifest)
	run := l.message(40, 0, r, allTasks(folds))
	l.to(w, run)
	l.to(w, run) // in work: ignored
	var first *protocol.Result
	for range folds {
		m := receive(t, "a result", l.gathered)
		first = m
		got := must[[]byte](t)(l.fetch(m))
		child := pipeline.SubJob(j, int(m.Task))
		alone := must[*pipeline.Outcome](t)(local.Run(t.Context(), child, d.local,
			local.Options{Lanes: 2, Points: curve.FoldPoints}))
		if want := must[[]byte](t)(alone.Encode()); !bytes.Equal(got, want) {
			t.Errorf("fold %d: %d bytes differ from the %d of the job alone", m.Task, len(got), len(want))
		}
	}
	idle(t, w)
	if got := counter(w.metrics.Tasks); got != folds {
		t.Errorf("%v units were computed", got)
	}
	l.to(w, l.message(40, 0, r, []uint32{first.Task}))
	again := receive(t, "the result again", l.gathered)
	if *again != *first {
		t.Errorf("announced %+v, then %+v", first, again)
	}
	l.to(w, &protocol.Forget{Epoch: 5, Job: 40})
	eventually(t, "the result is gone", func() bool {
		_, err := l.fetch(first)
		return errors.Is(err, bus.ErrNoBlob)
	})
	eventually(t, "its shards are unmapped", func() bool { return openShards(w) == 0 })
}

// long is a sub-job that does not end by itself.
var long = param.Values{"steps": int64(1 << 40), "validation_fraction": 0.0}

func working(w *running, n int) func() bool {
	return func() bool {
		return w.jobs.busy.Load() == int64(n)
	}
}

// Forget, of a job or of tasks, and a newer round, end collected tasks that run; a new leader's epoch
// does not.
func TestGatheredTasksEnd(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{Slots: 2})
	j, r := foldsRound(t, d, 2, long)
	l.setup(w, 40, j, d.manifest)
	l.to(w, l.message(40, 0, r, allTasks(2)))
	eventually(t, "both units run", working(w, 2))

	next := c.lead("b", 6)
	next.to(w, next.message(40, 0, r, allTasks(2)))
	eventually(t, "the new leader is obeyed", func() bool { return counter(w.metrics.Rounds) == 2 })
	w.jobs.mu.Lock()
	for unit := range uint32(2) {
		task := w.jobs.machine.Jobs()[40].Task(0, unit)
		if task.Stamp.Epoch != 6 || task.Local.(*gathered).ctx.Err() != nil || task.Reply != next.results() {
			t.Errorf("a running unit stands for %+v", task.Stamp)
		}
	}
	w.jobs.mu.Unlock()

	next.to(w, &protocol.Forget{Epoch: 6, Job: 40, Round: 0, Tasks: []uint32{1, 7}})
	eventually(t, "the other unit runs alone", working(w, 1))
	w.jobs.mu.Lock()
	if j := w.jobs.machine.Jobs()[40]; j.Task(0, 0) == nil || j.Task(0, 1) != nil {
		t.Error("another unit was stopped")
	}
	w.jobs.mu.Unlock()
	next.to(w, next.message(40, 1, r, []uint32{0}))
	eventually(t, "only the newer round runs", working(w, 1))
	next.to(w, &protocol.Forget{Epoch: 6, Job: 40})
	eventually(t, "nothing runs", working(w, 0))
	if len(l.gathered)+len(next.gathered)+len(l.fails)+len(next.fails) > 0 {
		t.Error("what was stopped was answered")
	}
}

// Summed rounds do not queue behind collected tasks, though these fill all slots.
func TestSumsPassGatheredTasks(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{Slots: 1})
	slow, r := foldsRound(t, d, 2, long)
	l.setup(w, 40, slow, d.manifest)
	l.to(w, l.message(40, 0, r, allTasks(2)))
	eventually(t, "a unit runs", working(w, 1))
	j := newTestJob(t, d, 7, nil)
	trainer := must[pipeline.Finisher](t)(pipeline.New(j, d.manifest, nil))
	e := l.executor(41, j, d, w)
	none := func(uint64, round.Trainer) error { return nil }
	if err := engine.Drive(t.Context(), trainer, 0, e, none); err != nil {
		t.Fatal(err)
	}
	sameOutcome(t, trainer, j, d)
}

// Stopping the worker ends collected tasks at once.
func TestStopEndsGatheredTasks(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{Slots: 1})
	j, r := foldsRound(t, d, 2, long)
	l.setup(w, 40, j, d.manifest)
	l.to(w, l.message(40, 0, r, allTasks(2)))
	eventually(t, "a unit runs", working(w, 1))
	w.stop()
	if n := openShards(w); n != 0 || len(l.fails) > 0 {
		t.Errorf("%d shards are still mapped, %d failures", n, len(l.fails))
	}
}

// A worker tells how far a sub-job is while it runs, and tells a new leader how much
// of that an earlier one knows.
func TestSubJobsReport(t *testing.T) {
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
	if first.Task != 1 || first.Worker != w.id || first.Done.Rounds == 0 || first.Done.Steps == 0 ||
		first.Done.Samples == 0 ||
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

// The last report of a sub-job comes before its result, and says all that it did.
func TestSubJobsReportTheirEnd(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{Slots: 1})
	j, r := foldsRound(t, d, 2, nil)
	l.setup(w, 40, j, d.manifest)
	run := l.message(40, 0, r, []uint32{0})
	l.to(w, run)
	receive(t, "the result", l.gathered)
	alone := must[*pipeline.Outcome](t)(local.Run(t.Context(), pipeline.SubJob(j, 0), d.local, local.Options{}))
	last := func(l *leader) (m *protocol.Progress) {
		for len(l.progress) > 0 {
			m = <-l.progress
		}
		return m
	}
	if m := last(l); m == nil || m.Done.Steps != alone.Steps || m.Done.Samples != alone.Samples ||
		m.Done.Rounds < alone.Steps {
		t.Errorf("the end is told as %+v; alone it has %d steps and %d samples", m, alone.Steps, alone.Samples)
	}
	next := c.lead("b", 6) // it asks for a result that there is
	next.to(w, next.message(40, 0, r, []uint32{0}))
	receive(t, "the result again", next.gathered)
	if m := last(next); m == nil || m.Counted != m.Done || m.Done.Steps != alone.Steps {
		t.Errorf("the new leader is told %+v", m)
	}
}

// Tasks are timed by the kind that the leader says; what says none is "other".
func TestKindsOfTasks(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{Slots: 1})
	j, r := foldsRound(t, d, 2, nil)
	l.setup(w, 40, j, d.manifest)
	l.to(w, l.message(40, 0, r, []uint32{0}))
	receive(t, "a result", l.gathered)
	run := l.message(40, 0, r, []uint32{1})
	run.Kind = ""
	l.to(w, run)
	receive(t, "another", l.gathered)
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
