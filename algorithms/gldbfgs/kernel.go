package gldbfgs

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/blocks"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// varMetric is Ω of a later stage (labels×labels, float64).
const varMetric = 2

var _ round.ReduceKernel = (*kernel)(nil)

// kernel is the workers' half.
type kernel struct {
	features, labels int
	moments          bool // evaluations sum moments of errors
}

// scratch is the working memory of a lane.
type scratch struct {
	scaling scaling.Scratch
	unit    round.Task
	space   blocks.Space
	block   blocks.Block
	values  []float64 // MaxRows×labels: scores, then derivatives
	errors  []float64 // labels: of a row
	weighed []float64 // labels: Ωe
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any {
	return &scratch{values: make([]float64, blocks.MaxRows*k.labels), errors: make([]float64, k.labels),
		weighed: make([]float64, k.labels)}
}

// Derive implements round.ReduceKernel: there is nothing to derive.
func (k *kernel) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return nil, nil
}

// Run implements round.ReduceKernel. F64 of an evaluation holds what fullbatch.OpEvaluate says of the losses eᵀΩe, then
// Σ x rᵀ, Σ r and the moments of the errors, all weighted, with r = 2·Ωe∘(1 - g²). A validation has the rows and the
// losses, with Ω = I.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, _ round.Derived, own any) error {
	s := own.(*scratch)
	s.unit = u
	switch {
	case scaling.Run(dst, &s.unit, d, v, &s.scaling):
	case u.Op == fullbatch.OpEvaluate:
		k.evaluate(dst.F64, d, v, s)
	case u.Op == gradient.OpValidate:
		dst.F64[0], dst.F64[1] = k.each(d, v, s, nil, nil)
	default:
		return fmt.Errorf("%s: the task has the unknown operation %d", Name, u.Op)
	}
	return nil
}

// evaluate sums the rows of a unit.
func (k *kernel) evaluate(dst []float64, d *dataset.Data, v round.Vars, s *scratch) {
	n := k.features * k.labels
	sums := dst[fullbatch.SumsAt:]
	if d.Manifest.HasWeights {
		dst[2] = float64(len(s.unit.Rows(d)))
	}
	outers, total, moments := sums[:n], sums[n:][:k.labels], sums[n+k.labels:]
	dst[0], dst[1] = k.each(d, v, s, moments, func(b *blocks.Block, derivatives []float64) {
		for at := 0; at < len(derivatives); at += k.labels {
			num.Add64(total, derivatives[at:][:k.labels])
		}
		s.space.AddProductT(outers, b, derivatives, k.labels)
	})
}

// each computes the errors of a unit's rows, and returns the number of rows and the sum of their losses. It calls do,
// if not nil, with each block and the derivatives of its losses by its scores (rows×labels), and adds to moments. All
// sums and derivatives are weighted.
func (k *kernel) each(d *dataset.Data, v round.Vars, s *scratch, moments []float64,
	do func(b *blocks.Block, derivatives []float64)) (rows, loss float64) {
	weights, metric := maxent.Weights(v), metricOf(v)
	n := k.labels
	matrix, offsets := weights[:k.features*n], weights[k.features*n:]
	shard := func(i uint32) *dataset.Rows { return d.Shard(int(i)) }
	for refs := s.unit.Rows(d); len(refs) > 0; refs = refs[len(s.block.Refs):] {
		s.block = blocks.Next(refs, shard)
		b := &s.block
		values := s.values[:len(b.Refs)*n]
		for i := range b.Refs {
			copy(values[i*n:], offsets)
		}
		s.space.AddProduct(values, b, matrix, n)
		for i := range b.Refs {
			weight := b.Weight(i)
			rows += weight
			loss += s.row(values[i*n:][:n], b.Label(i), weight, metric)
			if len(moments) > 0 {
				addMoments(moments, s.errors, weight)
			}
		}
		if do != nil {
			do(b, values)
		}
	}
	return rows, loss
}

// row replaces the scores of a row by the derivatives of its loss, and returns the loss, both weighted. targets are
// from 0 to 1.
func (s *scratch) row(scores []float64, targets []float32, weight float64, metric []float64) (loss float64) {
	for c, f := range scores {
		scores[c] = tanh(f)
		s.errors[c] = scores[c] - (float64(2*float64(targets[c])) - 1)
	}
	weighed := s.errors
	if metric != nil {
		weighed = s.weighed
		for c := range weighed {
			weighed[c] = num.Dot64(metric[c*len(weighed):][:len(weighed)], s.errors)
		}
	}
	for c, g := range scores {
		loss += float64(s.errors[c] * weighed[c])
		scores[c] = weight * (float64(2*weighed[c]) * (1 - float64(g*g)))
	}
	return float64(weight * loss)
}

// metricOf returns Ω, nil for the identity.
func metricOf(v round.Vars) []float64 {
	for i := range v {
		if v[i].ID == varMetric {
			return num.Float64s(v[i].Data)
		}
	}
	return nil
}

// tanh returns the hyperbolic tangent of x; of NaN, NaN.
func tanh(x float64) float64 {
	if x < 0 {
		t := num.Exp(2 * x)
		return (t - 1) / (t + 1)
	}
	t := num.Exp(-2 * x)
	return (1 - t) / (1 + t)
}

// momentSums is the number of sums of the moments of errors: a 0, which is not a term of the loss, then Σ e, Σ ‖e‖²e,
// Σ ‖e‖⁴ and the lower triangle of Σ e eᵀ, row by row.
func momentSums(labels int) int { return 1 + 2*labels + 1 + labels*(labels+1)/2 }

// addMoments adds the errors of a row of a weight.
func addMoments(sums, e []float64, weight float64) {
	n := len(e)
	square := num.Dot64(e, e)
	first, third, products := sums[1:][:n], sums[1+n:][:n], sums[2+2*n:]
	num.AddScaled64(first, weight, e)
	num.AddScaled64(third, float64(weight*square), e)
	sums[1+2*n] += float64(weight * float64(square*square))
	for c, x := range e {
		num.AddScaled64(products[:c+1], float64(weight*x), e[:c+1])
		products = products[c+1:]
	}
}
