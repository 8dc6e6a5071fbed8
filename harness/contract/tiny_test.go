package contract

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"sync/atomic"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// tiny is a sound algorithm, of which a fault makes a broken twin: steps with momentum from
// the uniform distribution to the mean, then a gather round of two tasks. A row whose
// first value is negative is predicted with the labels in reverse.
type tiny struct{ fault string }

type tinyConfig struct {
	Steps int64   `json:"steps"`
	Rate  float64 `json:"rate"`
	Twice bool    `json:"twice"`
	Start string  `json:"start"`
}

func (tiny) Name() string { return "tiny" }

func (tiny) Doc() string { return "steps to the mean" }

func (tiny) About() algorithms.About { return algorithms.About{} }

func (tiny) Predicts() algorithms.Output { return algorithms.Distribution }

func (tiny) Params() []param.Param {
	return []param.Param{
		{Name: "steps", Kind: param.KindInt, Doc: "steps", Default: "50", Min: 1, Max: 1000},
		{Name: "rate", Kind: param.KindFloat, Doc: "learning rate", Default: "0.5", Min: 0.1, Max: 1},
		{Name: "twice", Kind: param.KindBool, Doc: "rows count twice", Default: "false"},
		{Name: "start", Kind: param.KindWord, Doc: "first values", Default: "uniform", Words: []string{"uniform", "zero"}},
	}
}

func (a tiny) Resolve(given param.Values, _ *dataset.Manifest) (algorithms.Resolved, error) {
	c := tinyConfig{Steps: 50, Rate: 0.5, Start: "uniform"}
	for name, v := range given {
		ok := a.fault == "takes any name"
		switch name {
		case "steps":
			c.Steps, ok = v.(int64)
			ok = ok && c.Steps >= 1 && (c.Steps <= 1000 || a.fault == "takes any number")
		case "rate":
			c.Rate, ok = v.(float64)
			ok = ok && c.Rate >= 0.1 && c.Rate <= 1
		case "twice":
			c.Twice, ok = v.(bool)
		case "start":
			c.Start, ok = v.(string)
			ok = ok && (c.Start == "uniform" || c.Start == "zero")
		}
		switch {
		case !ok && a.fault == "does not name the setting":
			return algorithms.Resolved{}, errors.New("something is wrong")
		case !ok:
			return algorithms.Resolved{}, &param.Error{Name: name, Reason: "wrong"}
		}
	}
	if a.fault == "resolves to something else" {
		c.Rate = max(0.1, 0.9*c.Rate)
	}
	raw, err := json.Marshal(c)
	return algorithms.Resolved{Params: raw}, err
}

func (a tiny) NewTrainer(j *round.Job, m *dataset.Manifest, state []byte) (algorithms.Trainer, error) {
	t := &tinyTrainer{fault: a.fault, shards: len(m.Shards), features: m.Features}
	if err := json.Unmarshal(j.Params, &t.c); err != nil {
		return nil, err
	}
	t.theta, t.velocity = make([]float64, m.Labels), make([]float64, m.Labels)
	for i := range t.theta {
		t.theta[i] = map[string]float64{"uniform": 1, "zero": 0}[t.c.Start] / float64(m.Labels)
	}
	if state == nil {
		return t, nil
	}
	return t, t.restore(state)
}

func (a tiny) NewKernel(j *round.Job, m *dataset.Manifest) (round.Kernel, error) {
	k := &tinyKernel{fault: a.fault, labels: m.Labels}
	return k, json.Unmarshal(j.Params, &k.c)
}

func (a tiny) Footprint(_ *round.Job, m *dataset.Manifest) (algorithms.Footprint, error) {
	labels := int64(m.Labels)
	f := algorithms.Footprint{State: 16*labels + 64, Model: 8*labels + 64, Node: 8*labels + 8, Nodes: int64(len(m.Shards))}
	switch a.fault {
	case "estimates too small a state":
		f.State = 10
	case "estimates too small a node":
		f.Node = 8
	case "estimates too small a model":
		f.Model = 8
	}
	return f, nil
}

func (a tiny) DecodeModel(tensors []algorithms.Tensor) (algorithms.Model, error) {
	m := &tinyModel{fault: a.fault, extra: make([]float64, 2)}
	for _, t := range tensors {
		switch t.Name {
		case "features":
			m.features = int(t.U32[0])
		case "theta":
			m.theta = t.F64
		case "extra":
			m.extra = t.F64
		}
	}
	if len(tensors) != len(m.Tensors()) && a.fault != "accepts a model without a tensor" {
		return nil, errors.New("another number of tensors")
	}
	return m, nil
}

// tinyTrainer is the Trainer.
type tinyTrainer struct {
	fault            string
	c                tinyConfig
	shards, features int
	step             uint64
	rows             float64
	theta, velocity  []float64
	extra            [2]float64
	gathered         bool
	forgotten        uint64
	asked            uint64 // rounds that this trainer asked for
	caller           []byte // of the state that the caller gave
	round            round.Round
}

