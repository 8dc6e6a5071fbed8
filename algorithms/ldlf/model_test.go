package ldlf

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// TestModelRoundTrip: a decoded model has the digest and the predictions of the
// one that was written, down to the bit.
func TestModelRoundTrip(t *testing.T) {
	p := makeProblem(4, 120, 7, 3, 0.5)
	for name, c := range variants() {
		m := train(t, c, p, 2, false, 1)
		file, digest := modelfile.Encode(Name, m.Tensors(), []byte("{}"))
		f, err := modelfile.Decode(file)
		if err != nil {
			t.Fatal(err)
		}
		again, err := New().DecodeModel(f.Tensors)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if f.Digest != digest || modelfile.Digest(Name, again.Tensors()) != digest {
			t.Errorf("%s: the digest changed", name)
		}
		_, d := p.data(2, false, dataset.Split{})
		if !slices.Equal(predictAll(m, d), predictAll(again.(*model), d)) {
			t.Errorf("%s: the predictions changed", name)
		}
		if features, labels := again.Shape(); features != p.features || labels != p.labels {
			t.Errorf("%s: shape %d, %d", name, features, labels)
		}
		if len(again.Describe()) == 0 || !slices.Equal(again.Describe(), m.Describe()) {
			t.Errorf("%s: described as %v", name, again.Describe())
		}
	}
}

// TestPredictionsAreDistributions, and independent of the rows beside them.
func TestPredictionsAreDistributions(t *testing.T) {
	p := makeProblem(4, 120, 7, 3, 0.5)
	m := train(t, variants()["standard"], p, 2, true, 1)
	_, d := p.data(2, true, dataset.Split{})
	refs := d.Select(0, 2, dataset.AllRows)
	together := make([]float32, len(refs)*3)
	m.Predict(together, refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) }, m.NewScratch())
	if !slices.Equal(together, predictAll(m, d)) {
		t.Error("a prediction depends on the rows beside it")
	}
	for i := 0; i < len(together); i += 3 {
		if sum := num.Sum64(together[i : i+3]); abs(sum-1) > 1e-6 {
			t.Fatalf("row %d sums to %v", i/3, sum)
		}
	}
}

// TestDecodeRefuses: bent tensors give an error, never a panic.
func TestDecodeRefuses(t *testing.T) {
	p := makeProblem(4, 60, 5, 3, 1)
	tensors := func() []algorithms.Tensor {
		c := variants()["standard"]
		c.Steps = 6
		m := train(t, c, p, 1, false, 1)
		v := m.Tensors()
		for i := range v {
			v[i].Dims = slices.Clone(v[i].Dims)
		}
		return v
	}
	if _, err := New().DecodeModel(tensors()); err != nil {
		t.Fatalf("unbent: %v", err)
	}
	for name, bend := range map[string]func([]algorithms.Tensor) []algorithms.Tensor{
		"nothing":        func([]algorithms.Tensor) []algorithms.Tensor { return nil },
		"one missing":    func(v []algorithms.Tensor) []algorithms.Tensor { return v[:len(v)-1] },
		"one too many":   func(v []algorithms.Tensor) []algorithms.Tensor { return append(v, v[0]) },
		"order":          func(v []algorithms.Tensor) []algorithms.Tensor { v[3], v[4] = v[4], v[3]; return v },
		"format":         func(v []algorithms.Tensor) []algorithms.Tensor { v[0].U32[0] = 2; return v },
		"no trees":       func(v []algorithms.Tensor) []algorithms.Tensor { v[0].U32[1] = 0; return v },
		"depth":          func(v []algorithms.Tensor) []algorithms.Tensor { v[0].U32[2] = 33; return v },
		"few outputs":    func(v []algorithms.Tensor) []algorithms.Tensor { v[0].U32[3] = 6; return v },
		"huge":           func(v []algorithms.Tensor) []algorithms.Tensor { v[0].U32[4] = math.MaxUint32; return v },
		"labels":         func(v []algorithms.Tensor) []algorithms.Tensor { v[0].U32[5] = 4; return v },
		"bias":           func(v []algorithms.Tensor) []algorithms.Tensor { v[0].U32[6] = 0; return v },
		"scaling":        func(v []algorithms.Tensor) []algorithms.Tensor { v[0].U32[7] = 0; return v },
		"no scaling":     func(v []algorithms.Tensor) []algorithms.Tensor { v[0].U32[7] = 9; return v },
		"short settings": func(v []algorithms.Tensor) []algorithms.Tensor { v[0].U32 = v[0].U32[:4]; return v },
		"short theta":    func(v []algorithms.Tensor) []algorithms.Tensor { v[4].F32 = v[4].F32[:9]; return v },
		"other type": func(v []algorithms.Tensor) []algorithms.Tensor {
			v[4].F64, v[4].F32 = make([]float64, len(v[4].F32)), nil
			return v
		},
		"dims":           func(v []algorithms.Tensor) []algorithms.Tensor { v[5].Dims[0]++; return v },
		"unit":           func(v []algorithms.Tensor) []algorithms.Tensor { v[3].U32[2] = 9; return v },
		"unit twice":     func(v []algorithms.Tensor) []algorithms.Tensor { v[3].U32[2] = v[3].U32[1]; return v },
		"NaN":            func(v []algorithms.Tensor) []algorithms.Tensor { v[4].F32[2] = float32(math.NaN()); return v },
		"infinite scale": func(v []algorithms.Tensor) []algorithms.Tensor { v[2].F64[0] = math.Inf(1); return v },
		"negative leaf":  func(v []algorithms.Tensor) []algorithms.Tensor { v[5].F32[0] = -1; return v },
		"NaN in a leaf":  func(v []algorithms.Tensor) []algorithms.Tensor { v[5].F32[0] = float32(math.NaN()); return v },
		"infinite leaf":  func(v []algorithms.Tensor) []algorithms.Tensor { v[5].F32[0] = float32(math.Inf(1)); return v },
		"other name":     func(v []algorithms.Tensor) []algorithms.Tensor { v[1].Name = "shift"; return v },
	} {
		if _, err := New().DecodeModel(bend(tensors())); !errors.Is(err, learner.ErrModel) {
			t.Errorf("%s: error %v, want ErrModel", name, err)
		}
	}
}

// TestModelBeforeTheEnd: there is none.
func TestModelBeforeTheEnd(t *testing.T) {
	m, _ := makeProblem(4, 60, 5, 3, 1).data(1, false, dataset.Split{})
	tr, _ := start(t, jobOf(smallConfig(), 1), m)
	if _, err := tr.Model(); err == nil {
		t.Error("a model came before the job was done")
	}
}
