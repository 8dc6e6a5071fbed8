package ldlf

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/engine/round"
)

// scratch is the working memory of one lane of a kernel or one caller of Predict.
type scratch struct {
	gradient.Scratch
	loss   forestLoss
	unit   round.Task // what is being run
	window gradient.Window

	s, t   []float32 // outputs: σ(f), σ(-f)
	node   []float32 // nodes of one tree
	mass   []float32 // the same
	g, r   []float32 // labels
	terms  []float64 // labels
	block  rowBlock
	leaves leafSpace

	qT        []float32 // trees×labels×leaves, of version qTVersion, where few rows are a unit's; nil: none yet
	qTVersion uint64
}

func newScratch(z *sizes, f gradient.Function) *scratch {
	a := newRowBlock(z)
	return &scratch{
		Scratch: gradient.NewScratch(f, z.outputs, a.width),
		s:       make([]float32, z.outputs), t: make([]float32, z.outputs),
		node: make([]float32, z.nodes()), mass: make([]float32, z.nodes()),
		g: make([]float32, z.labels), r: make([]float32, z.labels), terms: make([]float64, z.labels),
		block: a,
	}
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any {
	s := newScratch(&k.sizes, k.descent.Function)
	s.loss = forestLoss{k, s}
	return s
}