func (t *tinyTrainer) Next() (*round.Round, error) {
	if t.asked++; t.fault == "panics" && t.step == 3 {
		panic("planted")
	}
	if t.caller != nil {
		t.vectors(t.caller)
		t.caller = nil
	}
	t.round = round.Round{Kind: "step", Tasks: 8, Roles: dataset.Train,
		How: &round.Reduce{Shape: round.Shape{F64: len(t.theta) + 1}, DerivedVersion: 1}}
	if t.fault == "trains on test rows" {
		t.round.Roles = dataset.AllRows
	}
	version := t.step + 1
	switch t.fault {
	case "gives two values one version":
		version = 1 + t.step/2
	case "asks for a unit too many":
		t.round.Tasks = 7
	case "gives derived values old versions":
		t.round.Reduce().DerivedVersion = 100 - t.step
	case "never ends":
		t.round.Vars = []round.Var{{ID: 1, Version: version, Data: num.Bytes64(t.theta)}}
		return &t.round, nil
	}
	t.round.Vars = []round.Var{{ID: 1, Version: version, Data: append([]byte{}, num.Bytes64(t.theta)...)}}
	switch {
	case t.gathered:
		return nil, nil
	case t.step == uint64(t.c.Steps):
		t.round = round.Round{Kind: "extra", Tasks: 2, How: &round.Gather{Payloads: [][]byte{{0}, {1}}}, Scope: round.Whole,
			Roles: dataset.Train}
	}
	return &t.round, nil
}

func (t *tinyTrainer) Fold(res *round.Result) error {
	if t.fault == "depends on how long it lives" && t.asked > 4 {
		t.rows++
	}
	if res.Sum == nil {
		for i, b := range res.Gathered {
			t.extra[i] = math.Float64frombits(binary.LittleEndian.Uint64(b))
		}
		t.gathered = true
		return nil
	}
	n := res.Sum.F64[len(t.theta)]
	for i, v := range res.Sum.F64[:len(t.theta)] {
		t.velocity[i] = 0.5*t.velocity[i] + t.c.Rate*v/n
		t.theta[i] += t.velocity[i]
	}
	t.rows += n
	t.step++
	t.forgotten += t.step
	return nil
}

// AppendState appends the step, the rows, whether it collected and the vectors.
func (t *tinyTrainer) AppendState(dst []byte) ([]byte, error) {
	dst = binary.LittleEndian.AppendUint64(dst, t.step)
	dst = append(dst, num.Bytes64([]float64{t.rows, t.extra[0], t.extra[1]})...)
	dst = append(dst, map[bool]byte{true: 1}[t.gathered])
	dst = append(dst, num.Bytes64(t.theta)...)
	if t.fault != "forgets its velocity" {
		dst = append(dst, num.Bytes64(t.velocity)...)
	}
	if t.fault == "is changed by AppendState" {
		t.rows++
	}
	return dst, nil
}

func (t *tinyTrainer) restore(b []byte) error {
	n := len(t.theta)
	want := 33 + 16*n
	if t.fault == "forgets its velocity" {
		want -= 8 * n
	}
	if len(b) != want && !(t.fault == "takes a state with more behind it" && len(b) > want) {
		return errors.New("not a state")
	}
	if t.fault == "forgets its rows" {
		binary.LittleEndian.PutUint64(b[8:], 0)
	}
	t.step = binary.LittleEndian.Uint64(b)
	v := num.Float64s(append([]byte{}, b[8:32]...))
	t.rows, t.extra, t.gathered = v[0], [2]float64{v[1], v[2]}, b[32] == 1
	t.vectors(b[33:])
	if t.fault == "keeps the caller's bytes" {
		t.caller = b[33:]
	}
	return nil
}

// vectors reads θ and the velocity.
func (t *tinyTrainer) vectors(b []byte) {
	for i := range t.theta {
		t.theta[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		if t.fault != "forgets its velocity" {
			t.velocity[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*(len(t.theta)+i):]))
		}
	}
}

func (t *tinyTrainer) Progress() round.Progress {
	return round.Progress{Step: t.step, Samples: uint64(t.rows), Loss: -1, Phase: "training"}
}

func (t *tinyTrainer) Counters() map[string]uint64 {
	if t.fault == "forgets a counter" {
		return map[string]uint64{"sum": t.forgotten}
	}
	return nil
}

func (t *tinyTrainer) Model() (algorithms.Model, error) {
	return &tinyModel{fault: t.fault, features: t.features, theta: append([]float64{}, t.theta...), extra: t.extra[:]}, nil
}

// tinyKernel is the Kernel.
type tinyKernel struct {
	fault  string
	c      tinyConfig
	labels int
	calls  atomic.Int64
	seen   map[int]float64
}

func (k *tinyKernel) NewScratch() any { return make([]float64, k.labels) }

// tinyDerived is the sum of the task's labels and the number of its rows.
type tinyDerived struct {
	round.Unpooled
	sums []float64
}

func (tinyDerived) Bytes() int { return 100 }

