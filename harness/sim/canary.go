package sim

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Canary is the name of the algorithm of the simulation. Every bit of its state depends
// on every round. Tasks sum numbers of magnitudes far apart: another order of a sum, a
// stale value or a task counted twice shows at once. A hash chain over (round, task,
// bytes) ends in the model.
const Canary = "canary"

// The shape of a canary.
const (
	canaryTasks      = 8  // of a reduce round, one for each shard
	canaryParts      = 5  // tasks of a gather round
	canaryWidth      = 3  // float64 and float32 sums
	canaryRows       = 12 // of the sparse values
	canaryVar        = 7  // the id of a value that changes in each round
	canaryTable      = 8  // the id of a value that changes every tableEvery rounds
	tableEvery       = 3
	canaryTableBytes = payload + 2000 // in two fragments
	canaryEvery      = 4              // if a job collects, one of so many rounds is a gather round
	canaryTallies    = canaryTasks    // float64 values: each task adds 1 to its own
)

var canaryShape = round.Shape{F64: canaryWidth + canaryTallies, F32: canaryWidth, Rows: canaryRows, Width: 2}

// canaryParams is Job.Params.
type canaryParams struct {
	Rounds  uint64 `json:"rounds"`
	Gather  bool   `json:"collect"`
	Padding int    `json:"padding"` // bytes at the end of the state
	Method  int    `json:"row"`     // of the experiment, from 1 on; 0: it is not a run of the experiment
}

// watcher is told what canaries do while a simulation runs.
type watcher struct {
	// next is called when a trainer is asked for a round.
	next func()
	// fold is called with what a trainer is given.
	fold func(seed, round uint64, res *round.Result)
	// compute returns how long a task computes in the round that reads a version of the
	// canary's value.
	compute func(seed, version uint64, u *round.Task) time.Duration
}

// watching is the watcher of the simulation that runs; nil: none runs. At most one
// simulation runs at a time.
var watching atomic.Pointer[watcher]

// canary is the algorithm. It implements algorithms.Algorithm.
type canary struct{}

func (canary) Name() string                { return Canary }
func (canary) Doc() string                 { return "an algorithm whose state tells every mistake" }
func (canary) About() algorithms.About     { return algorithms.About{} }
func (canary) Predicts() algorithms.Output { return algorithms.Distribution }
func (canary) Params() []param.Param       { return nil }

func (canary) Resolve(param.Values, *dataset.Manifest) (algorithms.Resolved, error) {
	return algorithms.Resolved{}, errors.New("sim: nobody asks for a canary by name")
}

func (canary) NewTrainer(j *round.Job, m *dataset.Manifest, state []byte) (algorithms.Trainer, error) {
	t := &trainer{seed: j.Seed, labels: m.Labels}
	if err := json.Unmarshal(j.Params, &t.params); err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	if state == nil {
		return t, nil
	}
	if len(state) != 8+sha256.Size+8*canaryWidth+t.params.Padding {
		return nil, fmt.Errorf("sim: a state of %d bytes", len(state))
	}
	t.done = binary.LittleEndian.Uint64(state)
	copy(t.chain[:], state[8:])
	copy(t.sums[:], num.Float64s(state[8+sha256.Size:][:8*canaryWidth]))
	return t, nil
}

func (canary) NewKernel(j *round.Job, _ *dataset.Manifest) (round.Kernel, error) {
	return &kernel{seed: j.Seed}, nil
}

func (canary) Footprint(*round.Job, *dataset.Manifest) (algorithms.Footprint, error) {
	return algorithms.Footprint{}, nil
}

func (canary) DecodeModel(tensors []algorithms.Tensor) (algorithms.Model, error) {
	if len(tensors) != 2 || len(tensors[1].U32) != 8 {
		return nil, errors.New("sim: not a canary")
	}
	return &model{tensors: tensors}, nil
}

// trainer is the canary's Trainer.
type trainer struct {
	params canaryParams
	seed   uint64
	labels int
	done   uint64 // rounds
	chain  [sha256.Size]byte
	sums   [canaryWidth]float64
	round  round.Round
}

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	if w := watching.Load(); w != nil && t.params.Method == 0 {
		w.next()
	}
	if t.done == t.params.Rounds {
		return nil, nil
	}
	var table [canaryTableBytes]byte
	binary.LittleEndian.PutUint64(table[:], t.done/tableEvery)
	t.round = round.Round{Vars: []round.Var{
		{ID: canaryVar, Version: t.done + 1, Data: append([]byte(nil), t.chain[:]...)},
		{ID: canaryTable, Version: t.done/tableEvery + 1, Data: table[:]},
	}}
	if t.params.Gather && t.done%canaryEvery == canaryEvery-1 {
		how := new(round.Gather)
		for u := range canaryParts {
			how.Payloads = append(how.Payloads, []byte{byte(u)})
		}
		t.round.Tasks, t.round.How, t.round.Scope = canaryParts, how, round.None
		return &t.round, nil
	}
	t.round.Tasks, t.round.Roles = canaryTasks, dataset.AllRows
	t.round.How = &round.Reduce{Shape: canaryShape, DerivedVersion: t.done/2 + 1}
	return &t.round, nil
}

