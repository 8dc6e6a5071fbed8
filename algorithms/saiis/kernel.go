package saiis

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// opKnown is the operation (Round.Op) that sums what does not change with the weights.
const opKnown uint8 = 1

// varChanges are the δ of a round (Var.ID): float64, values. A round without has δ = 0.
const varChanges = 2

var _ round.ReduceKernel = (*kernel)(nil)

// kernel is the workers' half.
type kernel struct {
	sizes
	shared maxent.Kernel
}

func newKernel(c *Config, m *dataset.Manifest) *kernel {
	return &kernel{sizesOf(c, m), maxent.Kernel{Features: m.Features, Labels: m.Labels}}
}

// scratch is the working memory of a lane.
type scratch struct {
	shared  *maxent.Scratch
	inputs  inputs
	factors []float64 // values of a part of a row's inputs: exp(δ sgn(x) x#)
}

// partValues is how many exponentials are computed at once. It changes no bits.
const partValues = 1 << 10

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any {
	q := k.sizes.inputs()
	return &scratch{
		shared: k.shared.NewScratch(nil), factors: make([]float64, max(partValues, k.labels)),
		inputs: inputs{columns: make([]uint32, 0, q), x: make([]float64, 0, q)},
	}
}

// Derive implements round.ReduceKernel.
func (k *kernel) Derive(u round.Task, d *dataset.Data, _ round.Vars, working any) (round.Derived, error) {
	return k.shared.Derive(u, d, working.(*scratch).shared), nil
}

// Run implements round.ReduceKernel.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, derived round.Derived,
	working any) error {
	s := working.(*scratch)
	s.shared.Unit = u
	s.inputs.begin(scaling.Find(v), k.bias)
	switch unit := &s.shared.Unit; u.Op {
	case opKnown:
		k.know(dst.F64, unit, d, s)
	case fullbatch.OpEvaluate:
		k.evaluate(dst, unit, d, v, derived, s)
	default:
		if !k.shared.Run(dst, unit, d, v, derived, s.shared) {
			return fmt.Errorf("%s: the task has the unknown operation %d", Name, u.Op)
		}
	}
	return nil
}

// know sums the unit's rows as known tells.
func (k *kernel) know(sums []float64, u *round.Task, d *dataset.Data, s *scratch) {
	to, in, degrees := k.known(sums), &s.inputs, s.factors[:k.labels]
	for _, ref := range u.Rows(d) {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		weight := rows.WeightOf(pos)
		if weight == 0 {
			continue // greatest does not count the row either
		}
		maxent.Degrees(degrees, rows.Label(pos))
		in.read(rows, pos)
		for i, column := range in.columns {
			x := in.x[i]
			to.absolute[column] += float64(weight * math.Abs(x))
			for c, degree := range degrees {
				to.expected[int(column)*k.labels+c] += float64(weight * float64(x*degree))
			}
		}
		to.greatest[u.ID] = max(to.greatest[u.ID], in.sum)
	}
}

// evaluate sums the unit's rows: F64 holds their number, their K-L divergences, and what evaluated tells.
func (k *kernel) evaluate(dst *round.Partial, u *round.Task, d *dataset.Data, v round.Vars, derived round.Derived,
	s *scratch) {
	to, changes := k.evaluated(dst.F64[fullbatch.SumsAt:]), changesOf(v)
	if d.Manifest.HasWeights {
		dst.F64[2] = float64(len(u.Rows(d)))
	}
	k.shared.EachRow(dst, u, d, v, derived, s.shared, func(rows *dataset.Rows, pos int, p []float64) {
		s.inputs.read(rows, pos)
		if rows.Weight != nil {
			for c := range p {
				p[c] = float64(p[c] * rows.Weight[pos])
			}
		}
		k.add(&to, p, changes, s)
	})
}

// changesOf returns the δ of a round, nil where all are 0.
func changesOf(v round.Vars) []float64 {
	for i := range v {
		if v[i].ID == varChanges {
			return num.Float64s(v[i].Data)
		}
	}
	return nil
}

// add adds the row in s.inputs; p is its prediction.
func (k *kernel) add(to *evaluated, p, changes []float64, s *scratch) {
	in, n := &s.inputs, k.labels
	part := len(s.factors) / n
	for from := 0; from < len(in.x); from += part {
		columns, x := in.columns[from:min(from+part, len(in.x))], in.x[from:min(from+part, len(in.x))]
		factors := s.factors[:len(x)*n]
		k.exponentials(factors, columns, x, in.sum, changes)
		for i, column := range columns {
			at := int(column) * n
			side := to.above
			if x[i] < 0 {
				side = to.below
			}
			addValues(side[at:at+n], to.slope[at:at+n], p, factors[i*n:i*n+n], math.Abs(x[i]), in.sum)
		}
	}
}

// exponentials sets factors to exp(δ sgn(x) sum) of some inputs and all labels.
func (k *kernel) exponentials(factors []float64, columns []uint32, x []float64, sum float64, changes []float64) {
	if changes == nil {
		for i := range factors {
			factors[i] = 1
		}
		return
	}
	n := k.labels
	for i, column := range columns {
		by := sum
		if x[i] < 0 {
			by = -sum
		}
		to := factors[i*n : i*n+n]
		for c, change := range changes[int(column)*n:][:len(to)] {
			to[c] = change * by
		}
	}
	num.Exps(factors, factors)
}

// addValues adds p |x| e to side, and this times x# to slope, for each label.
func addValues(side, slope, p, factors []float64, x, sum float64) {
	slope, p, factors = slope[:len(side)], p[:len(side)], factors[:len(side)]
	for c := range side {
		value := float64(float64(p[c]*x) * factors[c])
		side[c] += value
		slope[c] += float64(value * sum)
	}
}
