package worker

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/worker/batch"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// samePartial reports the first bit in which two partials differ.
func samePartial(got, want *round.Partial) error {
	for _, x := range []struct {
		name      string
		got, want []byte
	}{
		{"F64", num.Bytes64(got.F64), num.Bytes64(want.F64)},
		{"F32", num.Bytes32(got.F32), num.Bytes32(want.F32)},
		{"Index", num.BytesU32(got.Index), num.BytesU32(want.Index)},
		{"Values", num.Bytes32(got.Values), num.Bytes32(want.Values)},
	} {
		if !slices.Equal(x.got, x.want) {
			return fmt.Errorf("%s differs", x.name)
		}
	}
	return nil
}

// oracle is the same job in this process.
func oracle(t testing.TB, d *data, j *round.Job) *engine.Local {
	t.Helper()
	at := datatest.Data(t, d.manifest, d.local.Shards, j.Split, d.local.Assigned)
	k, err := pipeline.NewKernel(j, d.manifest)
	if err != nil {
		t.Fatal(err)
	}
	return engine.NewLocal(k, at, 1, nil)
}

// rounds drives a job in this process and returns copies of its first n rounds
// and their results.
func rounds(t testing.TB, d *data, j *round.Job, n int) (list []*round.Round, sums []*round.Partial) {
	t.Helper()
	trainer := must[pipeline.Finisher](t)(pipeline.New(j, d.manifest, nil))
	x := oracle(t, d, j)
	for i := range n {
		r, err := trainer.Next()
		if err != nil || r == nil {
			t.Fatal("the job is shorter than the test wants", err)
		}
		list = append(list, copyRound(r))
		var res round.Result
		if err := x.Do(t.Context(), uint64(i), r, &res); err != nil {
			t.Fatal(err)
		}
		sums = append(sums, copyPartial(res.Sum))
		if err := trainer.Fold(&res); err != nil {
			t.Fatal(err)
		}
	}
	return list, sums
}

func copyRound(r *round.Round) *round.Round {
	c := *r
	c.Vars = slices.Clone(r.Vars)
	for i := range c.Vars {
		c.Vars[i].Data = slices.Clone(c.Vars[i].Data)
	}
	return &c
}

func copyPartial(p *round.Partial) *round.Partial {
	c := *p
	c.F64, c.F32 = slices.Clone(p.F64), slices.Clone(p.F32)
	c.Index, c.Values = slices.Clone(p.Index), slices.Clone(p.Values)
	return &c
}

// node computes node (level, i) of a round's tree in this process.
func node(t testing.TB, d *data, j *round.Job, r *round.Round, level, i int) *round.Partial {
	t.Helper()
	at := datatest.Data(t, d.manifest, d.local.Shards, j.Split, nil)
	k := must[round.Kernel](t)(pipeline.NewKernel(j, d.manifest))
	var tree engine.Tree
	tree.Reset(r.Tasks, r.Reduce().Shape)
	for u := i << level; u < min((i+1)<<level, r.Tasks); u++ {
		p := tree.Partial()
		if err := engine.RunTask(p, k, r.Task(u), at, r.Vars, engine.NewDerivedCache(0), k.NewScratch()); err != nil {
			t.Fatal(err)
		}
		must[bool](t)(tree.Put(0, u, p))
	}
	var found *round.Partial
	tree.Nodes(func(l, n int, p *round.Partial) {
		if l == level && n == i {
			found = p
		}
	})
	if found == nil {
		t.Fatalf("no node (%d, %d) in a tree of %d units", level, i, r.Tasks)
	}
	return found
}

// A whole job on one and on several workers gives, round by round, the bits of
// the same job in one process, on dense and on sparse rows, and its outcome.
func TestJobEqualsLocal(t *testing.T) {
	for _, x := range []struct {
		name    string
		src     dataset.Source
		workers int
		given   param.Values
	}{
		{"dense/1", dense(), 1, nil},
		{"dense/3", dense(), 3, param.Values{"batch_size": int64(512)}},
		{"sparse/2", sparse(), 2, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			d := importData(t, x.src)
			c := newCluster(t)
			c.add(d)
			l := c.lead("a", 5)
			var workers []*running
			for range x.workers {
				workers = append(workers, c.start(Config{}))
			}
			j := newTestJob(t, d, 7, x.given)
			e := l.executor(40, j, d, workers...)
			e.check = oracle(t, d, j)
			trainer := must[pipeline.Finisher](t)(pipeline.New(j, d.manifest, nil))
			none := func(uint64, round.Trainer) error { return nil }
			if err := engine.Drive(t.Context(), trainer, 0, e, none); err != nil {
				t.Fatal(err)
			}
			sameOutcome(t, trainer, j, d)
		})
	}
}

