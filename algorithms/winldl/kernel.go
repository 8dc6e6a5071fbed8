package winldl

import (
	"fmt"
	"math"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/simplex"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The rounds, and their variables.
const (
	opProducts uint8 = 1 // XᵀX (a triangle), samples, and by label the sums and numbers of known degrees, all weighted
	opStart    uint8 = 2 // XᵀZ: columns×labels, weighted
	opStep     uint8 = 3 // Xᵀ(Z - Λ/ρ), then norms, weighted

	varMeans   = 1 // of known degrees, by label
	varWeights = 2 // W of the first block of steps; the next block is the next variable
)

// norms are what a step sums behind Xᵀ(Z - Λ/ρ): squares of XW - Z, XW, Z, Z less the last Z, and Λ, and the objective.
const norms = 6

var _ round.ReduceKernel = (*kernel)(nil)

// kernel is the workers' half.
type kernel struct {
	columns simplex.Columns
	labels  int
	cfg     *Config
}

// state is what a task keeps of its samples after a step: samples×labels. It is the derived value of all steps, and
// each moves it on.
type state struct {
	round.Unpooled
	mu        sync.Mutex // several executors may compute a task
	step      uint64     // math.MaxUint64: there is none yet
	z, lambda []float64
}

// stateBytes is the size of a state with so many values in z.
func stateBytes(values int) int { return 16*values + 96 }

// Bytes implements round.Derived.
func (x *state) Bytes() int { return stateBytes(len(x.z)) }

// reset makes x a state with no step.
func (x *state) reset(values int) *state {
	if x.step = math.MaxUint64; len(x.z) != values {
		x.z, x.lambda = make([]float64, values), make([]float64, values)
	}
	return x
}

// scratch is the working memory of a lane.
type scratch struct {
	unit    round.Task
	scaling scaling.Scratch
	row     []float64 // columns
	scores  []float64 // labels: XW
	sorted  []float64 // labels
	right   []float64 // labels: Z - Λ/ρ
	missing []float64 // labels: Q² of missing degrees
	before  []float64 // labels: the last Z
	own     state     // of a task without a derived value
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any {
	vector := func() []float64 { return make([]float64, k.labels) }
	return &scratch{row: make([]float64, k.columns.Count()), scores: vector(), sorted: vector(), right: vector(),
		missing: vector(), before: vector()}
}

// Derive implements round.ReduceKernel for steps: a state without a step.
func (k *kernel) Derive(u round.Task, d *dataset.Data, _ round.Vars, _ any) (round.Derived, error) {
	values := len(u.Rows(d)) * k.labels
	if u.Op != opStep || !u.TryReserve(stateBytes(values)) {
		return nil, nil
	}
	return new(state).reset(values), nil
}

// Run implements round.ReduceKernel.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, of round.Derived,
	working any) error {
	s := working.(*scratch)
	s.unit = u
	if scaling.Run(dst, &s.unit, d, v, &s.scaling) {
		return nil
	}
	scale := scaling.Find(v)
	refs := s.unit.Rows(d)
	switch u.Op {
	case opProducts:
		k.products(dst.F64, refs, d, &scale, s)
	case opStart:
		k.start(dst.F64, s.own.reset(len(refs)*k.labels), refs, d, v, &scale, s)
	case opStep:
		x, ok := of.(*state)
		if !ok {
			x = s.own.reset(len(refs) * k.labels)
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		to := u.Steps[0]
		if x.step >= to {
			k.start(nil, x, refs, d, v, &scale, s)
		}
		for x.step+1 < to {
			k.step(nil, x, refs, d, v, &scale, s)
		}
		k.step(dst.F64, x, refs, d, v, &scale, s)
	default:
		return fmt.Errorf("%s: the task has the unknown operation %d", Name, u.Op)
	}
	return nil
}

// products sums what opProducts does.
func (k *kernel) products(sums []float64, refs []dataset.RowRef, d *dataset.Data, scale *scaling.Values, s *scratch) {
	n := simplex.Triangle(k.columns.Count())
	gram, rest := sums[:n], sums[n:]
	for _, ref := range refs {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		k.columns.Read(s.row, rows, pos, scale)
		weight := rows.WeightOf(pos)
		simplex.AddGram(gram, s.row, weight)
		rest[0] += weight
		for c, x := range rows.Label(pos) {
			if x == x {
				rest[1+c] += float64(weight * float64(x))
				rest[1+k.labels+c] += weight
			}
		}
	}
}

// start sets a state to what it is before the first step, and adds XᵀZ to sums unless it is nil.
func (k *kernel) start(sums []float64, x *state, refs []dataset.RowRef, d *dataset.Data, v round.Vars,
	scale *scaling.Values, s *scratch) {
	x.step = 0
	clear(x.lambda)
	means := num.Float64s(v.Get(varMeans))
	for i, ref := range refs {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		z := x.z[i*k.labels:][:k.labels]
		for c, degree := range rows.Label(pos) {
			if z[c] = means[c]; degree == degree {
				z[c] = float64(degree)
			}
		}
		if sums != nil {
			k.columns.Read(s.row, rows, pos, scale)
			simplex.AddOuter(sums, s.row, z, rows.WeightOf(pos))
		}
	}
}

// step moves a state by one step, and adds what opStep sums to sums unless it is nil.
func (k *kernel) step(sums []float64, x *state, refs []dataset.RowRef, d *dataset.Data, v round.Vars,
	scale *scaling.Values, s *scratch) {
	x.step++
	block, place := k.cfg.block(x.step)
	weights := num.Float64s(v.Get(varWeights + block))[place*k.columns.Count()*k.labels:]
	growth := num.Log(1 + float64(x.step)/float64(k.cfg.Iterations))
	for c, mean := range num.Float64s(v.Get(varMeans)) {
		s.missing[c] = num.Exp(2 * float64(mean*growth))
	}
	for i, ref := range refs {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		k.columns.Read(s.row, rows, pos, scale)
		simplex.Scores(s.scores, s.row, weights)
		z, lambda := x.z[i*k.labels:][:k.labels], x.lambda[i*k.labels:][:k.labels]
		copy(s.before, z)
		loss := k.project(z, lambda, rows.Label(pos), s)
		if sums == nil {
			continue
		}
		of, weight := sums[len(sums)-norms:], rows.WeightOf(pos)
		of[5] += float64(weight * loss)
		for c, score := range s.scores {
			s.right[c] = z[c] - lambda[c]/k.cfg.Rho
			add(&of[0], score-z[c], weight)
			add(&of[1], score, weight)
			add(&of[2], z[c], weight)
			add(&of[3], z[c]-s.before[c], weight)
			add(&of[4], lambda[c], weight)
		}
		simplex.AddOuter(sums[:len(sums)-norms], s.row, s.right, weight)
	}
}

// add adds the square of x, times a weight, to sum.
func add(sum *float64, x, weight float64) { *sum += float64(weight * float64(x*x)) }

// project sets a sample's rows of Z and Λ from s.scores, and returns ½Σ Q²(XW - Y)².
func (k *kernel) project(z, lambda []float64, label []float32, s *scratch) (loss float64) {
	rho := k.cfg.Rho
	for c, d := range label {
		square, target := s.missing[c], s.scores[c]
		if d == d {
			target = float64(d)
			square = num.Exp(2 * float64((1-target)*math.Ln2))
			e := target - s.scores[c]
			loss += float64(0.5 * square * e * e)
		}
		z[c] = (float64(rho*s.scores[c]) + lambda[c] + float64(square*target)) / (square + rho)
	}
	simplex.Project(z, s.sorted)
	for c := range lambda {
		lambda[c] += float64(rho * (s.scores[c] - z[c]))
	}
	return loss
}
