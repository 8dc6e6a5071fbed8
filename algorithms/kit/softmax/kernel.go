package softmax

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

var _ round.ReduceKernel = (*Kernel)(nil)

// Kernel is the workers' half of an algorithm: see round.ReduceKernel. It is shared by lanes.
type Kernel struct {
	gradient.Kernel
	Name string // of the algorithm
	// NewLoss makes the loss of one lane; nil: a Divergence.
	NewLoss func() gradient.Loss
}

// block is how many samples go through the function at once.
const block = 64

// scratch is the working memory of a lane.
type scratch struct {
	gradient.Scratch
	unit round.Task // in work
	loss gradient.Loss
}

// NewScratch implements round.Kernel.
func (k *Kernel) NewScratch() any {
	s := &scratch{Scratch: gradient.NewScratch(k.Function, k.Outputs, block)}
	if k.NewLoss != nil {
		s.loss = k.NewLoss()
	} else {
		s.loss = &Divergence{make([]float64, k.Outputs)}
	}
	return s
}

// Derive implements round.ReduceKernel.
func (k *Kernel) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return nil, nil
}

// Run implements round.ReduceKernel.
func (k *Kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, _ round.Derived, working any) error {
	s := working.(*scratch)
	s.unit = u
	if !k.Kernel.Run(dst, &s.unit, d, v, s.loss, &s.Scratch) {
		return fmt.Errorf("%s: the task has the unknown operation %d", k.Name, u.Op)
	}
	return nil
}
