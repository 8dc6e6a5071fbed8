package local

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// networks are jobs on networks by algorithm, with a layer to freeze: its tensors begin with it.
var networks = map[string]struct {
	frozen string
	set    map[string]string
}{
	"dldl": {"convolution1", map[string]string{
		"features": "conv", "shape": "row", "channels": "3", "pool": "1", "hidden": "4", "steps": "60",
		"validation_steps": "10", "refit": "true", "warmup": "5", "cosine": "true",
	}},
	"ldlf": {"hidden1", map[string]string{
		"features": "mlp", "hidden": "6,5", "layer_norm": "true", "trees": "2", "depth": "3", "steps": "60",
		"leaf_batches": "10", "rates": "output:0.5",
	}},
	"aa-bp":          {"", map[string]string{"hidden": "6", "steps": "60", "validation_steps": "10"}},
	"mlp-regression": {"", map[string]string{"hidden": "6", "passes": "5"}},
}

// ordered is artificial with labels that are the numbers 0 to 2.
func ordered(t *testing.T, rows int) *Data {
	t.Helper()
	d := artificial(t, rows)
	m := *d.Manifest
	m.LabelType = dataset.LabelType{Scale: &dataset.Scale{True: dataset.TrueExpected}}
	d.Manifest = &m
	return d
}

// weightsOf are the weights of a model file.
func weightsOf(t *testing.T, model []byte) *network.Weights {
	t.Helper()
	w, err := network.ReadWeights(model)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// from is a spec that begins from weights, with more settings.
func from(s protocol.Spec, w *network.Weights, more ...string) protocol.Spec {
	s.Set = maps.Clone(s.Set)
	s.Set["init_from"] = w.Digest
	for i := 0; i < len(more); i += 2 {
		s.Set[more[i]] = more[i+1]
	}
	return s
}

// tensors returns the tensors of a model file by name.
func tensors(t *testing.T, model []byte) map[string]algorithms.Tensor {
	t.Helper()
	f, err := modelfile.Decode(model)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]algorithms.Tensor)
	for _, x := range f.Tensors {
		all[x.Name] = x
	}
	return all
}

// TestWeights: a job that begins from a model's weights is another one, the same on one lane and
// on many and after any cut; frozen layers have the model's bytes, also after a refit.
func TestWeights(t *testing.T) {
	for name, x := range networks {
		t.Run(name, func(t *testing.T) {
			d := ordered(t, 300)
			seed := uint64(7)
			s := protocol.Spec{Algorithm: name, Set: x.set, Seed: &seed}
			first := run(t, d, resolve(t, d, s), Options{})
			w := weightsOf(t, first.Model)
			d.Weights = w.File
			var more []string
			if x.frozen != "" {
				more = []string{"freeze", x.frozen}
			}
			seed = 8
			s = from(s, w, more...)
			j := resolve(t, d, s)
			if j.Weights != w.Digest {
				t.Fatalf("the job names the weights %q", j.Weights)
			}
			var at []Checkpoint
			want := run(t, d, j, Options{Lanes: 1, CheckpointEvery: 1, Checkpoint: func(c Checkpoint) {
				at = append(at, Checkpoint{c.Rounds, bytes.Clone(c.State), bytes.Clone(c.Curve)})
			}})
			if got := run(t, d, j, Options{Lanes: 3}); got.ModelDigest != want.ModelDigest {
				t.Errorf("three lanes: digest %s, one %s", got.ModelDigest, want.ModelDigest)
			}
			for i := 0; i < len(at); i += 1 + len(at)/5 {
				if got := run(t, d, j, Options{Resume: at[i]}); got.ModelDigest != want.ModelDigest {
					t.Errorf("from round %d: digest %s, want %s", at[i].Rounds, got.ModelDigest, want.ModelDigest)
				}
			}
			delete(s.Set, "init_from")
			if got := run(t, d, resolve(t, d, s), Options{}); got.ModelDigest == want.ModelDigest {
				t.Error("without the weights the model is the same")
			}
			source, got := tensors(t, first.Model), tensors(t, want.Model)
			for tensor, v := range got {
				if strings.HasPrefix(tensor, "scaling") || v.F32 == nil {
					continue
				}
				if same, frozen := slices.Equal(v.F32, source[tensor].F32), x.frozen != "" &&
					strings.HasPrefix(tensor, x.frozen); same != frozen {
					t.Errorf("%s: the same bytes as in the source: %v, frozen: %v", tensor, same, frozen)
				}
			}
		})
	}
}

// TestWeightsOfFolds: folds begin from the weights as the job alone does.
func TestWeightsOfFolds(t *testing.T) {
	d := artificial(t, 300)
	s := protocol.Spec{Algorithm: "dldl", Set: networks["dldl"].set}
	w := weightsOf(t, run(t, d, resolve(t, d, s), Options{}).Model)
	d.Weights = w.File
	s = from(s, w, "init_layers", "convolution1,output", "freeze", "output")
	s.Folds = 2
	j := resolve(t, d, s)
	all := run(t, d, j, Options{Lanes: 2})
	for f, got := range all.Folds {
		if alone := run(t, d, pipeline.SubJob(j, f), Options{}); got.ModelDigest != alone.ModelDigest {
			t.Errorf("fold %d: digest %s, alone %s", f, got.ModelDigest, alone.ModelDigest)
		}
		if !slices.Equal(tensors(t, got.Model)["output"].F32, tensors(t, w.File)["output"].F32) {
			t.Errorf("fold %d: the frozen layer has other bytes", f)
		}
	}
}

// TestWeightsErrors: a job does not run without its weights, nor with others.
func TestWeightsErrors(t *testing.T) {
	d := artificial(t, 300)
	s := protocol.Spec{Algorithm: "dldl", Set: networks["dldl"].set}
	w := weightsOf(t, run(t, d, resolve(t, d, s), Options{}).Model)
	j := resolve(t, d, from(s, w))
	d.Weights = bytes.Clone(w.File)
	d.Weights[len(d.Weights)-1] ^= 1
	if _, err := Run(t.Context(), j, d, Options{}); err == nil ||
		!strings.Contains(err.Error(), "the weights to start from have the digest") {
		t.Errorf("other weights: error %v", err)
	}
	d.Weights = w.File
	wider := resolve(t, d, from(s, w, "hidden", "5"))
	if _, err := Run(t.Context(), wider, d, Options{}); err == nil ||
		!strings.Contains(err.Error(), "hidden1 has the shape 9x4 in the weights but 9x5 in this network") {
		t.Errorf("another network: error %v", err)
	}
	without := *j
	without.Weights = ""
	if _, err := Run(t.Context(), &without, d, Options{}); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprintf("init_from names the weights %q", w.Digest)) {
		t.Errorf("a job whose settings name weights: error %v", err)
	}
}
