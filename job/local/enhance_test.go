package local

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/job/enhance"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// threshold makes logical labels in the jobs of these tests.
var threshold = enhance.DefaultBinarise

// enhanced asks for an enhancement by a method.
func enhanced(s protocol.Spec, method string) protocol.Spec {
	s.Algorithm, s.Enhance, s.Normalise, s.Binarise = "sa-bfgs", method, enhance.Softmax, &threshold
	s.Set = map[string]string{"iterations": "20"}
	return s
}

// relabelled is the dataset with other labels, by row number.
func relabelled(d *Data, labels []float32) *Data {
	with := &Data{Manifest: d.Manifest}
	for _, shard := range d.Shards {
		r := *shard
		r.D = slices.Clone(r.D)
		for i, row := range r.Row {
			copy(r.Label(i), labels[int(row)*r.Labels:])
		}
		with.Shards = append(with.Shards, &r)
	}
	return with
}

// TestEnhance: a job with an enhancement has the model of the same job on the enhanced labels, with any number of
// executors and after any restart. Its measures compare with the labels of the dataset.
func TestEnhance(t *testing.T) {
	d := artificial(t, 300)
	for _, method := range enhance.Methods() {
		j := resolve(t, d, enhanced(protocol.Spec{}, method))
		got := run(t, d, j, Options{Lanes: 1})
		p, _, err := enhance.Run(context.Background(), j.Enhance, enhance.AllOf(d.Manifest, d.Shards), 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		plain := *j
		plain.Enhance = nil
		want := run(t, relabelled(d, p), &plain, Options{})
		if got.ModelDigest != want.ModelDigest || got.MeanPredictor == want.MeanPredictor {
			t.Errorf("%s: the digest %.12s, want %.12s", method, got.ModelDigest, want.ModelDigest)
		}
		other := run(t, d, &plain, Options{})
		if got.ModelDigest == other.ModelDigest {
			t.Errorf("%s changes nothing", method)
		}
		for _, lanes := range []int{2, 5} {
			if again := run(t, d, j, Options{Lanes: lanes}); again.ModelDigest != got.ModelDigest ||
				again.Measures != got.Measures {
				t.Errorf("%s: other bits with %d executors", method, lanes)
			}
		}
		var cuts []Checkpoint
		run(t, d, j, Options{CheckpointEvery: 1, Checkpoint: func(c Checkpoint) {
			c.State = slices.Clone(c.State)
			cuts = append(cuts, c)
		}})
		if len(cuts) < 3 {
			t.Fatalf("%s: %d checkpoints", method, len(cuts))
		}
		for i := 0; i < len(cuts); i += 1 + len(cuts)/8 {
			if again := run(t, d, j, Options{Resume: cuts[i]}); again.ModelDigest != got.ModelDigest {
				t.Errorf("%s: other bits after a restart at round %d", method, cuts[i].Rounds)
			}
		}
	}
}

// TestEnhanceSeesLogicalLabels: in each fold, other distributions with the same logical labels in training and
// validation samples change neither the model nor its measures, which other labels of test samples change.
func TestEnhanceSeesLogicalLabels(t *testing.T) {
	d := artificial(t, 200)
	j := resolve(t, d, enhanced(protocol.Spec{TestFraction: 0.3}, enhance.LabelPropagation))
	roles, err := j.Split.Assign(d.Manifest.Rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := run(t, d, j, Options{})
	change := func(of dataset.Roles) *Data {
		labels := enhance.LabelsOf(enhance.AllOf(d.Manifest, d.Shards))
		n := d.Manifest.Labels
		for row, role := range roles {
			if role&of == 0 {
				continue
			}
			degrees := labels[row*n : (row+1)*n]
			relevant := make([]byte, n)
			enhance.Relevant(relevant, degrees, threshold)
			if relevant[0]+relevant[1]+relevant[2] == 1 { // its greatest degree becomes 1
				for c, r := range relevant {
					degrees[c] = float32(r)
				}
			}
		}
		return relabelled(d, labels)
	}
	if got := run(t, change(enhance.Enhanced(&j.Split)), j, Options{}); got.ModelDigest != want.ModelDigest ||
		got.Measures != want.Measures || got.MeanPredictor != want.MeanPredictor {
		t.Error("the model knows more of training samples than their logical labels")
	}
	if got := run(t, change(dataset.Test), j, Options{}); got.ModelDigest != want.ModelDigest ||
		got.Measures == want.Measures {
		t.Error("test samples do not have their true distributions, or the model knows them")
	}
	missing := newHoles(120, .1)
	missing.by = dataset.FillMedian
	h := missing.built(t)
	gaps := resolve(t, h, enhanced(protocol.Spec{Folds: 3}, enhance.LabelPropagation))
	one := run(t, h, gaps, Options{Lanes: 1})
	if many := run(t, h, gaps, Options{Lanes: 3}); many.ModelDigest != one.ModelDigest {
		t.Error("with missing values: other bits on three executors")
	}
}

// TestEnhanceRefused: a job that cannot have an enhancement says why.
func TestEnhanceRefused(t *testing.T) {
	d := artificial(t, 40)
	j := resolve(t, d, enhanced(protocol.Spec{}, enhance.LabelPropagation))
	ensemble := *j
	ensemble.Algorithm = "ensemble"
	if _, err := pipeline.New(&ensemble, d.Manifest, nil); err == nil ||
		!strings.Contains(err.Error(), "true distributions") {
		t.Errorf("ensemble: %v", err)
	}
	logical := *j.Enhance
	logical.Binarise = 0
	j.Enhance = &logical
	if _, err := Run(t.Context(), j, d, Options{}); err == nil || !strings.Contains(err.Error(), "--binarise 0.5") {
		t.Errorf("distributions without a threshold: %v", err)
	}
}
