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
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/allocs"
)

// FuzzDecodeModel changes tensors of models, whatever the digest of their file
// would say: what decodeModel takes has the same tensors, and predicts.
func FuzzDecodeModel(f *testing.F) {
	var models []*model
	for _, name := range []string{"standard", "minmax", "plain", "hidden layers", "convolutions"} {
		models = append(models, train(f, variants()[name], makeProblem(4, 60, 3, 2, 1), 2, false, 1))
	}
	f.Add(uint8(0), []byte{})
	f.Add(uint8(1), []byte{0, 1, 0xff, 0xff, 0xff, 0xff})
	f.Add(uint8(2), []byte{2, 0, 0, 0, 0xc0, 0x7f, 3, 5, 0, 0, 0, 0x80})
	f.Add(uint8(3), []byte{2, 5, 2, 0, 0, 0})
	f.Add(uint8(4), []byte{2, 6, 0xff, 0xff, 0, 0, 2, 7, 0xff, 0, 0, 0})
	f.Fuzz(func(t *testing.T, which uint8, changes []byte) {
		tensors := cloneTensors(models[int(which)%len(models)].Tensors())
		size := 0
		for i := range tensors {
			size += 4*len(tensors[i].U32) + 4*len(tensors[i].F32) + 8*len(tensors[i].F64)
		}
		for ; len(changes) >= 6; changes = changes[6:] {
			change(&tensors[int(changes[0])%len(tensors)], changes[1], changes[2:6])
		}
		var decoded algorithms.Model
		var err error
		allocs.AtMost(t, 64*size+16<<20, "a model", func() { decoded, err = New().DecodeModel(tensors) })
		if err != nil {
			if !errors.Is(err, learner.ErrModel) {
				t.Fatalf("error %v", err)
			}
			return
		}
		m := decoded.(*model)
		if modelfile.Digest(Name, m.Tensors()) != modelfile.Digest(Name, tensors) {
			t.Fatal("a decoded model has other tensors")
		}
		predictOnce(m)
	})
}

func cloneTensors(tensors []algorithms.Tensor) []algorithms.Tensor {
	tensors = slices.Clone(tensors)
	for i := range tensors {
		x := &tensors[i]
		x.Dims, x.F32, x.F64, x.U32 = slices.Clone(x.Dims), slices.Clone(x.F32), slices.Clone(x.F64), slices.Clone(x.U32)
	}
	return tensors
}

// change writes four bytes over a value, or changes the tensor's name, dimensions
// or length.
func change(x *algorithms.Tensor, at uint8, b []byte) {
	v := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
	switch {
	case at == 255:
		x.Name += "x"
	case at == 254 && len(x.Dims) > 0:
		x.Dims[int(b[0])%len(x.Dims)] = int(int32(v))
	case at == 253:
		x.U32, x.F32, x.F64 = x.U32[:len(x.U32)/2], x.F32[:len(x.F32)/2], x.F64[:len(x.F64)/2]
	case len(x.U32) > 0:
		x.U32[int(at)%len(x.U32)] = v
	case len(x.F32) > 0:
		x.F32[int(at)%len(x.F32)] = math.Float32frombits(v)
	case len(x.F64) > 0:
		x.F64[int(at)%len(x.F64)] = float64(math.Float32frombits(v))
	}
}

func predictOnce(m *model) {
	r := &dataset.Rows{N: 1, Features: m.features, Labels: m.labels, Row: []uint32{0}, X: make([]float32, m.features),
		D: make([]float32, m.labels)}
	m.Predict(make([]float32, m.labels), []dataset.RowRef{{}}, func(uint32) *dataset.Rows { return r }, m.NewScratch())
}

// FuzzSettings: the settings of a job come as JSON, from the log and from the
// leader: they are refused, or those of a job whose halves can be made.
func FuzzSettings(f *testing.F) {
	for _, c := range variants() {
		raw, err := settings.JSON(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(raw), uint32(3), uint16(2))
	}
	f.Add([]byte(`{"trees":1000,"depth":20}`), uint32(1<<24), uint16(65535))
	f.Fuzz(func(t *testing.T, raw []byte, features uint32, labels uint16) {
		var c *Config
		var err error
		allocs.AtMost(t, 64*len(raw)+64<<10, "settings", func() { c, err = settings.Parse(raw) })
		if err != nil || features == 0 || labels == 0 || features > dataset.MaxFeatures {
			return
		}
		again, err := settings.JSON(c)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := settings.Parse(again); err != nil || *back != *c {
			t.Fatalf("%s is read as %+v, error %v", again, back, err)
		}
		m := &dataset.Manifest{Format: 1, Rows: 100, Features: int(features), Labels: int(labels),
			Shards: make([]dataset.ShardRef, 1)}
		if z := newSizes(c, m.Features, m.Labels); z.parameters > 1<<16 || z.q() > 1<<16 {
			return // what it takes is checked, but would take long here
		}
		j := &round.Job{Algorithm: Name, Numerics: round.Numerics, Seed: 1, Params: raw,
			Split: dataset.Split{ValidationFraction: c.ValidationFraction}}
		k, errK := New().NewKernel(j, m)
		tr, errT := New().NewTrainer(j, m, nil)
		if (errK == nil) != (errT == nil) {
			t.Fatalf("kernel: %v, trainer: %v", errK, errT)
		}
		if errK == nil {
			k.NewScratch()
			if _, err := tr.Next(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
