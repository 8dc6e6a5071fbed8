package cpnn

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/blocks"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

var _ round.ReduceKernel = (*kernel)(nil)

// kernel is the worker's half: see round.ReduceKernel. It is shared by lanes.
type kernel struct{ sizes }

// scratch is the working memory of a lane.
type scratch struct {
	space
	unit    round.Task // in work
	block   blocks.Block
	own     []float64 // labels×hidden: derivatives by what a label adds to the hidden sums
	deltas  []float64 // MaxRows×hidden: derivatives by W₁x
	errors  []float64 // hidden: derivatives by the hidden sums of a row and a label
	scaling scaling.Scratch
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any {
	return &scratch{space: newSpace(k.sizes), own: make([]float64, k.labels*k.hidden),
		deltas: make([]float64, blocks.MaxRows*k.hidden), errors: make([]float64, k.hidden)}
}

// Derive implements round.ReduceKernel.
func (k *kernel) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return nil, nil
}

// Run implements round.ReduceKernel.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, _ round.Derived,
	working any) error {
	s := working.(*scratch)
	s.unit = u
	if scaling.Run(dst, &s.unit, d, v, &s.scaling) {
		return nil
	}
	if u.Op != fullbatch.OpEvaluate && u.Op != gradient.OpValidate {
		return fmt.Errorf("%s: the task has the unknown operation %d", Name, u.Op)
	}
	w := k.split(num.Float64s(v.Get(varWeights)))
	s.begin(&w)
	if u.Op == gradient.OpValidate {
		s.validate(dst, d, &w)
		return nil
	}
	s.evaluate(dst, d, &w)
	return nil
}

// validate sums the unit's rows: F64 holds their number and their K-L divergences, both weighted.
func (s *scratch) validate(dst *round.Partial, d *dataset.Data, w *weights) {
	s.eachBlock(d, w, func(b *blocks.Block) {
		for i := range b.Refs {
			s.score(i, w.output)
			kl, _ := s.loss(b.Label(i))
			weight := b.Weight(i)
			dst.F64[0] += weight
			dst.F64[1] += float64(weight * kl)
		}
	})
}

// evaluate sums the unit's rows: F64 holds what fullbatch.OpEvaluate says, and the gradient by the effective weights.
func (s *scratch) evaluate(dst *round.Partial, d *dataset.Data, w *weights) {
	g := s.split(dst.F64[fullbatch.SumsAt:])
	clear(s.own)
	if d.Manifest.HasWeights {
		dst.F64[2] = float64(len(s.unit.Rows(d)))
	}
	s.eachBlock(d, w, func(b *blocks.Block) {
		deltas := s.deltas[:len(b.Refs)*s.hidden]
		clear(deltas)
		for i := range b.Refs {
			s.score(i, w.output)
			label, weight := b.Label(i), b.Weight(i)
			kl, mass := s.loss(label)
			dst.F64[0] += weight
			dst.F64[1] += float64(weight * kl)
			s.back(deltas[i*s.hidden:][:s.hidden], g.output, label, weight, mass, w.output)
		}
		s.multiply.AddProductT(g.features, b, deltas, s.hidden)
	})
	s.spread(&g)
}

// back adds the derivatives of the row that score and loss have just had: by W₁x to delta, by w₂
// to output, and by what each label adds to s.own.
func (s *scratch) back(delta, output []float64, label []float32, weight, mass float64, w2 []float64) {
	for c, p := range s.scores {
		r := weight * (float64(mass*p) - float64(label[c]))
		h := s.units[c*s.hidden:][:s.hidden]
		num.AddScaled64(output, r, h)
		for j, x := range h {
			s.errors[j] = r * w2[j] * (x * (1 - x))
		}
		num.Add64(delta, s.errors)
		num.Add64(s.own[c*s.hidden:][:s.hidden], s.errors)
	}
}

// spread adds s.own to the gradients by the label's inputs and by b₁.
func (s *scratch) spread(g *weights) {
	for c := range s.sizes.labels {
		own, to, factor := s.own[c*s.hidden:][:s.hidden], g.labels, s.numberOf(c)
		if !s.number {
			to, factor = g.labels[c*s.hidden:][:s.hidden], 1
		}
		for j, e := range own {
			to[j] += float64(factor * e)
			g.bias[j] += e
		}
	}
}

// eachBlock calls do with the unit's rows, some of one shard at a time, once W₁x is known.
func (s *scratch) eachBlock(d *dataset.Data, w *weights, do func(*blocks.Block)) {
	shard := func(i uint32) *dataset.Rows { return d.Shard(int(i)) }
	for refs := s.unit.Rows(d); len(refs) > 0; {
		s.block = blocks.Next(refs, shard)
		s.share(&s.block, w.features)
		do(&s.block)
		refs = refs[len(s.block.Refs):]
	}
}
