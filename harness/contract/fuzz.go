package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/allocs"
)

// fuzzed makes the jobs that fuzz targets change bytes of: one for each set of settings, on the
// dense dataset.
func fuzzed(f *testing.F, a algorithms.Algorithm, sets []param.Values) (jobs []*job) {
	f.Helper()
	all, err := problems(a)
	if err != nil {
		f.Fatal(err)
	}
	for _, v := range sets {
		j, err := newJob(a, all[0], v)
		if err != nil {
			f.Fatal(err)
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// FuzzRestore is the body of an algorithm's target of that name. No bytes make a trainer panic; those
// that it takes as its state it writes again, and it goes on from them or has a model. Seeds
// are states of jobs with the sets of settings.
func FuzzRestore(f *testing.F, a algorithms.Algorithm, sets ...param.Values) {
	jobs := fuzzed(f, a, sets)
	for i, j := range jobs {
		addStates(f, i, j)
	}
	f.Fuzz(func(t *testing.T, which uint8, state []byte) {
		if state == nil {
			return // a job that begins
		}
		j := jobs[int(which)%len(jobs)]
		tr, err := j.trainer(bytes.Clone(state))
		if err != nil {
			if !errors.Is(err, fields.ErrState) {
				t.Fatalf("error %v", err)
			}
			return
		}
		again, err := tr.AppendState(nil)
		if err != nil || !bytes.Equal(again, state) {
			t.Fatalf("a state that is accepted is written otherwise (%v)", err)
		}
		tr.Progress()
		tr.Counters()
		r, err := tr.Next()
		if err != nil {
			t.Fatalf("a state that is accepted has no next round: %v", err)
		}
		if _, err := tr.Model(); (err == nil) != (r == nil) {
			t.Fatalf("the job has ended: %v, but the model's error is %v", r == nil, err)
		}
	})
}

// addStates adds states of the job as seeds: those of its first rounds, some later ones, and the last.
func addStates(f *testing.F, which int, j *job) {
	f.Helper()
	k, err := j.kernel()
	if err != nil {
		f.Fatal(err)
	}
	add := func(n uint64, t round.Trainer) error {
		if n > 5 && n%16 != 0 {
			return nil
		}
		state, err := t.AppendState(nil)
		f.Add(uint8(which), state)
		return err
	}
	t, err := j.train(f.Context(), j.local(k, j.data, 1), add)
	if err == nil {
		err = add(0, t)
	}
	if err != nil {
		f.Fatal(err)
	}
}

// FuzzSettings is the body of an algorithm's target of that name. The settings of a job come as JSON from
// the log and from the leader: they are refused, or those of a job whose halves can be made. Seeds are the
// sets of settings as they are resolved.
func FuzzSettings(f *testing.F, a algorithms.Algorithm, sets ...param.Values) {
	jobs := fuzzed(f, a, sets)
	for _, j := range jobs {
		f.Add([]byte(j.spec.Params), uint32(j.manifest.Features), uint16(j.manifest.Labels))
	}
	f.Add([]byte(jobs[0].spec.Params), uint32(1<<24), uint16(65535))
	f.Fuzz(func(t *testing.T, raw []byte, features uint32, labels uint16) {
		m := *jobs[0].manifest
		m.Features, m.Labels = int(features), int(labels)
		if features == 0 || features > dataset.MaxFeatures || labels < 2 {
			return
		}
		j := *jobs[0].spec
		j.Params, j.Split.ValidationFraction = raw, fractionOf(raw)
		var size algorithms.Footprint
		var err error
		allocs.AtMost(t, 64*len(raw)+64<<10, "settings", func() { size, err = a.Footprint(&j, &m) })
		if err != nil || size.State+size.Model+size.Node+size.Working > largeRun {
			return // what it takes is checked, but would take long here
		}
		k, errK := a.NewKernel(&j, &m)
		tr, errT := a.NewTrainer(&j, &m, nil)
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

// fractionOf returns the share of validation rows that settings have, with which a split must agree.
func fractionOf(raw []byte) float64 {
	var c struct {
		Share float64 `json:"validation_fraction"`
	}
	if json.Unmarshal(raw, &c) != nil {
		return 0
	}
	return c.Share
}

// FuzzDecodeModel is the body of an algorithm's target of that name. It changes tensors of models, whatever the
// digest of their file would say: they are refused, or the tensors of a model that predicts. The models are
// those of jobs with the sets of settings.
func FuzzDecodeModel(f *testing.F, a algorithms.Algorithm, sets ...param.Values) {
	var models []algorithms.Model
	for _, j := range fuzzed(f, a, sets) {
		m, err := j.trained(f.Context())
		if err != nil {
			f.Fatal(err)
		}
		models = append(models, m)
	}
	f.Add(uint8(0), []byte{})
	f.Add(uint8(1), []byte{0, 1, 0xff, 0xff, 0xff, 0xff})
	f.Add(uint8(2), []byte{2, 0, 0, 0, 0xc0, 0x7f, 3, 5, 0, 0, 0, 0x80})
	f.Fuzz(func(t *testing.T, which uint8, changes []byte) {
		tensors, size := cloneTensors(models[int(which)%len(models)])
		for ; len(changes) >= 6; changes = changes[6:] {
			change(&tensors[int(changes[0])%len(tensors)], changes[1], changes[2:6])
		}
		var m algorithms.Model
		var err error
		allocs.AtMost(t, 64*size+16<<20, "a model", func() { m, err = a.DecodeModel(tensors) })
		if err != nil {
			if !errors.Is(err, learner.ErrModel) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if modelfile.Digest(a.Name(), m.Tensors()) != modelfile.Digest(a.Name(), tensors) {
			t.Fatal("a decoded model has other tensors")
		}
		m.Describe()
		predictOnce(t, a, m)
	})
}

// cloneTensors copies the tensors of a model; size is their bytes.
func cloneTensors(m algorithms.Model) (tensors []algorithms.Tensor, size int) {
	tensors = slices.Clone(m.Tensors())
	for i := range tensors {
		x := &tensors[i]
		x.Dims, x.F32, x.F64, x.U32 = slices.Clone(x.Dims), slices.Clone(x.F32), slices.Clone(x.F64), slices.Clone(x.U32)
		size += 4*len(x.U32) + 4*len(x.F32) + 8*len(x.F64)
	}
	return tensors, size
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

// predictOnce predicts a row without non-zeros.
func predictOnce(t *testing.T, a algorithms.Algorithm, m algorithms.Model) {
	features, labels := m.Shape()
	if features > 1<<12 || labels > 1<<12 {
		return
	}
	r := &dataset.Rows{N: 1, Features: features, Labels: labels, Row: []uint32{0}, X: make([]float32, features),
		D: make([]float32, labels)}
	dst := make([]float32, a.Predicts().Width(labels))
	m.Predict(dst, []dataset.RowRef{{}}, func(uint32) *dataset.Rows { return r }, m.NewScratch())
	predicts := a.Predicts()
	if by, ok := m.(interface{ PredictsTargets() bool }); ok && by.PredictsTargets() {
		predicts = algorithms.Targets
	}
	if err := lawful(predicts, dst); err != nil {
		t.Fatalf("a decoded model predicts a row, and %v", err)
	}
}
