package scaletest

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/fields"
	"github.com/coppice-ldl/coppice/algorithms/learner"
	"github.com/coppice-ldl/coppice/algorithms/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/harness/allocs"
	"github.com/coppice-ldl/coppice/round"
)

// FuzzRestore holds the states of a job's trainer: no bytes make it panic or take memory out of
// proportion, and what it accepts it writes again, and can go on with. States of each of the
// given settings are the seeds.
func FuzzRestore(f *testing.F, a algorithms.Algorithm, given ...param.Values) {
	p := New(f, Rows{N: 24, Features: 2, Density: 1, Seed: 1})
	var jobs []*round.Job
	for _, g := range given {
		p.Run(f, a, g, 1, func(j *round.Job, tr algorithms.Trainer) algorithms.Trainer {
			state, err := tr.AppendState(nil)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(len(jobs)), state)
			return tr
		})
		jobs = append(jobs, p.Job(f, a, g))
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		if b == nil {
			return
		}
		var tr algorithms.Trainer
		var err error
		allocs.AtMost(t, 64*len(b)+256<<10, "a trainer's state", func() { tr, err = a.NewTrainer(jobs[int(which)%len(jobs)], p.Manifest, bytes.Clone(b)) })
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
		tr.Counters()
		r, err := tr.Next()
		if err != nil {
			t.Fatalf("an accepted state has no next round: %v", err)
		}
		if r.Done {
			if _, err := tr.Model(); err != nil {
				t.Fatalf("an accepted state has no model: %v", err)
			}
		}
	})
}

// FuzzSettings holds settings in JSON: they are refused, or a job whose halves can be made.
func FuzzSettings(f *testing.F, a algorithms.Algorithm, given ...param.Values) {
	p := New(f, Rows{N: 24, Features: 2, Density: 1, Seed: 1})
	for _, g := range given {
		f.Add([]byte(p.Job(f, a, g).Params))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		j := &round.Job{Algorithm: a.Name(), Numerics: round.Numerics, Seed: 1, Dataset: p.Manifest.Digest(), Split: p.Split, Params: raw}
		var k round.Kernel
		var err error
		allocs.AtMost(t, 128*len(raw)+256<<10, "settings", func() { k, err = a.NewKernel(j, p.Manifest) })
		var tr algorithms.Trainer
		var other error
		allocs.AtMost(t, 128*len(raw)+1<<20, "settings", func() { tr, other = a.NewTrainer(j, p.Manifest, nil) })
		if (err == nil) != (other == nil) {
			t.Fatalf("kernel: %v, trainer: %v", err, other)
		}
		if err != nil {
			return
		}
		k.NewScratch()
		if _, err := a.Footprint(j, p.Manifest); err != nil {
			t.Fatal(err)
		}
		if _, err := tr.Next(); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzDecodeModel changes tensors of models: what is accepted has the same tensors, is described
// and predicts a finite number.
func FuzzDecodeModel(f *testing.F, a algorithms.Algorithm, given ...param.Values) {
	p := New(f, Rows{N: 24, Features: 2, Density: 1, Seed: 1})
	var models []algorithms.Model
	for _, g := range given {
		models = append(models, p.Model(f, a, g))
	}
	f.Add(uint8(0), []byte{})
	f.Add(uint8(1), []byte{0, 1, 0xff, 0xff, 0xff, 0xff})
	f.Add(uint8(2), []byte{2, 0, 0, 0, 0xc0, 0x7f, 3, 5, 0, 0, 0, 0x80})
	f.Add(uint8(0), []byte{4, 255, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, which uint8, changes []byte) {
		tensors := clone(models[int(which)%len(models)].Tensors())
		size := 0
		for i := range tensors {
			size += 4*len(tensors[i].U32) + 4*len(tensors[i].F32) + 8*len(tensors[i].F64)
		}
		for ; len(changes) >= 6; changes = changes[6:] {
			change(&tensors[int(changes[0])%len(tensors)], changes[1], changes[2:6])
		}
		var m algorithms.Model
		var err error
		allocs.AtMost(t, 64*size+256<<10, "a model", func() { m, err = a.DecodeModel(tensors) })
		if err != nil {
			if !errors.Is(err, learner.ErrModel) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if modelfile.Digest(a.Name(), m.Tensors()) != modelfile.Digest(a.Name(), tensors) {
			t.Fatal("a decoded model has other tensors")
		}
		predictOnce(t, m)
	})
}

func clone(tensors []algorithms.Tensor) []algorithms.Tensor {
	tensors = slices.Clone(tensors)
	for i := range tensors {
		x := &tensors[i]
		x.Dims, x.F32, x.F64, x.U32 = slices.Clone(x.Dims), slices.Clone(x.F32), slices.Clone(x.F64), slices.Clone(x.U32)
	}
	return tensors
}

// change writes four bytes over a value, or changes the tensor's name, dimensions or length.
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

func predictOnce(t *testing.T, m algorithms.Model) {
	m.Describe()
	features, labels := m.Shape()
	r := &dataset.Rows{N: 1, Features: features, Labels: labels, Row: []uint32{0}, X: make([]float32, features), D: make([]float32, labels)}
	for i := range r.X {
		r.X[i] = float32(i + 1)
	}
	dst := []float32{0}
	m.Predict(dst, []dataset.RowRef{{}}, func(uint32) *dataset.Rows { return r }, m.NewScratch())
	if dst[0]-dst[0] != 0 {
		t.Fatalf("it predicts %v", dst[0])
	}
}
