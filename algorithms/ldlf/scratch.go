package ldlf

import "github.com/coppice-ldl/coppice/round"

// scratch is the working memory of one lane of a kernel or one caller of Predict.
type scratch struct {
	unit   round.Unit // what is being run
	values values
	rows   []uint32 // positions among a unit's rows
	weight []float32
	counts []uint32
	losses []float64 // of the rows drawn for a step, or of the unit's validation rows
	batch  []sample

	f, df  []float32 // block.width×outputs
	s, t   []float32 // outputs: σ(f), σ(-f)
	node   []float32 // nodes of one tree
	mass   []float32 // the same
	g, r   []float32 // labels
	terms  []float64 // labels
	block  rowBlock
	leaves leafSpace

	qT        []float32 // trees×labels×leaves, of version qTVersion, where few rows are a unit's; nil: none yet
	qTVersion uint64

	ws workspace
}

func newScratch(z *sizes, f featureFunction) *scratch {
	a := newRowBlock(z)
	return &scratch{
		f: make([]float32, a.width*z.outputs), df: make([]float32, a.width*z.outputs),
		s: make([]float32, z.outputs), t: make([]float32, z.outputs),
		node: make([]float32, z.nodes()), mass: make([]float32, z.nodes()),
		g: make([]float32, z.labels), r: make([]float32, z.labels), terms: make([]float64, z.labels),
		block: a,
		ws:    f.workspace(),
	}
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any { return newScratch(&k.sizes, k.f) }
