package coordinator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/worker"
)

// The blobs of a deleted dataset and the parts of a finished job go once they are
// old, on every coordinator; what is young, or referred to, stays.
func TestBlobsAreGathered(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	c := prepare(t, 3)
	c.tune = func(cfg *coordinator.Config) { cfg.BlobGrace = 3 * time.Second }
	c.startAll(1)
	d, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "other"}, generate.Artificial(500, 2),
		importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := protocol.Spec{Algorithm: "structrf", Dataset: "art", TestFraction: 0.1, Set: map[string]string{"trees": "8"}}
	end := c.train(ctx, s, nil)
	if err := c.client.Datasets().Delete(ctx, "other"); err != nil {
		t.Fatal(err)
	}
	young, err := c.client.Blobs().Put(ctx, []byte("an import that has just begun"))
	if err != nil {
		t.Fatal(err)
	}
	keep := map[string]bool{end.Models[0].Blob: true, end.Predictions.Blob: true}
	for _, shard := range d.Manifest.Shards {
		keep[shard.Digest] = true
	}
	testkit.Until(t, "the end of what nothing refers to", func() bool {
		if _, err := c.client.Blobs().Put(ctx, []byte("an import that has just begun")); err != nil { // it stays young
			t.Fatal(err)
		}
		for _, p := range c.peers {
			for _, digest := range c.blobsOf(p.ID) {
				if !keep[digest] && digest != young {
					return false
				}
			}
		}
		return true
	})
	for _, p := range c.peers {
		have := make(map[string]bool)
		for _, digest := range c.blobsOf(p.ID) {
			have[digest] = true
		}
		for digest := range keep {
			if !have[digest] {
				t.Errorf("%s lacks blob %s, which is referred to", p.ID, digest)
			}
		}
		for _, shard := range other.Manifest.Shards {
			if have[shard.Digest] && !keep[shard.Digest] {
				t.Errorf("%s has a shard of the deleted dataset", p.ID)
			}
		}
	}
	if b, err := c.client.Blobs().Get(ctx, young); err != nil || len(b) == 0 {
		t.Errorf("the young blob: %v", err)
	}
}

func (c *cluster) folder(id string) string { return filepath.Join(c.dir, id, "blobs") }

// blobsOf lists the blobs in a coordinator's folder.
func (c *cluster) blobsOf(id string) (digests []string) {
	c.t.Helper()
	entries, err := os.ReadDir(c.folder(id))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range entries {
		if blobs.Valid(e.Name()) {
			digests = append(digests, e.Name())
		}
	}
	return digests
}

// alike gives rows that all have the same labels: a fit is perfect soon, up to rounding.
type alike struct{ dataset.Source }

func (a alike) Scan(f func(*dataset.Row) error) error {
	return a.Source.Scan(func(r *dataset.Row) error {
		copy(r.Labels, []float64{0.1, 0.2, 0.7})
		return f(r)
	})
}

// TestPerfectFit: a job with losses of 0, up to rounding, ends, and its curve has all
// losses. A job of folds has only the curves of its folds.
func TestPerfectFit(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 1, 1)
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"},
		alike{Source: generate.Artificial(400, 1)}, importer.Options{}); err != nil {
		t.Fatal(err)
	}
	for name, folds := range map[string]int{"whole": 0, "folds": 2} {
		s := testSpec(map[string]string{"steps": "300", "trees": "2", "depth": "4", "leaf_batches": "10"})
		s.Name, s.TestFraction, s.Folds = name, 0, folds
		end := c.train(ctx, s, nil)
		if end.State != protocol.Done || !(end.Progress.Loss >= 0) {
			t.Fatalf("%s: %s %s, %+v", name, end.State, end.Error, end.Progress)
		}
		if end.Ran < end.Seconds/2 {
			t.Errorf("%s: it ran %v seconds, and took %v", name, end.Ran, end.Seconds)
		}
		line, err := c.client.Jobs().Curve(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		curves := line.Folds
		if folds == 0 {
			curves = append(curves, line.Points)
		} else if line.Points == nil || len(line.Points) > 0 {
			t.Errorf("a job of folds has points of its own: %v", line.Points)
		}
		if len(curves) != max(1, folds) {
			t.Errorf("%s: %d curves", name, len(curves))
		}
		for _, points := range curves {
			if len(points) < 10 {
				t.Errorf("%s: %d points", name, len(points))
			}
			for _, p := range points {
				if math.IsNaN(p.Training) {
					t.Errorf("%s: the loss of step %d is not known", name, p.Step)
				}
			}
		}
	}
}