func sameOutcome(t testing.TB, trainer pipeline.Finisher, j *round.Job, d *data) {
	t.Helper()
	want := must[*pipeline.Outcome](t)(local.Run(t.Context(), j, d.local, local.Options{Lanes: 1}))
	got := must[*pipeline.Outcome](t)(trainer.Outcome())
	if got.ModelDigest != want.ModelDigest || got.Measures != want.Measures {
		t.Errorf("got model %s, %v; in one process %s, %v", got.ModelDigest, got.Measures, want.ModelDigest, want.Measures)
	}
}

// Two jobs at once, on different datasets, do not disturb each other.
func TestTwoJobsAtOnce(t *testing.T) {
	a, b := importData(t, dense()), importData(t, sparse())
	c := newCluster(t)
	c.add(a)
	c.add(b)
	l := c.lead("a", 5)
	w1, w2 := c.start(Config{}), c.start(Config{Slots: 1})
	ends := make(chan error, 2)
	var trainers []pipeline.Finisher
	jobs := []*round.Job{newTestJob(t, a, 1, nil), newTestJob(t, b, 2, nil)}
	for i, d := range []*data{a, b} {
		trainer := must[pipeline.Finisher](t)(pipeline.New(jobs[i], d.manifest, nil))
		trainers = append(trainers, trainer)
		e := l.executor(uint64(50+i), jobs[i], d, w1, w2)
		go func() {
			ends <- engine.Drive(context.Background(), trainer, 0, e, func(uint64, round.Trainer) error { return nil })
		}()
	}
	for range 2 {
		if err := receive(t, "both jobs end", ends); err != nil {
			t.Fatal(err)
		}
	}
	sameOutcome(t, trainers[0], jobs[0], a)
	sameOutcome(t, trainers[1], jobs[1], b)
}

// A worker folds what it can: tasks 0 to 3 and 5 of 16 are nodes (2, 0) and
// (0, 5).
func TestPartsAreMaximalNodes(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{})
	j := newTestJob(t, d, 7, param.Values{"scaling": "standard"})
	list, _ := rounds(t, d, j, 1)
	r := list[0]
	if r.Tasks != 16 {
		t.Fatalf("%d units; the test wants a round over all 16 shards", r.Tasks)
	}
	l.setup(w, 40, j, d.manifest)
	l.values(w, 40, r)
	l.to(w, l.message(40, 3, r, []uint32{5, 0, 1, 2, 3}))
	for range 2 {
		p := receive(t, "a part", l.parts)
		if p.Stamp != (protocol.Stamp{Epoch: 5, Job: 40, Round: 3}) || p.Worker != w.id || p.Compute == 0 {
			t.Errorf("part of %+v by %q, %d ns", p.Stamp, p.Worker, p.Compute)
		}
		if at := [2]int{int(p.Level), int(p.Index)}; at != [2]int{2, 0} && at != [2]int{0, 5} {
			t.Errorf("a part for node %v", at)
		}
		if err := samePartial(p.Partial, node(t, d, j, r, int(p.Level), int(p.Index))); err != nil {
			t.Errorf("node (%d, %d): %v", p.Level, p.Index, err)
		}
	}
}

// A worker that lacks the job asks for it, then for the values, and never
// guesses.
func TestNeeds(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{})
	j := newTestJob(t, d, 7, nil)
	list, sums := rounds(t, d, j, 3)
	n := len(list) - 1
	r := list[n]
	if len(r.Vars) == 0 {
		t.Fatal("the test wants a round with values")
	}
	run := l.message(40, uint64(n), r, allTasks(r.Tasks))
	l.to(w, run)
	need := receive(t, "a need", l.needs)
	if !need.Setup || len(need.Refs) > 0 || need.Stamp != run.Stamp || need.Worker != w.id {
		t.Errorf("got %+v for an unknown job", need)
	}
	l.setup(w, 40, j, d.manifest)
	l.to(w, run)
	need = receive(t, "a need", l.needs)
	if need.Setup || !slices.Equal(need.Refs, run.Refs) {
		t.Errorf("got %+v for a job without values, want %v", need, run.Refs)
	}
	l.values(w, 40, r)
	l.to(w, run)
	p := receive(t, "a part", l.parts)
	if err := samePartial(p.Partial, sums[n]); err != nil {
		t.Error(err)
	}
	if got := counter(w.metrics.Needs); got != 2 {
		t.Errorf("%v needs are counted", got)
	}
}

