package ensemble

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/allocs"
)

// FuzzRestore: no bytes make a trainer panic or take memory out of proportion, and what it
// accepts it writes again, and can go on with.
func FuzzRestore(f *testing.F) {
	j := smallJob(f, nil)
	for parts := range 7 {
		f.Add(after(f, j, parts), false)
	}
	done, err := newSmall(f, j, after(f, j, 6))
	if err != nil {
		f.Fatal(err)
	}
	if err := done.Fold(&round.Result{Gathered: make([][]byte, 6)}); err != nil {
		f.Fatal(err)
	}
	f.Add(stateOf(f, done), false)
	f.Add([]byte{stateVersion}, false)
	members := done.members
	validated := validatedSmall(f)
	for range 3 {
		f.Add(stateOf(f, validated), true)
		step(f, validated)
	}
	f.Fuzz(func(t *testing.T, b []byte, second bool) {
		tr := newTrainer(done.job, members)
		if second {
			tr = newTrainer(validated.job, members)
		}
		var err error
		allocs.AtMost(t, 64*len(b)+16<<20, "a trainer's state", func() {
			err = fields.Read(bytes.Clone(b), stateVersion, tr.State)
		})
		if err != nil {
			if !errors.Is(err, fields.ErrState) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if again := stateOf(t, tr); !bytes.Equal(again, b) {
			t.Fatalf("a state of %d bytes is written again as %d", len(b), len(again))
		}
		tr.Progress()
		tr.Counters()
		tr.Mixture()
		r, err := tr.Next()
		if err != nil {
			t.Fatal(err)
		}
		if r != nil && !slices.Contains(r.Gather().Has, false) {
			_ = tr.Fold(&round.Result{Gathered: make([][]byte, r.Tasks)})
		}
		if m, err := tr.Model(); err == nil {
			use(m)
		}
	})
}

// use does with a model what programs do.
func use(m algorithms.Model) {
	features, labels := m.Shape()
	r := &dataset.Rows{N: 1, Features: features, Labels: labels, X: make([]float32, features)}
	r.X[0] = math.MaxFloat32
	m.Predict(make([]float32, labels), []dataset.RowRef{{}}, func(uint32) *dataset.Rows { return r }, m.NewScratch())
	m.Describe()
}

// FuzzSettings: the settings of a job come as JSON, from the log and from the leader: they are
// refused, or those of a job whose halves can be made.
func FuzzSettings(f *testing.F) {
	j := smallJob(f, nil)
	f.Add([]byte(j.Params))
	f.Add(bytes.Replace(j.Params, []byte("trees=2"), []byte("trees=0"), 1))
	f.Add(bytes.Replace(j.Params, []byte("rf:"), []byte("ensemble:"), 1))
	f.Add([]byte(`{"members":",:=\"","weights":"mean","inner_folds":2,"weight_rows":1}`))
	a := New(family())
	f.Fuzz(func(t *testing.T, raw []byte) {
		k := family()
		var err error
		allocs.AtMost(t, 4<<10*len(raw)+16<<20, "settings", func() { _, err = k.settings().Parse(raw) })
		if err != nil {
			return
		}
		job := *j
		job.Params = raw
		tr, err := a.NewTrainer(&job, smallManifest(), nil)
		if err != nil {
			return
		}
		if r, err := tr.Next(); err != nil || r.Gather().SubJob == nil || r.Gather().SubJob(r.Tasks-1) == nil {
			t.Fatalf("round %+v, error %v", r, err)
		}
		if _, err := a.NewKernel(&job, smallManifest()); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Footprint(&job, smallManifest()); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzDecodeModel changes the tensors of a model: they are refused, or those of a model that
// predicts.
func FuzzDecodeModel(f *testing.F) {
	f.Add([]byte{}, "0/structrf/nodes", uint8(0))
	f.Add([]byte{0, 0, 1, 1, 0, 200}, "1/rf/", uint8(3))
	f.Add([]byte{5, 3, 200, 9, 1, 1}, "weights", uint8(12))
	a := New(family())
	f.Fuzz(func(t *testing.T, changes []byte, name string, which uint8) {
		m := &model{weights: []float64{0.25, 0.75}, names: []string{"structrf", "rf"}}
		for _, n := range m.names {
			i := slices.IndexFunc(family(), func(a algorithms.Algorithm) bool { return a.Name() == n })
			one, err := family()[i].DecodeModel(stump(0.25))
			if err != nil {
				t.Fatal(err)
			}
			m.members = append(m.members, one)
		}
		file, _ := modelfile.Encode(Name, m.Tensors(), nil)
		decoded, err := modelfile.Decode(file)
		if err != nil {
			t.Fatal(err)
		}
		tensors := decoded.Tensors
		for ; len(changes) >= 3; changes = changes[3:] {
			x := &tensors[int(changes[0])%len(tensors)]
			switch {
			case len(x.U32) > 0:
				x.U32[int(changes[1])%len(x.U32)] = uint32(int8(changes[2]))
			case len(x.F64) > 0:
				x.F64[int(changes[1])%len(x.F64)] = math.Float64frombits(uint64(changes[2]) << 56)
			default:
				x.F32[int(changes[1])%len(x.F32)] = math.Float32frombits(uint32(changes[2]) << 24)
			}
		}
		if which > 0 && len(name) < 256 {
			tensors[int(which)%len(tensors)].Name = name
		}
		var back algorithms.Model
		allocs.AtMost(t, 64*len(file)+16<<20, "a model", func() { back, err = a.DecodeModel(tensors) })
		if err != nil {
			if !errors.Is(err, learner.ErrModel) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if modelfile.Digest(Name, back.Tensors()) != modelfile.Digest(Name, tensors) {
			t.Fatal("a decoded model has other tensors")
		}
		use(back)
	})
}
