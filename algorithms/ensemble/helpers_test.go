package ensemble

import (
	"encoding/json"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ldlf"
	"github.com/coppice-ldl/coppice/algorithms/rf"
	"github.com/coppice-ldl/coppice/algorithms/structrf"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
)

// numbersOnly is an algorithm that predicts numbers.
type numbersOnly struct{ algorithms.Algorithm }

func (numbersOnly) Name() string                { return "regression" }
func (numbersOnly) Predicts() algorithms.Output { return algorithms.Number }

// family are the algorithms of these tests.
func family() kin {
	return kin{ldlf.New(), structrf.New(), rf.New(), numbersOnly{rf.New()}}
}

// smallManifest describes eight rows of three features and two labels.
func smallManifest() *dataset.Manifest {
	return &dataset.Manifest{Format: 1, Rows: 8, Features: 3, Labels: 2, NonZeros: 24, Shards: make([]dataset.ShardRef, 1)}
}

const smallMembers = "structrf:trees=2:min_samples=2,rf:trees=2:min_samples=2"

// smallJob is a job of two members and two inner folds on these rows.
func smallJob(t testing.TB, set param.Values) *round.Job {
	t.Helper()
	given := param.Values{"members": smallMembers, "inner_folds": int64(2)}
	for name, value := range set {
		given[name] = value
	}
	r, err := New(family()).Resolve(given, smallManifest())
	if err != nil {
		t.Fatal(err)
	}
	return &round.Job{Algorithm: Name, Numerics: round.Numerics, Seed: 1, Params: r.Params, Split: dataset.Split{Seed: 1}}
}

// newSmall returns the trainer of a job, from its beginning or from a state.
func newSmall(t testing.TB, j *round.Job, state []byte) (*trainer, error) {
	t.Helper()
	tr, err := New(family()).NewTrainer(j, smallManifest(), state)
	if err != nil {
		return nil, err
	}
	return tr.(*trainer), nil
}

// stump is the least forest: a tree of two leaves, and one of a single leaf.
func stump(low float32) []algorithms.Tensor {
	return []algorithms.Tensor{
		{Name: "settings", Dims: []int{4}, U32: []uint32{1, 2, 3, 2}},
		{Name: "nodes", Dims: []int{2}, U32: []uint32{3, 1}},
		{Name: "leaves", Dims: []int{2}, U32: []uint32{2, 1}},
		{Name: "gain_evaluations", Dims: []int{2}, F64: []float64{5, 0}},
		{Name: "feature", Dims: []int{4}, U32: []uint32{1, 1<<32 - 1, 1<<32 - 1, 1<<32 - 1}},
		{Name: "left", Dims: []int{4}, U32: []uint32{1, 0, 1, 0}},
		{Name: "samples", Dims: []int{4}, U32: []uint32{9, 4, 5, 9}},
		{Name: "threshold", Dims: []int{4}, F64: []float64{0.5, 0, 0, 0}},
		{Name: "gain", Dims: []int{4}, F64: []float64{0.1, 0, 0, 0}},
		{Name: "leaf", Dims: []int{3, 2}, F32: []float32{1, 0, low, 1 - low, 0.5, 0.5}},
	}
}

// part is the outcome of a unit of the small job.
func part(t testing.TB, unit int) []byte {
	t.Helper()
	name := []string{"structrf", "rf"}[unit%2]
	head, err := json.Marshal(numbers{Digest: "d", Steps: 2, Samples: 16, Loss: 0.5,
		Counters: map[string]uint64{"gain_evaluations": uint64(unit)}})
	if err != nil {
		t.Fatal(err)
	}
	o := childjob.Outcome{Head: head}
	if unit < 2 {
		o.Model, _ = modelfile.Encode(name, stump(0.25), []byte(`{"of":"no use"}`))
		return o.Encode()
	}
	s := &predictions.Set{Labels: 2}
	for i := range uint32(4) {
		off := float32(unit%2) / 8
		s.Add(uint32(unit/2-1)*4+i, []float32{0.25, 0.75}, []float32{0.25 + off, 0.75 - off})
	}
	o.Predictions = s.Encode()
	return o.Encode()
}

// after returns the state once so many results are taken.
func after(t testing.TB, j *round.Job, parts int) []byte {
	t.Helper()
	tr, err := newSmall(t, j, nil)
	if err != nil {
		t.Fatal(err)
	}
	for unit := range parts {
		if err := tr.TakeResult(unit, part(t, unit)); err != nil {
			t.Fatal(err)
		}
	}
	return stateOf(t, tr)
}

func stateOf(t testing.TB, tr *trainer) []byte {
	t.Helper()
	b, err := fields.Append(nil, stateVersion, tr.State)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var _ learner.Trainer = (*trainer)(nil)