// A task that is queued is not computed twice; one that was answered is answered
// again.
func TestDuplicateRun(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{})
	j := newTestJob(t, d, 7, param.Values{"scaling": "standard"})
	list, sums := rounds(t, d, j, 1)
	r := list[0]
	run := l.message(40, 0, r, allTasks(r.Tasks))
	open := c.close() // tasks wait for their shards
	l.setup(w, 40, j, d.manifest)
	for range 3 {
		l.to(w, run)
	}
	l.to(w, l.message(40, 0, r, []uint32{3, 7}))
	eventually(t, "all four are taken", func() bool { return counter(w.metrics.Rounds) == 4 })
	open()
	for _, what := range []string{"a part", "the part once more"} {
		if err := samePartial(receive(t, what, l.parts).Partial, sums[0]); err != nil {
			t.Error(err)
		}
		idle(t, w) // before that, run is an order of the batch that ends
		if what == "a part" {
			l.to(w, run)
		}
	}
	if got := counter(w.metrics.Tasks); got != float64(2*r.Tasks) {
		t.Errorf("%v units were computed where %d were due", got, 2*r.Tasks)
	}
	if len(l.parts) > 0 {
		t.Error("there are further parts")
	}
}

// idle waits until the worker has no batch.
func idle(t testing.TB, w *running) {
	t.Helper()
	eventually(t, "the worker is idle", func() bool {
		return w.quiet(func(j *batch.Job) bool { return !j.InUse() }) && w.jobs.busy.Load() == 0
	})
}

// A newer round supersedes what is queued of an older one; an older one is late.
func TestNewerRoundSupersedes(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{})
	j := newTestJob(t, d, 7, param.Values{"scaling": "standard"})
	list, sums := rounds(t, d, j, 1)
	r := list[0]
	open := c.close()
	l.setup(w, 40, j, d.manifest)
	l.to(w, l.message(40, 3, r, allTasks(r.Tasks)))
	l.to(w, l.message(40, 4, r, allTasks(r.Tasks)))
	l.to(w, l.message(40, 3, r, allTasks(r.Tasks)))
	eventually(t, "the late round is dropped", func() bool {
		return counter(w.metrics.OrdersDropped.WithLabelValues("late")) == 1
	})
	open()
	p := receive(t, "a part", l.parts)
	if p.Round != 4 {
		t.Errorf("a part of round %d", p.Round)
	}
	if err := samePartial(p.Partial, sums[0]); err != nil {
		t.Error(err)
	}
	idle(t, w)
	if got := counter(w.metrics.Tasks); got != float64(r.Tasks) || len(l.parts) > 0 {
		t.Errorf("%v units were computed where %d were due; %d further parts", got, r.Tasks, len(l.parts))
	}
}

// The highest epoch seen is obeyed; a new leader may go back to a round of
// before, with values that the worker has already.
func TestEpochs(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	old := c.lead("a", 5)
	w := c.start(Config{})
	j := newTestJob(t, d, 7, nil)
	list, sums := rounds(t, d, j, 3)
	r := list[2]
	old.setup(w, 40, j, d.manifest)
	old.values(w, 40, r)
	old.to(w, old.message(40, 9, r, allTasks(r.Tasks)))
	receive(t, "a part", old.parts)

	next := c.lead("b", 8)
	eventually(t, "the new leader is heard", func() bool { return w.jobs.epoch() == 8 })
	old.to(w, old.message(40, 10, r, allTasks(r.Tasks)))
	old.setup(w, 41, j, d.manifest)
	old.to(w, &protocol.Forget{Epoch: 5, Job: 40})
	old.announce()
	next.to(w, next.message(40, 2, r, allTasks(r.Tasks)))
	p := receive(t, "a part for the new leader", next.parts)
	if err := samePartial(p.Partial, sums[2]); err != nil || p.Epoch != 8 {
		t.Errorf("epoch %d: %v", p.Epoch, err)
	}
	eventually(t, "four messages of the old leader are dropped", func() bool {
		return counter(w.metrics.OrdersDropped.WithLabelValues("leader_epoch")) == 4
	})
	if len(old.parts) > 0 {
		t.Error("the old leader was answered")
	}
	full := func(b protocol.Heartbeat) bool {
		return b.Full && b.Worker == w.id && len(b.Holds) == len(d.manifest.Shards)
	}
	for !full(receive(t, "a full beat for the new leader", next.beats)) {
	}
}