// Fold implements round.Trainer.
func (t *trainer) Fold(res *round.Result) error {
	if w := watching.Load(); w != nil && t.params.Method == 0 {
		w.fold(t.seed, t.done, res)
	}
	h := sha256.New()
	h.Write(t.chain[:])
	h.Write(binary.LittleEndian.AppendUint64(nil, t.done))
	if p := res.Sum; p != nil {
		h.Write(partialBytes(p))
		for i := range t.sums {
			t.sums[i] += p.F64[i]
		}
	}
	for u, part := range res.Gathered {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(u)))
		h.Write(part)
	}
	h.Sum(t.chain[:0])
	t.done++
	return nil
}

// partialBytes returns all bits of a partial.
func partialBytes(p *round.Partial) []byte {
	var b []byte
	for _, v := range [][]byte{num.Bytes64(p.F64), num.Bytes32(p.F32), num.BytesU32(p.Index), num.Bytes32(p.Values)} {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(v))), v...)
	}
	return b
}

// AppendState implements round.Trainer.
func (t *trainer) AppendState(dst []byte) ([]byte, error) {
	dst = binary.LittleEndian.AppendUint64(dst, t.done)
	dst = append(dst, t.chain[:]...)
	dst = append(dst, num.Bytes64(t.sums[:])...)
	return append(dst, make([]byte, t.params.Padding)...), nil
}

// Progress implements round.Trainer.
func (t *trainer) Progress() round.Progress {
	p := round.Progress{Step: t.done, Steps: t.params.Rounds, Loss: float64(t.chain[0])}
	if t.done%3 == 0 {
		p.Validation, p.ValidatedAt = float64(t.chain[1]), t.done
	}
	if t.chain[2]%4 == 0 { // a loss below 0 says that it is not known
		p.Loss = -1e-10
	}
	return p
}

// Counters implements round.Trainer.
func (t *trainer) Counters() map[string]uint64 { return nil }

// Model implements round.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	words := make([]uint32, 8)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(t.chain[4*i:])
	}
	return &model{tensors: []algorithms.Tensor{
		{Name: "sums", Dims: []int{canaryWidth}, F64: append([]float64(nil), t.sums[:]...)},
		{Name: "chain", Dims: []int{8}, U32: words},
	}}, nil
}

// model is the model of a canary. It predicts the same for every sample.
type model struct{ tensors []algorithms.Tensor }

func (m *model) Tensors() []algorithms.Tensor  { return m.tensors }
func (m *model) Shape() (features, labels int) { return dataFeatures, dataLabels }
func (m *model) NewScratch() any               { return nil }
func (m *model) Describe() [][2]string         { return nil }
func (m *model) Predict(dst []float32, refs []dataset.RowRef, _ func(uint32) *dataset.Rows, _ any) {
	for i := range refs {
		for c := range dataLabels {
			dst[i*dataLabels+c] = 1 / float32(dataLabels)
		}
	}
}

// kernel is the canary's Kernel.
type kernel struct{ seed uint64 }

// derived is the value that a kernel derives from a task and keeps.
type derived struct {
	round.Unpooled
	keep uint64 // the derived version
	task int
	x    [4]float64
}

func (*derived) Bytes() int { return 48 }

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any { return nil }

// Derive implements round.Kernel.
func (k *kernel) Derive(u round.Task, _ *dataset.Data, _ round.Vars, _ any) (round.Derived, error) {
	d := &derived{keep: u.DerivedVersion, task: u.ID}
	s := num.NewStream(num.NewKey(u.DerivedVersion, "sim/keep"), k.seed, uint32(u.ID))
	for i := range d.x {
		d.x[i] = s.Normal()
	}
	return d, nil
}

// Run implements round.Kernel.
func (k *kernel) Run(dst *round.Partial, u round.Task, data *dataset.Data, v round.Vars, kept round.Derived,
	_ any) error {
	k.pause(&u, v)
	d := kept.(*derived)
	if d.keep != u.DerivedVersion || d.task != u.ID {
		return fmt.Errorf("sim: the value kept is of unit %d under %d", d.task, d.keep)
	}
	key := num.NewKey(binary.LittleEndian.Uint64(v.Get(canaryVar)), "sim/run")
	s := num.NewStream(key, v.Version(canaryVar)+uint64(v.Get(canaryTable)[0])<<32, uint32(u.ID))
	for _, ref := range u.Rows(data) {
		row := data.Shard(int(ref.Shard)).Dense(int(ref.Pos))
		for i := range canaryWidth {
			x := (s.Float64() - 0.5 + float64(row[0]) + d.x[i]) * math.Float64frombits(uint64(1023-30+s.Uint64n(60))<<52)
			dst.F64[i] += x
			dst.F32[i] += float32(x)
		}
	}
	dst.F64[canaryWidth+u.ID]++
	for row := range uint32(canaryRows) {
		if s.Uint64n(3) > 0 {
			dst.Index = append(dst.Index, row)
			dst.Values = append(dst.Values, float32(s.Normal()*1e6), float32(s.Normal()))
		}
	}
	return nil
}

// Gather implements round.GatherKernel.
func (k *kernel) Gather(ctx context.Context, u round.Task, _ *dataset.Data, v round.Vars, _ any) ([]byte, error) {
	k.pause(&u, v)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append(append([]byte{byte(u.ID)}, u.Payload...), v.Get(canaryVar)...))
	part := sum[:]
	for len(part) < 1000*u.ID { // the results have several sizes
		part = append(part, part...)
	}
	return part, nil
}

// pause passes the virtual time that a task computes.
func (k *kernel) pause(u *round.Task, v round.Vars) {
	if w := watching.Load(); w != nil {
		time.Sleep(w.compute(k.seed, v.Version(canaryVar), u))
	}
}
