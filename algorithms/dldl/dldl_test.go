package dldl

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// sets are settings of jobs that train in milliseconds.
func sets() []param.Values {
	return []param.Values{
		{"hidden": "4,3", "steps": int64(40), "validation_steps": int64(5), "patience": int64(2), "refit": false},
		{"features": "conv", "shape": "row", "channels": "2", "pool": int64(1), "hidden": "none", "steps": int64(20),
			"layer_norm": true, "optimizer": "sgd", "refit": false},
		{"features": "conv", "shape": "row", "channels": "2,2", "pool": int64(1), "hidden": "3", "steps": int64(12),
			"validation_steps": int64(4), "refit": true, "bias": false},
		{"features": "conv", "shape": "row", "crop": int64(1), "flip": true, "channels": "2", "kernel": int64(1),
			"pool": int64(1), "hidden": "3", "steps": int64(12), "refit": false},
	}
}

func FuzzRestore(f *testing.F) { contract.FuzzRestore(f, New(), sets()...) }

func FuzzSettings(f *testing.F) { contract.FuzzSettings(f, New(), sets()...) }

func FuzzDecodeModel(f *testing.F) { contract.FuzzDecodeModel(f, New(), sets()...) }

// train runs a job to its end.
func train(t *testing.T, given param.Values, m *dataset.Manifest, shards []*dataset.Rows, lanes int) (algorithms.Model,
	*dataset.Data) {
	t.Helper()
	r, err := New().Resolve(given, m)
	if err != nil {
		t.Fatal(err)
	}
	split := dataset.Split{Seed: 1, TestFraction: 0.1, ValidationFraction: r.ValidationFraction,
		ValidationMin: r.ValidationMin}
	j := &round.Job{Algorithm: Name, Numerics: round.Numerics, Seed: 3, Params: r.Params, Split: split}
	d := datatest.Data(t, m, shards, split, nil)
	tr, err := New().NewTrainer(j, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := New().NewKernel(j, m)
	if err != nil {
		t.Fatal(err)
	}
	err = engine.Drive(t.Context(), tr, 0, engine.NewLocal(k, d, lanes, nil), func(uint64, round.Trainer) error {
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	model, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	return model, d
}

// TestGoldenDigest pins the bits of small networks on the artificial set of Geng 2016, trained on one
// lane and on three.
func TestGoldenDigest(t *testing.T) {
	m, shards := datatest.Artificial(t, 400)
	for i, want := range []string{
		"1b620c8888d24f72dcbe1909cdbb5cb7f61221195f7dfff0df807f60d5c53672",
		"6be3c92cc2cc2e4f4692d1f0e492925be3317d23826883ffaf7874aef44d29ff",
		"c26ed6b5d7244b466bbb59ac01ad9fe89d035f1475048d35b3f676ac511f262c",
		"ade10807adf2f5d5652b36ee2837025188f436075784e6bee0ce42dc279af23b",
	} {
		for _, lanes := range []int{1, 3} {
			model, _ := train(t, sets()[i], m, shards, lanes)
			if got := modelfile.Digest(Name, model.Tensors()); got != want {
				t.Errorf("%v, %d lanes: digest %s, want %s", sets()[i], lanes, got, want)
			}
		}
	}
}

// TestLearns: on rows that it has not seen, a network is far better than the mean.
func TestLearns(t *testing.T) {
	m, shards := datatest.Artificial(t, 1200)
	model, d := train(t, param.Values{"hidden": "32", "dropout": 0.0, "weight_decay": 0.0, "learning_rate": 0.01,
		"steps": int64(600)}, m, shards, 2)
	refs := d.Select(0, len(m.Shards), dataset.Test)
	got := make([]float32, len(refs)*m.Labels)
	model.Predict(got, refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) }, model.NewScratch())
	kl, mean := 0.0, 0.0
	for i, ref := range refs {
		for c, x := range d.Shard(int(ref.Shard)).Label(int(ref.Pos)) {
			if x > 0 {
				kl += float64(x) * math.Log(float64(x)/float64(got[i*m.Labels+c]))
				mean += float64(x) * math.Log(float64(x)/m.MeanLabel[c])
			}
		}
	}
	if !(kl < mean/20) {
		t.Errorf("K-L %v, of the mean %v", kl/float64(len(refs)), mean/float64(len(refs)))
	}
}

// TestModelErrors: a model without its network, or with one for other features, is refused.
func TestModelErrors(t *testing.T) {
	m, shards := datatest.Artificial(t, 400)
	model, _ := train(t, sets()[0], m, shards, 1)
	tensors := model.Tensors()
	for name, bad := range map[string][]algorithms.Tensor{
		"no network": {tensors[0]}, "no table": append([]algorithms.Tensor{tensors[0]}, tensors[2:]...),
		"other table": {tensors[0], {Name: "layers", Dims: []int{1, 5}, U32: make([]uint32, 5)}},
	} {
		if _, err := New().DecodeModel(bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