// smallEnsemble is a job of 2 × (1 + 3) sub-jobs.
func smallEnsemble() protocol.Spec {
	return protocol.Spec{
		Algorithm: "ensemble", Dataset: "art", TestFraction: 0.1,
		Set: map[string]string{
			"members":     "structrf:trees=8:min_samples=4,ldlf:steps=100:trees=2:depth=4:leaf_batches=20",
			"inner_folds": "3",
		},
	}
}

// TestEnsemble trains an ensemble on one worker; then on three workers, one of them and
// the leader stop while members are trained; then for each of two folds. The digests
// are the same as with --local, and the outcome has the weights.
func TestEnsemble(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	s := smallEnsemble()
	want := localDigest(t, s)
	c := start(t, 3, 1)
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	end := c.train(ctx, s, nil)
	if got := end.Models[0].Digest; got != want {
		t.Errorf("one worker: digest %s, --local has %s", got, want)
	}
	var o pipeline.Outcome
	if err := json.Unmarshal(end.Outcome, &o); err != nil || o.Mixture == nil || len(o.Mixture.Members) != 2 ||
		o.Mixture.Rows != 540 {
		t.Fatalf("the outcome has the weights %+v, error %v", o.Mixture, err)
	}
	if o.Steps <= 8 || end.Progress.Step != o.Steps {
		t.Errorf("%d steps, the job tells of %d", o.Steps, end.Progress.Step)
	}
	c.startWorker("w1")
	c.startWorker("w2")
	s.Name = "again"
	c.pause.Store(int64(300 * time.Millisecond)) // the sub-jobs take several commit intervals together
	if _, err := c.client.Jobs().Submit(ctx, s); err != nil {
		t.Fatal(err)
	}
	stopped := false
	end, err := c.client.Jobs().Watch(ctx, s.Name, func(j *protocol.JobInfo) {
		if j.Gathered >= 2 && !stopped {
			stopped = true
			c.stop("w1")
			c.stop(c.leader(ctx))
		}
	})
	if err != nil || end.State != protocol.Done || end.Models[0].Digest != want {
		t.Errorf("%+v, error %v: --local has %s", end, err, want)
	}
	if !stopped {
		t.Error("the job ended before two members were trained")
	}
	c.pause.Store(0)
	s.Name, s.TestFraction, s.Folds = "folds", 0, 2
	want = localDigest(t, s)
	end = c.train(ctx, s, nil)
	if err := json.Unmarshal(end.Outcome, &o); err != nil || o.ModelDigest != want || len(end.Models) != 2 {
		t.Errorf("folds: digest %s of %d models, error %v; --local has %s", o.ModelDigest, len(end.Models), err, want)
	}
}

// TestValidatedEnsemble trains the best of three by one part of the training rows, while the leader goes
// away after the first results: the second round trains the best member alone, to the digest of --local.
func TestValidatedEnsemble(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	s := protocol.Spec{
		Algorithm: "ensemble", Dataset: "art", Name: "validated", TestFraction: 0.1,
		Set: map[string]string{
			"members": "structrf:trees=8:min_samples=4,structrf:trees=2:max_depth=1,ldlf:steps=400:trees=2:depth=4:leaf_batches=20", "weights": "validated", "inner_folds": "9",
		},
	}
	want := localDigest(t, s)
	c := start(t, 3, 2)
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.client.Jobs().Submit(ctx, s); err != nil {
		t.Fatal(err)
	}
	stopped := false
	end, err := c.client.Jobs().Watch(ctx, s.Name, func(j *protocol.JobInfo) {
		if j.Gathered >= 1 && !stopped {
			stopped = true
			c.stop(c.leader(ctx))
		}
	})
	if err != nil || end.State != protocol.Done || end.Models[0].Digest != want {
		t.Fatalf("%+v, error %v: --local has %s", end, err, want)
	}
	var o pipeline.Outcome
	if err := json.Unmarshal(end.Outcome, &o); err != nil || o.Mixture == nil || len(o.Mixture.Members) != 3 ||
		o.Mixture.Rows != 60 {
		t.Errorf("the outcome has the weights %+v, error %v", o.Mixture, err)
	}
}

