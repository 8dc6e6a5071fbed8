package worker

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/job/open"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	groveTrees = 3
	groveID    = 40
)

// grove is a job of a forest up to the round that evaluates it. Worker w has grown its trees.
type grove struct {
	*leader
	data     *data
	job      *round.Job
	w        *running
	evaluate *round.Round
	model    *round.Var
	want     round.Partial // what the evaluation sums up to
}

func newGrove(t *testing.T) *grove {
	t.Helper()
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	g := &grove{leader: c.lead("a", 5), data: d, w: c.start(Config{})}
	a := must[algorithms.Algorithm](t)(registry.Find("structrf"))
	r := must[algorithms.Resolved](t)(a.Resolve(param.Values{"trees": int64(groveTrees), "min_samples": int64(40)},
		d.manifest))
	g.job = newTestJob(t, d, 7, nil)
	g.job.Algorithm, g.job.Params, g.job.Split.ValidationFraction = a.Name(), r.Params, r.ValidationFraction
	trainer := must[pipeline.Finisher](t)(pipeline.New(g.job, d.manifest, nil))
	g.grow(trainer)
	g.measure(trainer)
	return g
}

// grow has the worker grow the trees.
func (g *grove) grow(trainer pipeline.Finisher) {
	g.t.Helper()
	g.setup(g.w, groveID, g.job, g.data.manifest)
	r := must[*round.Round](g.t)(trainer.Next())
	g.to(g.w, g.message(groveID, 0, r, allTasks(groveTrees)))
	res := round.Result{Gathered: make([][]byte, groveTrees), Digests: make([]string, groveTrees)}
	for range groveTrees {
		m := receive(g.t, "a tree", g.gathered)
		res.Gathered[m.Task], res.Digests[m.Task] = must[[]byte](g.t)(g.fetch(m)), m.Digest
	}
	if err := trainer.Fold(&res); err != nil {
		g.t.Fatal(err)
	}
}

// measure computes the rounds of the mean, which the worker sees too, and of the evaluation.
func (g *grove) measure(trainer pipeline.Finisher) {
	g.t.Helper()
	job := must[*open.Job](g.t)(open.Open(g.job, g.data.manifest, nil))
	for i, rows := range g.data.local.Shards {
		must[bool](g.t)(job.AddShard(i, rows))
	}
	here := engine.NewLocal(job.Kernel, job.Data, 1, nil)
	g.t.Cleanup(here.ReleaseMemory)
	mean := must[*round.Round](g.t)(trainer.Next())
	g.to(g.w, g.message(groveID, 1, mean, []uint32{0}))
	receive(g.t, "the mean", g.parts)
	var res round.Result
	if err := here.Do(g.t.Context(), 1, mean, &res); err != nil {
		g.t.Fatal(err)
	}
	if err := trainer.Fold(&res); err != nil {
		g.t.Fatal(err)
	}
	g.evaluate = must[*round.Round](g.t)(trainer.Next())
	for i := range g.evaluate.Vars {
		if v := &g.evaluate.Vars[i]; len(v.Chunks) == groveTrees {
			g.model = v
		}
	}
	if g.model == nil {
		g.t.Fatal("the model that is evaluated does not consist of the trees")
	}
	if err := here.Do(g.t.Context(), 2, g.evaluate, &res); err != nil {
		g.t.Fatal(err)
	}
	g.want.F64 = append(g.want.F64, res.Sum.F64...)
}

// send sends a worker the values of the evaluation; the trees of which here is false are named only.
func (g *grove) send(w *running, here func(i int) bool, spoil func(*protocol.Chunk)) {
	g.t.Helper()
	for _, v := range g.evaluate.Vars {
		ref := protocol.Ref{ID: v.ID, Version: v.Version}
		if len(v.Chunks) == 0 {
			g.to(w, &protocol.Value{Epoch: g.epoch, Job: groveID, Ref: ref, Data: v.Data})
		}
		for i, p := range v.Chunks {
			m := &protocol.Chunk{Epoch: g.epoch, Job: groveID, Ref: ref, Index: uint32(i), Of: groveTrees, Digest: p.Digest(),
				Here: here(i)}
			if m.Here {
				m.Data = must[[]byte](g.t)(p.Bytes())
			}
			if spoil != nil {
				spoil(m)
			}
			g.to(w, m)
		}
	}
}

func all(int) bool  { return true }
func none(int) bool { return false }

// run asks for the whole evaluation.
func (g *grove) run(w *running) {
	g.to(w, g.message(groveID, 2, g.evaluate, allTasks(g.evaluate.Tasks)))
}

// measures waits for the evaluation's sum.
func (g *grove) measures() {
	g.t.Helper()
	m := receive(g.t, "the measures", g.parts)
	if m.Round != 2 || fmt.Sprint(m.Partial.F64) != fmt.Sprint(g.want.F64) {
		g.t.Errorf("round %d: measures %v, want %v", m.Round, m.Partial.F64, g.want.F64)
	}
}

// lacks waits for the worker's word that it lacks the model.
func (g *grove) lacks() {
	g.t.Helper()
	m := receive(g.t, "a need", g.needs)
	if m.Setup || len(m.Refs) != 1 || m.Refs[0] != (protocol.Ref{ID: g.model.ID, Version: g.model.Version}) {
		g.t.Errorf("need %+v", m)
	}
}

// TestOwnTreesAreNotSent: a worker evaluates with the trees that it grew, whose bytes it is not sent,
// also once another round came between; they go with the job.
func TestOwnTreesAreNotSent(t *testing.T) {
	g := newGrove(t)
	g.send(g.w, none, nil)
	g.run(g.w)
	g.measures()
	g.to(g.w, &protocol.Forget{Epoch: g.epoch, Job: groveID})
	eventually(t, "the trees are gone", func() bool {
		r := g.w.jobs.results
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.users) == 0 && r.held == 0
	})
}