// Shards that a manifest lists in each other's place have the digests and the shapes that it
// says, and other rows: their tasks fail for good, and no others.
func TestShardsInEachOthersPlace(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{})
	j := newTestJob(t, d, 7, param.Values{"scaling": "standard"})
	list, _ := rounds(t, d, j, 1)
	m := *d.manifest
	m.Shards = slices.Clone(m.Shards)
	at := slices.IndexFunc(m.Shards[1:], func(s dataset.ShardRef) bool { return s.Rows == m.Shards[0].Rows }) + 1
	m.Shards[0], m.Shards[at] = m.Shards[at], m.Shards[0]
	j.Dataset = m.Digest()
	l.setup(w, 40, j, &m)
	l.to(w, l.message(40, 0, list[0], allTasks(list[0].Tasks)))
	failed := map[uint32]bool{}
	for range 2 {
		f := receive(t, "a failure", l.fails)
		failed[f.Task] = true
		if !f.Permanent || !strings.Contains(f.Reason, m.Shards[f.Task].Digest[:12]) ||
			!strings.Contains(f.Reason, "has sample") {
			t.Errorf("got %+v", f)
		}
	}
	if !failed[0] || !failed[uint32(at)] {
		t.Errorf("units %v failed", failed)
	}
}

// A shard that nobody has fails the tasks that need it, for now, and no others.
func TestMissingShard(t *testing.T) {
	t.Parallel() // it waits
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	c.remove(d.manifest.Shards[6].Digest)
	l := c.lead("a", 5)
	w := c.start(Config{})
	j := newTestJob(t, d, 7, param.Values{"scaling": "standard"})
	list, _ := rounds(t, d, j, 1)
	r := list[0]
	l.setup(w, 40, j, d.manifest)
	l.to(w, l.message(40, 0, r, []uint32{4, 5, 6, 7}))
	f := receive(t, "a failure", l.fails)
	if f.Task != 6 || f.Permanent || f.Round != 0 || f.Job != 40 ||
		!strings.Contains(f.Reason, d.manifest.Shards[6].Digest[:12]) {
		t.Errorf("got %+v", f)
	}
	got := map[[2]int]bool{}
	for range 2 {
		p := receive(t, "a part", l.parts)
		got[[2]int{int(p.Level), int(p.Index)}] = true
	}
	if !got[[2]int{1, 2}] || !got[[2]int{0, 7}] {
		t.Errorf("parts %v", got)
	}
	c.add(d)
	l.to(w, l.message(40, 0, r, []uint32{6}))
	if p := receive(t, "a part", l.parts); p.Index != 6 {
		t.Errorf("a part for unit %d", p.Index)
	}
}

// A a partial result is not finite is a passing failure that names the number; a kernel's
// panic is a permanent one, and the worker lives on.
func TestBadNumbersAndPanics(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{Slots: 1})
	j := newTestJob(t, d, 7, nil)
	list, sums := rounds(t, d, j, 4)
	r := list[3]
	l.setup(w, 40, j, d.manifest)

	bad := copyRound(r)
	for i := range bad.Vars {
		bad.Vars[i].Version += 1000
		for k := 0; k+4 <= len(bad.Vars[i].Data); k += 4 {
			copy(bad.Vars[i].Data[k:], num.Bytes32([]float32{float32(math.NaN())}))
		}
	}
	l.values(w, 40, bad)
	l.to(w, l.message(40, 1, bad, []uint32{0}))
	f := receive(t, "a failure", l.fails)
	if f.Permanent || !f.NonFinite || !strings.Contains(f.Reason, "a partial result is not finite") {
		t.Errorf("got %+v", f)
	}

	short := copyRound(r)
	for i := range short.Vars {
		short.Vars[i].Version += 2000
		short.Vars[i].Data = short.Vars[i].Data[:8]
	}
	l.values(w, 40, short)
	l.to(w, l.message(40, 2, short, []uint32{0}))
	f = receive(t, "a failure", l.fails)
	if !f.Permanent || !strings.Contains(f.Reason, "panicked") {
		t.Errorf("got %+v", f)
	}

	l.values(w, 40, r)
	l.to(w, l.message(40, 3, r, allTasks(r.Tasks)))
	p := receive(t, "a part", l.parts)
	if err := samePartial(p.Partial, sums[3]); err != nil {
		t.Error(err)
	}
}