func (k *tinyKernel) Derive(u round.Task, d *dataset.Data, v round.Vars, _ any) (round.Derived, error) {
	if !u.TryReserve(100) {
		return nil, nil
	}
	sums := k.sums(u, d, make([]float64, k.labels+1))
	if k.fault == "derives from what changes" {
		sums[0] += num.Float64s(append([]byte{}, v.Get(1)...))[0]
	}
	return &tinyDerived{sums: sums}, nil
}

// sums adds up the labels of the task's rows, and their number.
func (k *tinyKernel) sums(u round.Task, d *dataset.Data, dst []float64) []float64 {
	if k.fault == "reads another unit's shard" {
		d.Shard((u.ID + 1) % len(d.Manifest.Shards))
		d.Shard(len(d.Manifest.Shards) - 1)
	}
	for _, ref := range u.Rows(d) {
		rows := d.Shard(int(ref.Shard))
		for c, v := range rows.Label(int(ref.Pos)) {
			dst[c] += float64(v)
		}
		dst[k.labels]++
		if k.fault == "writes to the rows" && rows.D[0] > 0 {
			rows.D[0] = math.Nextafter32(rows.D[0], 0)
		}
	}
	return dst
}

func (k *tinyKernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, derived round.Derived,
	scratch any) error {
	s := scratch.([]float64)
	if value, ok := derived.(*tinyDerived); ok {
		copy(dst.F64, value.sums)
	} else {
		k.sums(u, d, dst.F64)
	}
	theta := v.Get(1)
	n := dst.F64[k.labels]
	for c := range s {
		at := math.Float64frombits(binary.LittleEndian.Uint64(theta[8*c:]))
		dst.F64[c] -= n * at
	}
	calls := float64(k.calls.Add(1))
	switch k.fault {
	case "counts its calls":
		dst.F64[0] += 1e-9 * calls
	case "computes otherwise with idle lanes":
		if u.Helpers() > 0 {
			dst.F64[0] += 1e-9
		}
	case "leaves something in its scratch memory":
		dst.F64[0] += 1e-9 * s[0]
		s[0] = float64(u.ID)
	case "writes to the values":
		theta[0]++
	case "allocates":
		k.seen = map[int]float64{u.ID: n}
	case "sums to nothing known":
		dst.F64[0] = math.NaN()
	}
	return nil
}

func (k *tinyKernel) Gather(_ context.Context, u round.Task, d *dataset.Data, _ round.Vars, _ any) ([]byte, error) {
	sums := k.sums(u, d, make([]float64, k.labels+1))
	calls := float64(k.calls.Add(1))
	if k.fault == "collects by the order of its calls" {
		sums[u.Payload[0]] += calls
	}
	return binary.LittleEndian.AppendUint64(nil, math.Float64bits(sums[u.Payload[0]])), nil
}

// tinyModel is the Model.
type tinyModel struct {
	fault    string
	features int
	theta    []float64
	extra    []float64
}

func (m *tinyModel) Tensors() []algorithms.Tensor {
	tensors := []algorithms.Tensor{
		{Name: "features", Dims: []int{1}, U32: []uint32{uint32(m.features)}},
		{Name: "theta", Dims: []int{len(m.theta)}, F64: m.theta},
		{Name: "extra", Dims: []int{2}, F64: m.extra},
	}
	if m.fault == "loses a tensor" {
		return tensors[:2]
	}
	return tensors
}

func (m *tinyModel) Shape() (features, labels int) {
	if m.fault == "misstates its shape" {
		return m.features, len(m.theta) + 1
	}
	return m.features, len(m.theta)
}

func (m *tinyModel) NewScratch() any { return make([]float32, 1) }

func (m *tinyModel) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any) {
	s, labels := scratch.([]float32), len(m.theta)
	sum := m.extra[0] // so that predictions need it
	for _, v := range m.theta {
		sum += max(v, 0) + 1e-3
	}
	for i, ref := range refs {
		rows, row := shard(ref.Shard), dst[i*labels:(i+1)*labels]
		for c, v := range m.theta {
			row[c] = float32((max(v, 0) + 1e-3 + m.extra[0]/float64(labels)) / sum)
		}
		if first(rows, int(ref.Pos)) < 0 {
			for c := range labels / 2 {
				row[c], row[labels-1-c] = row[labels-1-c], row[c]
			}
		}
		shift := float32(0)
		switch m.fault {
		case "predicts by the size of the batch":
			shift = 1e-4 / float32(len(refs))
		case "predicts by the row before":
			shift, s[0] = s[0], row[0]/1000
		case "predicts by the label":
			shift = rows.Label(int(ref.Pos))[0] / 1000
		case "predicts no distribution":
			row[0]++
		case "predicts with new memory":
			s = append(append([]float32(nil), s...), 1)
		}
		row[0], row[labels-1] = row[0]+shift, row[labels-1]-shift
	}
}

func first(rows *dataset.Rows, i int) float32 {
	if !rows.Sparse {
		return rows.Dense(i)[0]
	}
	_, values := rows.NonZeros(i)
	return values[0]
}

func (m *tinyModel) Describe() [][2]string { return nil }