// counter reads a counter of the leader.
func (c *cluster) counter(name string) float64 {
	c.t.Helper()
	leader := c.leader(c.t.Context())
	for _, p := range c.peers {
		if p.ID != leader {
			continue
		}
		r, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", p.Port))
		if err != nil {
			c.t.Fatal(err)
		}
		defer r.Body.Close()
		page, err := io.ReadAll(r.Body)
		if err != nil {
			c.t.Fatal(err)
		}
		if m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(page); m != nil {
			v, err := strconv.ParseFloat(string(m[1]), 64)
			if err != nil {
				c.t.Fatal(err)
			}
			return v
		}
	}
	c.t.Fatalf("no counter %s", name)
	return 0
}

// TestTreesAreGrownOnce grows a forest on one worker, and then on three workers, one of
// which stops meanwhile. The digest is the same as with --local, and no finished tree
// is grown again.
func TestTreesAreGrownOnce(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	const trees = 60
	s := protocol.Spec{
		Algorithm: "structrf", Dataset: "art", TestFraction: 0.1,
		Set: map[string]string{"trees": fmt.Sprint(trees), "min_samples": "2"},
	}
	want := localDigest(t, s)
	c := start(t, 1, 1)
	d, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := c.counter("coppice_nats_sent_bytes_total")
	model := c.train(ctx, s, nil).Models[0]
	if model.Digest != want {
		t.Errorf("one worker: digest %s, --local has %s", model.Digest, want)
	}
	// The trees came from the worker, and none goes back to be evaluated there.
	if sent := c.counter("coppice_nats_sent_bytes_total") - before; model.Bytes < 1<<20 || sent > float64(model.Bytes)/4 {
		t.Errorf("the leader sent %v bytes for a model of %d", sent, model.Bytes)
	}
	// Beside the trees there are two rounds over all shards, means and measures, and a task
	// for the predictions.
	once := float64(trees + 2*len(d.Manifest.Shards) + 1)
	first, lost := c.counter("coppice_tasks_dispatched_total"), c.counter("coppice_tasks_retried_total")
	if first < once || first > once+lost { // a busy machine may lose an answer
		t.Errorf("%v units were dispatched, and %v retried, want %v", first, lost, once)
	}
	c.startWorker("w1")
	c.startWorker("w2")
	c.watchTrees(s, trees/4, func() { c.stop("w1") }, want)
	again, retried := c.counter("coppice_tasks_dispatched_total")-first, c.counter("coppice_tasks_retried_total")-lost
	if again > once+retried+2 {
		t.Errorf("%v units were dispatched for a forest of %v, and %v retried: finished trees were grown again", again,
			once, retried)
	}
}