// A job that cannot be set up fails its tasks for good.
func TestBadSetup(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	l := c.lead("a", 5)
	w := c.start(Config{})
	j := newTestJob(t, d, 7, nil)
	list, _ := rounds(t, d, j, 1)
	for i, spoil := range []func(*round.Job){
		func(j *round.Job) { j.Algorithm = "oak" },
		func(j *round.Job) { j.Dataset = strings.Repeat("0", 64) },
		func(j *round.Job) { j.Numerics++ },
	} {
		wrong := *j
		spoil(&wrong)
		id := uint64(60 + i)
		l.setup(w, id, &wrong, d.manifest)
		run := l.message(id, 0, list[0], []uint32{0})
		run.Refs = nil
		l.to(w, run)
		if f := receive(t, "a failure", l.fails); !f.Permanent || f.Job != id {
			t.Errorf("got %+v", f)
		}
	}
}

// Forget stops what waits, gives up all memory, and is followed by nothing.
func TestForgetMidRun(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{})
	j := newTestJob(t, d, 7, param.Values{"scaling": "standard"})
	list, _ := rounds(t, d, j, 1)
	r := list[0]
	l.setup(w, 40, j, d.manifest)
	l.to(w, l.message(40, 0, r, []uint32{0, 1}))
	receive(t, "a part", l.parts)
	open := c.close()
	l.to(w, l.message(40, 1, r, allTasks(r.Tasks)))
	eventually(t, "shards are asked for", func() bool { return c.requests(d.manifest.Shards[2].Digest) > 0 })
	forgotten := w.job(40)
	l.to(w, &protocol.Forget{Epoch: 5, Job: 40})
	eventually(t, "the job is closed", func() bool {
		return w.job(40) == nil && openShards(w) == 0
	})
	open()
	w.jobs.mu.Lock()
	if forgotten.InUse() {
		t.Error("a forgotten job is in use")
	}
	w.jobs.mu.Unlock()
	l.to(w, l.message(40, 1, r, allTasks(r.Tasks)))
	if need := receive(t, "a need", l.needs); !need.Setup {
		t.Errorf("got %+v", need)
	}
	if len(l.parts) > 0 || len(l.fails) > 0 {
		t.Errorf("%d parts and %d failures of a forgotten job", len(l.parts), len(l.fails))
	}
}

func openShards(w *running) (n int) {
	w.cache.mu.Lock()
	defer w.cache.mu.Unlock()
	for _, e := range w.cache.entries {
		if e.open != nil {
			n++
		}
	}
	return n
}

// A new epoch supersedes what is queued for the old leader, before the new one
// asks for anything.
func TestNewEpochDropsSums(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	old := c.lead("a", 5)
	w := c.start(Config{})
	j := newTestJob(t, d, 7, param.Values{"scaling": "standard"})
	list, _ := rounds(t, d, j, 1)
	open := c.close()
	old.setup(w, 40, j, d.manifest)
	old.to(w, old.message(40, 0, list[0], allTasks(list[0].Tasks)))
	eventually(t, "a shard is asked for", func() bool { return c.requests(d.manifest.Shards[0].Digest) > 0 })
	c.lead("b", 6)
	eventually(t, "the new leader is heard", func() bool { return w.jobs.epoch() == 6 })
	open()
	idle(t, w)
	if n := counter(w.metrics.Tasks); n > 0 || len(old.parts) > 0 {
		t.Errorf("%v units were computed for the old leader, %d parts sent", n, len(old.parts))
	}
}
