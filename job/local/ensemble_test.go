package local

import (
	"bytes"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// ensembleOf is a small ensemble.
func ensembleOf(s protocol.Spec) protocol.Spec {
	s.Algorithm = "ensemble"
	s.Set = map[string]string{"members": "structrf:trees=4:min_samples=4,ldlf:steps=60:trees=2:depth=4:leaf_batches=20",
		"inner_folds": "3"}
	return s
}

// TestEnsembleLanes: on one lane and on many, alone and in folds, an ensemble has the same
// model, and its members on all rows are those of the jobs alone.
func TestEnsembleLanes(t *testing.T) {
	d := artificial(t, 300)
	for _, folds := range []int{0, 2} {
		j := resolve(t, d, ensembleOf(protocol.Spec{Folds: folds}))
		want := run(t, d, j, Options{Lanes: 1})
		for _, lanes := range []int{2, 4} {
			if got := run(t, d, j, Options{Lanes: lanes}); got.ModelDigest != want.ModelDigest {
				t.Errorf("%d folds, %d lanes: digest %s, one lane %s", folds, lanes, got.ModelDigest, want.ModelDigest)
			}
		}
		if folds > 0 && (want.Folds[1].Mixture == nil ||
			*want.Folds[0].Mixture.OutOfFoldKL == *want.Folds[1].Mixture.OutOfFoldKL) {
			t.Errorf("folds have the mixtures %+v and %+v", want.Folds[0].Mixture, want.Folds[1].Mixture)
		}
	}
}

// TestEnsembleGoesOn: a job that is cut after any of its members, and goes on elsewhere, ends
// with the same outcome and does not train these members again.
func TestEnsembleGoesOn(t *testing.T) {
	d := artificial(t, 300)
	job, err := Open(resolve(t, d, ensembleOf(protocol.Spec{Folds: 2})), d)
	if err != nil {
		t.Fatal(err)
	}
	fold := pipeline.SubJob(job.Spec, 1)
	var at []Checkpoint
	want, err := SubJob(t.Context(), job, fold, Options{Checkpoint: func(c Checkpoint) {
		at = append(at, Checkpoint{c.Rounds, bytes.Clone(c.State), bytes.Clone(c.Curve)})
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(at) < 8 {
		t.Fatalf("%d checkpoints of 8 members", len(at))
	}
	for i, c := range at {
		got, err := SubJob(t.Context(), job, fold, Options{Resume: c})
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("from checkpoint %d: another outcome, error %v", i, err)
		}
		trainer, err := pipeline.New(fold, d.Manifest, c.State)
		if err != nil {
			t.Fatal(err)
		}
		r, err := trainer.Next()
		if err != nil {
			t.Fatal(err)
		}
		has := 0
		how := r.Gather()
		for task := range r.Tasks {
			if how != nil && how.Skips(task) {
				has++
			}
		}
		if how != nil && how.SubJob != nil && has != i+1 {
			t.Errorf("checkpoint %d has %d members", i, has)
		}
	}
}

// TestEnsembleProgress: the job tells how far its members are together, and never beyond its
// end.
func TestEnsembleProgress(t *testing.T) {
	d := artificial(t, 300)
	for _, folds := range []int{0, 2} {
		var last round.Progress
		o := run(t, d, resolve(t, d, ensembleOf(protocol.Spec{Folds: folds})),
			Options{Lanes: 2, Progress: func(p round.Progress) {
				if p.Step > p.Steps {
					t.Errorf("%d folds: %+v", folds, p)
				}
				last = p
			}})
		if last.Step != o.Steps || last.Steps != o.Steps || last.Samples != o.Samples {
			t.Errorf("%d folds: at the end %+v, the outcome has %d steps and %d samples", folds, last, o.Steps, o.Samples)
		}
	}
}

// leaky gives the test rows the label in the first features, or, without, what they have.
func leaky(t *testing.T, of *Data, roles []dataset.Roles, plant bool) *Data {
	t.Helper()
	d := &Data{Manifest: of.Manifest}
	for _, shard := range of.Shards {
		own := *shard
		own.X, own.D = append([]float32{}, shard.X...), append([]float32{}, shard.D...)
		for pos, row := range own.Row {
			if roles[row] == dataset.Test && plant {
				label := own.Label(pos)
				label[0], label[len(label)-1] = label[len(label)-1], label[0]
				copy(own.Dense(pos), label)
			}
		}
		d.Shards = append(d.Shards, &own)
	}
	return d
}

// TestWeightsSeeNoTestRow: with the labels of the test rows planted in their features, and the
// labels changed, the weights, their K-L and the model are the same. Where held-out rows of an
// inner fold are planted, they are not: the test can see a leak.
func TestWeightsSeeNoTestRow(t *testing.T) {
	d := artificial(t, 300)
	j := resolve(t, d, ensembleOf(protocol.Spec{TestFraction: 0.2}))
	roles, err := j.Split.Assign(300, nil)
	if err != nil {
		t.Fatal(err)
	}
	plain, planted := run(t, leaky(t, d, roles, false), j, Options{}), run(t, leaky(t, d, roles, true), j, Options{})
	if plain.ModelDigest != planted.ModelDigest {
		t.Error("the model sees the test rows")
	}
	for m, share := range plain.Mixture.Members {
		other := planted.Mixture.Members[m]
		if share.Weight != other.Weight || *share.OutOfFoldKL != *other.OutOfFoldKL {
			t.Errorf("%+v, with planted test rows %+v", share, other)
		}
	}
	if plain.Measures == planted.Measures {
		t.Error("the planted rows were not tested")
	}
	if plain.Mixture.Rows != 240 {
		t.Errorf("the weights were fitted to %d rows, 240 are not test rows", plain.Mixture.Rows)
	}
	inner := j.Split
	inner.Inner, inner.InnerFold = 3, 1
	if roles, err = inner.Assign(300, nil); err != nil {
		t.Fatal(err)
	}
	if seen := run(t, leaky(t, d, roles, true), j, Options{}); *seen.Mixture.OutOfFoldKL == *plain.Mixture.OutOfFoldKL {
		t.Error("held-out rows of an inner fold do not change the weights: the test sees nothing")
	}
}
