package verifier_test

import (
	"context"
	"errors"
	"testing"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/verifier"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// shelf is blobs in memory.
type shelf struct {
	blobs map[string][]byte
	asked int
}

var errMissing = errors.New("no such blob")

func (s *shelf) Get(_ context.Context, digest string) ([]byte, error) {
	s.asked++
	if b, ok := s.blobs[digest]; ok {
		return b, nil
	}
	return nil, errMissing
}

// data is a small dataset and its shards on a shelf.
func data(t *testing.T) (*local.Data, *shelf) {
	t.Helper()
	m, rows := datatest.Artificial(t, 400)
	s := &shelf{blobs: make(map[string][]byte)}
	for i, shard := range rows {
		s.blobs[m.Shards[i].Digest] = dataset.EncodeShard(shard, nil)
	}
	return &local.Data{Manifest: m, Shards: rows}, s
}

// bench runs a job with every task computed by a verifier.
type bench struct {
	r    *verifier.Verifier
	job  *round.Job
	m    *dataset.Manifest
	tree engine.Tree
}

func (b *bench) Do(ctx context.Context, _ uint64, r *round.Round, res *round.Result) error {
	if how := r.Reduce(); how != nil {
		b.tree.Reset(r.Tasks, how.Shape)
	}
	res.Sum, res.Gathered = nil, make([][]byte, r.Tasks)
	for u := range r.Tasks {
		c := &dispatch.Case{ID: 40, Job: b.job, Manifest: b.m, Round: r, Task: u}
		if r.Gather() != nil {
			part, err := b.r.Gather(ctx, c)
			if err != nil {
				return err
			}
			res.Gathered[u] = part
			continue
		}
		p := b.tree.Partial()
		if err := b.r.Reduce(ctx, c, p); err != nil {
			return err
		}
		if _, err := b.tree.Put(0, u, p); err != nil {
			return err
		}
	}
	if r.Reduce() != nil {
		res.Sum, res.Gathered = b.tree.Root(), nil
	}
	return nil
}

// TestReferee: a job all of whose tasks the verifier computes has the model of
// --local, whether its memory holds the whole dataset or a few shards.
func TestReferee(t *testing.T) {
	d, blobs := data(t)
	largest, all := int64(0), int64(0)
	for _, s := range d.Manifest.Shards {
		largest, all = max(largest, s.Bytes), all+s.Bytes
	}
	for _, c := range []struct {
		name   string
		spec   protocol.Spec
		memory int64
	}{
		{"steps", protocol.Spec{Algorithm: "ldlf", TestFraction: 0.1, Set: map[string]string{"steps": "60", "trees": "2",
			"depth": "3"}}, 0},
		{"steps in little memory", protocol.Spec{Algorithm: "ldlf", TestFraction: 0.1, KeepPredictions: new(int64),
			Set: map[string]string{"steps": "6", "trees": "2", "depth": "3"}}, max(largest, all/2)},
		{"trees", protocol.Spec{Algorithm: "structrf", TestFraction: 0.1, Set: map[string]string{"trees": "4"}}, all},
		{"child jobs", protocol.Spec{Algorithm: "structrf", Folds: 2, Set: map[string]string{"trees": "2"}}, all},
	} {
		t.Run(c.name, func(t *testing.T) {
			job, err := spec.Resolve(c.spec, d.Manifest)
			if err != nil {
				t.Fatal(err)
			}
			want, err := local.Run(t.Context(), job, d, local.Options{})
			if err != nil {
				t.Fatal(err)
			}
			trainer, err := pipeline.New(job, d.Manifest, nil)
			if err != nil {
				t.Fatal(err)
			}
			b := &bench{r: &verifier.Verifier{Blobs: blobs, Memory: c.memory}, job: job, m: d.Manifest}
			if err := engine.Drive(t.Context(), trainer, 0, b, func(uint64, round.Trainer) error { return nil }); err != nil {
				t.Fatal(err)
			}
			got, err := trainer.Outcome()
			if err != nil {
				t.Fatal(err)
			}
			if x, y := digests(got), digests(want); x != y || x == "" {
				t.Errorf("models %s, --local has %s", x, y)
			}
		})
	}
}

func digests(o *pipeline.Outcome) string {
	s := o.ModelDigest
	for _, f := range o.Folds {
		s += " " + f.ModelDigest
	}
	return s
}

// TestRefereeRefuses what its memory does not hold, and what is not to be had; and
// goes on afterwards.
func TestRefereeRefuses(t *testing.T) {
	d, blobs := data(t)
	job, err := spec.Resolve(protocol.Spec{Algorithm: "structrf", Set: map[string]string{"trees": "1"}}, d.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	trainer, err := pipeline.New(job, d.Manifest, nil)
	if err != nil {
		t.Fatal(err)
	}
	due, err := trainer.Next()
	if err != nil {
		t.Fatal(err)
	}
	c := &dispatch.Case{ID: 40, Job: job, Manifest: d.Manifest, Round: due}
	if _, err := (&verifier.Verifier{Blobs: blobs, Memory: 1000}).Gather(t.Context(), c); !errors.Is(err,
		verifier.ErrTooLarge) {
		t.Errorf("error %v", err)
	}
	r := &verifier.Verifier{Blobs: &shelf{}}
	if _, err := r.Gather(t.Context(), c); !errors.Is(err, errMissing) {
		t.Errorf("error %v", err)
	}
	r.Blobs = blobs
	if _, err := r.Gather(t.Context(), c); err != nil {
		t.Error(err)
	}
	asked := blobs.asked
	if _, err := r.Gather(t.Context(), c); err != nil || blobs.asked != asked {
		t.Errorf("shards were fetched again, error %v", err)
	}
}

// TestRefereeChecksShards: a shard that is whole but not the one that the manifest
// describes is refused, as a worker refuses it, and not computed with.
func TestRefereeChecksShards(t *testing.T) {
	d, blobs := data(t)
	job, err := spec.Resolve(protocol.Spec{Algorithm: "ldlf", Set: map[string]string{"steps": "2", "trees": "1",
		"depth": "3"}}, d.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	trainer, err := pipeline.New(job, d.Manifest, nil)
	if err != nil {
		t.Fatal(err)
	}
	due, err := trainer.Next()
	if err != nil {
		t.Fatal(err)
	}
	c := &dispatch.Case{ID: 40, Job: job, Manifest: d.Manifest, Round: due}
	digest := d.Manifest.Shards[0].Digest
	good := blobs.blobs[digest]
	for name, damage := range map[string]func(r *dataset.Rows){
		"too few rows": func(r *dataset.Rows) {
			r.N--
			r.X, r.D, r.Row = r.X[r.Features:], r.D[r.Labels:], r.Row[1:]
		},
		"another number of labels": func(r *dataset.Rows) { r.Labels, r.D = r.Labels-1, r.D[r.N:] },
		"rows of another shard":    func(r *dataset.Rows) { r.Row[0], r.Row[1] = r.Row[1], r.Row[0] },
		"rows beyond the dataset":  func(r *dataset.Rows) { r.Row[0] = uint32(d.Manifest.Rows) },
	} {
		rows, err := dataset.DecodeShard(good)
		if err != nil {
			t.Fatal(err)
		}
		bad := *rows
		bad.Row = append([]uint32(nil), rows.Row...)
		damage(&bad)
		blobs.blobs[digest] = dataset.EncodeShard(&bad, nil)
		var p round.Partial
		p.Reset(due.Reduce().Shape)
		if err := (&verifier.Verifier{Blobs: blobs}).Reduce(t.Context(), c, &p); !errors.Is(err, dataset.ErrFormat) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
