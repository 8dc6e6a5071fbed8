package aabp

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/gradient"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/round"
)

var _ round.SumKernel = (*kernel)(nil)

// kernel is the worker's half: see round.SumKernel. It is shared by lanes.
type kernel struct {
	descent gradient.Kernel
	squared bool
}

func newKernel(c *Config, seed uint64, m *dataset.Manifest) *kernel {
	return &kernel{squared: c.Loss == lossSquared, descent: gradient.Kernel{
		Function: newFunction(c, seed, m), Outputs: m.Labels,
		Draws: gradient.Batches{Key: num.NewKey(seed, "aa-bp/batch"), Size: c.BatchSize},
	}}
}

// block is how many samples go through the network at once.
const block = 64

// scratch is the working memory of a lane.
type scratch struct {
	gradient.Scratch
	unit round.Unit // in work
	loss gradient.Loss
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any {
	p := make([]float64, k.descent.Outputs)
	s := &scratch{Scratch: gradient.NewScratch(k.descent.Function, k.descent.Outputs, block), loss: &divergence{p}}
	if k.squared {
		s.loss = &squaredError{p}
	}
	return s
}

// Derive implements round.SumKernel.
func (k *kernel) Derive(round.Unit, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return nil, nil
}

// Run implements round.SumKernel.
func (k *kernel) Run(dst *round.Partial, u round.Unit, d *dataset.Data, v round.Vars, _ round.Derived, working any) error {
	s := working.(*scratch)
	s.unit = u
	if !k.descent.Run(dst, &s.unit, d, v, s.loss, &s.Scratch) {
		return fmt.Errorf("%s: operation %d is unknown", Name, u.Op)
	}
	return nil
}