// watchTrees trains again under another name and calls meanwhile once some trees
// are recorded.
func (c *cluster) watchTrees(s protocol.Spec, some int, meanwhile func(), want string) {
	c.t.Helper()
	ctx := deadline(c.t)
	s.Name = "again"
	if _, err := c.client.Jobs().Submit(ctx, s); err != nil {
		c.t.Fatal(err)
	}
	called := false
	end, err := c.client.Jobs().Watch(ctx, s.Name, func(j *protocol.JobInfo) {
		if j.Gathered >= some && !called {
			called = true
			meanwhile()
		}
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if end.State != protocol.Done || end.Models[0].Digest != want {
		c.t.Errorf("%s %s: models %v, --local has %s", end.State, end.Error, end.Models, want)
	}
	if !strings.Contains(string(end.Outcome), "gain_evaluations") {
		c.t.Error("the outcome does not tell of gain_evaluations")
	}
}

// deepSpec is a job on a network.
func deepSpec(set map[string]string) protocol.Spec {
	all := map[string]string{"features": "mlp", "hidden": "8,6", "trees": "2", "depth": "4", "leaf_batches": "20",
		"patience": "1000"}
	maps.Copy(all, set)
	return protocol.Spec{Algorithm: "ldlf", Dataset: "art", TestFraction: 0.1, Set: all}
}

// outcomeHere trains a spec in this process, on the data of the tests.
func outcomeHere(t *testing.T, s protocol.Spec, weights []byte) *pipeline.Outcome {
	t.Helper()
	m, shards := datatest.Artificial(t, 600)
	j, err := spec.Resolve(s, m)
	if err != nil {
		t.Fatal(err)
	}
	o, err := local.Run(t.Context(), j, &local.Data{Manifest: m, Shards: shards, Weights: weights}, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestWeights: a job that begins from weights which the cluster was sent has the digest that the
// same job has in one process, though the leader and a worker go away, alone and in folds. Weights
// that were not sent, or are of another network, are refused.
func TestWeights(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	w, err := network.ReadWeights(outcomeHere(t, deepSpec(map[string]string{"steps": "60"}), nil).Model)
	if err != nil {
		t.Fatal(err)
	}
	s := deepSpec(map[string]string{"steps": "150", "init_from": w.Digest, "freeze": "hidden1", "warmup": "20"})
	c := start(t, 3, 2)
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.client.Jobs().Submit(ctx, s); err == nil || !strings.Contains(err.Error(), "the file of weights") ||
		!strings.Contains(err.Error(), "is not on the cluster") {
		t.Errorf("weights that were not sent: error %v", err)
	}
	if digest, err := c.client.Blobs().Put(ctx, w.File); err != nil || digest != w.Digest {
		t.Fatalf("digest %s, error %v", digest, err)
	}
	wider := deepSpec(map[string]string{"init_from": w.Digest, "hidden": "8,7"})
	if _, err := c.client.Jobs().Submit(ctx, wider); err == nil ||
		!strings.Contains(err.Error(), "hidden2 has the shape 8x6 in the weights but 8x7 in this network") {
		t.Errorf("another network: error %v", err)
	}
	file := deepSpec(map[string]string{"init_from": "m.model"})
	if _, err := c.client.Jobs().Submit(ctx, file); err == nil ||
		!strings.Contains(err.Error(), "is not the digest of uploaded weights") {
		t.Errorf("the name of a file: error %v", err)
	}
	want := outcomeHere(t, s, w.File).ModelDigest
	end := c.train(ctx, s, func() {
		c.stop("w1")
		c.stop(c.leader(ctx))
	})
	if got := end.Models[0].Digest; got != want || end.Job.Weights != w.Digest {
		t.Errorf("digest %s from %q, --local has %s", got, end.Job.Weights, want)
	}
	s.TestFraction, s.Folds, s.Set["steps"] = 0, 2, "100"
	var o pipeline.Outcome
	end = c.train(ctx, s, nil)
	if err := json.Unmarshal(end.Outcome, &o); err != nil || o.ModelDigest != outcomeHere(t, s, w.File).ModelDigest {
		t.Errorf("folds: digest %s, error %v", o.ModelDigest, err)
	}
}

// startLiar runs a worker that flips one bit of its first answer, or of each.
func (c *cluster) startLiar(id string, each bool) {
	var join []string
	for _, p := range c.peers {
		join = append(join, fmt.Sprintf("127.0.0.1:%d", p.Port))
	}
	cfg := worker.Config{Join: join, ID: id, Dir: filepath.Join(c.dir, id), Slots: 1, NATS: c.natsOf,
		Log: c.log.With("node", id)}
	var answers atomic.Int64
	cfg.Spoil = func(_ uint32, sum *round.Partial, part []byte) {
		if answers.Add(1) > 1 && !each {
			return
		}
		if sum != nil {
			if part = num.Bytes64(sum.F64); len(part) == 0 {
				part = num.Bytes32(sum.F32)
			}
		}
		part[len(part)/2] ^= 1
	}
	c.run(id, func(ctx context.Context) error { return worker.Run(ctx, cfg) })
}

// workers lists the workers that the leader knows.
func (c *cluster) workers(ctx context.Context) []protocol.Worker {
	c.t.Helper()
	info, err := c.client.Cluster(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	return info.Workers
}

// TestAuditFindsALiar: a worker that flips a bit is found, named, quarantined and
// recorded. If all tasks are audited, that happens at once, and the model is right.
// With a sample it happens within the job.
func TestAuditFindsALiar(t *testing.T) {
	t.Parallel()
	ldlf := testSpec(map[string]string{"steps": lasting(400), "trees": "2", "depth": "5"})
	forest := protocol.Spec{Algorithm: "structrf", Dataset: "art", TestFraction: 0.1, Set: map[string]string{"trees": "6"}}
	for _, run := range []struct {
		name   string
		spec   protocol.Spec
		audit  float64
		honest int
	}{
		{"every unit of an LDLF", ldlf, 1, 2},
		{"a twentieth of the units", ldlf, 0.05, 2},
		{"trees", forest, 1, 2},
	} {
		t.Run(run.name, func(t *testing.T) {
			ctx := deadline(t)
			want := localDigest(t, run.spec)
			c := start(t, 1, run.honest)
			if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
				importer.Options{}); err != nil {
				t.Fatal(err)
			}
			c.startLiar("liar", run.audit < 1)
			testkit.Until(t, "all workers", func() bool { return len(c.workers(ctx)) > run.honest })
			job, err := c.client.Jobs().SubmitRequest(ctx, protocol.SubmitRequest{Spec: run.spec, Audit: run.audit})
			if err != nil {
				t.Fatal(err)
			}
			end, err := c.client.Jobs().Watch(ctx, job.Name, func(*protocol.JobInfo) {})
			if err != nil || end.State != protocol.Done {
				t.Fatalf("job %+v, error %v", end, err)
			}
			if !strings.Contains(end.Suspect, "worker liar: task ") {
				t.Errorf("suspect %q", end.Suspect)
			}
			if got := end.Models[0].Digest; run.audit == 1 && got != want {
				t.Errorf("digest %s, --local has %s", got, want)
			}
			for _, w := range c.workers(ctx) {
				if refused := strings.Contains(w.State, "quarantined"); refused != (w.ID == "liar") {
					t.Errorf("worker %+v", w)
				}
			}
		})
	}
}

// grouped adds groups of six samples, which are alike, to a source.
type grouped struct{ dataset.Source }

func (g grouped) Info() dataset.Info {
	i := g.Source.Info()
	i.HasGroups = true
	return i
}

func (g grouped) Scan(f func(*dataset.Row) error) error {
	return g.Source.Scan(func(r *dataset.Row) error {
		r.Group = fmt.Sprint("group ", r.Number/6)
		return f(r)
	})
}

// TestWholeGroups: workers draw validation samples and inner folds by group, as one process does, though the job tests
// single samples and a worker goes away.
func TestWholeGroups(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 1, 2)
	src := grouped{generate.Artificial(600, 1)}
	set, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, src, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	data := new(local.Data)
	data.Manifest, data.Shards, err = importer.Build(src, importer.Options{Groups: func(g []uint16) { data.Groups = g }})
	if err != nil {
		t.Fatal(err)
	}
	here := func(s protocol.Spec, change func(*round.Job)) *pipeline.Outcome {
		j, err := spec.Resolve(s, data.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		change(j)
		o, err := local.Run(ctx, j, data, local.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	members := map[string]string{"members": "structrf:trees=2,ldlf:steps=20:trees=2:depth=3", "inner_folds": "3"}
	for _, s := range []protocol.Spec{
		{Name: "ensemble", Algorithm: "ensemble", Dataset: "art", TestFraction: 0.1, Set: members},
		testSpec(map[string]string{"steps": "60", "trees": "2", "depth": "4", "refit": "false"}),
	} {
		name, leaves := s.Algorithm, func() {}
		if s.Algorithm == "ldlf" {
			leaves = func() { c.stop("w1") }
		}
		want := here(s, func(*round.Job) {})
		if single := here(s, func(j *round.Job) { j.Split.Groups = "" }); single.ModelDigest == want.ModelDigest {
			t.Errorf("%s: the groups change nothing", name)
		}
		end := c.train(ctx, s, leaves)
		if got := end.Models[0].Digest; got != want.ModelDigest || end.Job.Split.Groups != set.Manifest.Groups.Digest {
			t.Errorf("%s: digest %s with the groups %q, --local has %s", name, got, end.Job.Split.Groups, want.ModelDigest)
		}
	}
}