// TestOthersTreesAreSent: another worker says that it lacks the trees, and is sent them; so is one that
// gets some of them damaged.
func TestOthersTreesAreSent(t *testing.T) {
	g := newGrove(t)
	w := g.start(Config{})
	g.setup(w, groveID, g.job, g.data.manifest)
	g.send(w, func(i int) bool { return i > 0 }, nil)
	g.run(w)
	g.lacks()
	g.send(w, all, func(m *protocol.Chunk) {
		if m.Index == 0 {
			m.Data = append(bytes.Clone(m.Data[:len(m.Data)-1]), ^m.Data[len(m.Data)-1])
		}
	})
	g.run(w)
	g.lacks()
	if got := counter(w.metrics.OrdersDropped.WithLabelValues("malformed")); got != 1 {
		t.Errorf("%v messages were malformed", got)
	}
	g.send(w, all, nil)
	g.run(w)
	g.measures()
}

// TestLostTreesAreSentAgain: where a tree that the worker grew cannot be read any more the task fails for
// now, and the worker lacks the model from then on.
func TestLostTreesAreSentAgain(t *testing.T) {
	g := newGrove(t)
	g.send(g.w, none, nil)
	r := g.w.jobs.results
	r.mu.Lock()
	lost := g.model.Chunks[1].Digest()
	kept := r.small[lost]
	delete(r.small, lost) // as a file that somebody removed
	r.mu.Unlock()
	g.run(g.w)
	for range g.evaluate.Tasks {
		if m := receive(t, "a failure", g.fails); m.Permanent || m.Unable || m.NonFinite {
			t.Errorf("failure %+v", m)
		}
	}
	g.run(g.w)
	g.lacks()
	g.send(g.w, all, nil)
	g.run(g.w)
	g.measures()
	r.mu.Lock()
	r.small[lost] = kept // the test took it away
	r.mu.Unlock()
}

// TestResults: what there is room for in memory makes no file, the rest does; both are
// served until their last user is gone, and then there is room again.
func TestResults(t *testing.T) {
	r := must[*results](t)(openResults(t.TempDir()))
	read := func(digest string) []byte {
		t.Helper()
		b, err := r.open(digest)
		if err != nil {
			return nil
		}
		defer b.Close()
		return must[[]byte](t)(io.ReadAll(io.NewSectionReader(b, 0, b.Size())))
	}
	small, large := bytes.Repeat([]byte{1}, 1<<20), bytes.Repeat([]byte{2}, maxInMemory-1<<20+1)
	for _, c := range []struct {
		b    []byte
		file bool
	}{{small, false}, {small, false}, {large, true}} {
		digest := must[string](t)(r.put(c.b))
		if digest != blobs.Sum(c.b) || !bytes.Equal(read(digest), c.b) || r.folder.Has(digest) != c.file {
			t.Errorf("%d bytes: digest %.12s, in a file: %v", len(c.b), digest, r.folder.Has(digest))
		}
	}
	one, two := blobs.Sum(small), blobs.Sum(large)
	r.release(one)
	if !bytes.Equal(read(one), small) {
		t.Error("a result with a user left is gone")
	}
	r.release(one)
	r.release(two)
	testkit.Until(t, "the file to be deleted", func() bool { return read(two) == nil })
	if read(one) != nil || r.held != 0 {
		t.Errorf("results without users are there, %d bytes", r.held)
	}
	if must[string](t)(r.put(large)); r.folder.Has(two) {
		t.Error("a file though there is room")
	}
}

// TestSlowDisk: while a file is made or deleted, results in memory are served and users are counted. If a file loses
// its last user and then gets a new user, it is not deleted.
func TestSlowDisk(t *testing.T) {
	r := must[*results](t)(openResults(t.TempDir()))
	large := bytes.Repeat([]byte{2}, maxInMemory+1)
	digest := must[string](t)(r.put(large))
	r.files.Lock() // as a disk that does not answer
	r.release(digest)
	small := must[string](t)(r.put([]byte{1}))
	if !r.retain(small) || r.retain(digest) {
		t.Error("users are wrong")
	}
	if again := must[string](t)(r.put(large)); again != digest || !r.retain(digest) {
		t.Error("the file has no new user")
	}
	r.files.Unlock()
	r.close()
	if b := must[[]byte](t)(r.read(digest)); !bytes.Equal(b, large) {
		t.Error("the file of a user was deleted")
	}
	r.release(digest)
	r.release(digest)
	testkit.Until(t, "the file to be deleted", func() bool { return !r.folder.Has(digest) })
}

// TestSameResults: if one of two tasks with the same result makes a file while there is room in memory for the other,
// the file and the memory are given up with the last user.
func TestSameResults(t *testing.T) {
	r := must[*results](t)(openResults(t.TempDir()))
	for n := range 50 {
		full := must[string](t)(r.put(bytes.Repeat([]byte{1}, maxInMemory)))
		same := bytes.Repeat([]byte{2}, 1<<16+n)
		digest := blobs.Sum(same)
		var puts sync.WaitGroup
		for range 2 {
			puts.Go(func() {
				if _, err := r.put(same); err != nil {
					t.Error(err)
				}
			})
		}
		r.release(full)
		puts.Wait()
		r.release(digest)
		r.release(digest)
		testkit.Until(t, "the result to be deleted", func() bool { return !r.folder.Has(digest) })
		if r.held != 0 || len(r.small) > 0 || len(r.users) > 0 {
			t.Fatalf("%d bytes are held, users %v", r.held, r.users)
		}
	}
}
