package boost_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/harness/contract"
)

// small is a job of an algorithm on a few rows.
func small(t contract.Test, a algorithms.Algorithm) (*round.Job, *dataset.Data) {
	p := makeProblem(4, 60, 4, 3)
	set := param.Values{"rounds": int64(9), "leaves": int64(3), "leaf_rows": int64(1)}
	j := jobOf(t, a, p.data(1, false, dataset.Split{}).Manifest, set, dataset.Split{Seed: 1})
	return j, p.data(1, false, j.Split)
}

// use does with a model what programs do.
func use(m algorithms.Model) {
	features, labels := m.Shape()
	r := &dataset.Rows{N: 1, Features: features, Labels: labels, X: make([]float32, features)}
	r.X[0] = math.MaxFloat32
	m.Predict(make([]float32, labels), []dataset.RowRef{{}}, func(uint32) *dataset.Rows { return r }, m.NewScratch())
	m.Describe()
	m.Tensors()
}

// FuzzRestore: no bytes make a trainer panic or take memory out of proportion, and what it accepts
// it writes again, and can make a model of.
func FuzzRestore(f *testing.F) {
	for i, a := range both {
		j, d := small(f, a)
		for _, tr := range []algorithms.Trainer{train(f, a, j, d, 1), begun(f, a, j, d)} {
			state, err := tr.AppendState(nil)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(i == 1, state)
		}
	}
	f.Fuzz(func(t *testing.T, second bool, b []byte) {
		a := both[0]
		if second {
			a = both[1]
		}
		j, d := small(t, a)
		var tr algorithms.Trainer
		var err error
		allocs.AtMost(t, 32*len(b)+64<<10, "a trainer's state", func() { tr, err = a.NewTrainer(j, d.Manifest, b) })
		if err != nil {
			if !errors.Is(err, fields.ErrState) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if again, err := tr.AppendState(nil); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("a state of %d bytes is written again as %d, error %v", len(b), len(again), err)
		}
		tr.Progress()
		r, err := tr.Next()
		if err != nil {
			t.Fatal(err)
		}
		m, err := tr.Model()
		if r == nil != (err == nil) {
			t.Fatalf("done %v, but the model has the error %v", r == nil, err)
		}
		if r == nil {
			use(m)
		}
	})
}

// begun returns a trainer that has done some rounds.
func begun(t contract.Test, a algorithms.Algorithm, j *round.Job, d *dataset.Data) algorithms.Trainer {
	tr, err := a.NewTrainer(j, d.Manifest, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Next(); err != nil {
		t.Fatal(err)
	}
	if err := tr.Fold(&round.Result{Sum: &round.Partial{F64: []float64{40, 20, 10, 10}}}); err != nil {
		t.Fatal(err)
	}
	return tr
}

// FuzzSettings: the settings of a job come as JSON, from the log and from the leader: they are refused,
// or those of a job whose halves can be made.
func FuzzSettings(f *testing.F) {
	for _, a := range both {
		j, _ := small(f, a)
		f.Add([]byte(j.Params), uint16(60))
	}
	f.Add([]byte(`{"rounds":1e9}`), uint16(9))
	f.Fuzz(func(t *testing.T, raw []byte, rows uint16) {
		m := &dataset.Manifest{Format: dataset.ManifestFormat, Rows: int(rows), Features: 3, Labels: 2,
			Shards: make([]dataset.ShardRef, 1)}
		for _, a := range both {
			j := &round.Job{Algorithm: a.Name(), Numerics: round.Numerics, Seed: 1, Params: raw,
				Split: dataset.Split{ValidationFraction: 0.1}}
			var tr algorithms.Trainer
			var err error
			allocs.AtMost(t, 64*len(raw)+64<<10, "settings", func() { tr, err = a.NewTrainer(j, m, nil) })
			if err != nil {
				continue
			}
			if r, err := tr.Next(); err != nil || r.Tasks != 1 {
				t.Fatalf("round %+v, error %v", r, err)
			}
			if _, err := a.NewKernel(j, m); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Footprint(j, m); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzDecodeModel changes the numbers of a model's tensors: nothing panics, and what is taken can be
// walked and described.
func FuzzDecodeModel(f *testing.F) {
	f.Add([]byte{0, 0, 1}, uint8(0))
	f.Add([]byte{5, 3, 200, 9, 1, 1}, uint8(3))
	f.Add([]byte{1, 0, 127, 2, 0, 128}, uint8(0))
	var trained [2][]algorithms.Tensor
	for i, a := range both {
		j, d := small(f, a)
		m, err := train(f, a, j, d, 1).Model()
		if err != nil {
			f.Fatal(err)
		}
		trained[i] = m.Tensors()
	}
	f.Fuzz(func(t *testing.T, changes []byte, drop uint8) {
		for i, a := range both {
			list := changed(trained[i], changes)
			if drop > 0 {
				x := &list[int(drop)%len(list)]
				x.U32 = x.U32[:len(x.U32)/2]
			}
			if m, err := a.DecodeModel(list); err == nil {
				use(m)
			}
		}
	})
}

// changed copies tensors, pieces joined, and changes some of their numbers.
func changed(from []algorithms.Tensor, changes []byte) (list []algorithms.Tensor) {
	for _, x := range from {
		y := algorithms.Tensor{Name: x.Name, Dims: x.Dims}
		for _, piece := range append([]algorithms.Tensor{x}, x.Pieces...) {
			y.U32, y.F32, y.F64 = append(y.U32, piece.U32...), append(y.F32, piece.F32...), append(y.F64, piece.F64...)
		}
		list = append(list, y)
	}
	for ; len(changes) >= 3; changes = changes[3:] {
		x, at := &list[int(changes[0])%len(list)], int(changes[1])
		switch {
		case len(x.U32) > 0:
			x.U32[at%len(x.U32)] = uint32(int8(changes[2]))
		case len(x.F64) > 0:
			x.F64[at%len(x.F64)] = math.Float64frombits(uint64(changes[2]) << 56)
		default:
			x.F32[at%len(x.F32)] = math.Float32frombits(uint32(changes[2]) << 24)
		}
	}
	return list
}
