package ldlf

import "github.com/coppice-ldl/coppice/algorithms"

// block is the number of rows whose outputs are computed at once. It changes no
// bits.
const block = 64

// scratch is the working memory of one lane of a kernel or one caller of Predict.
type scratch struct {
	unit   algorithms.Unit // what is being run
	values values
	rows   []uint32 // positions among a unit's rows
	weight []float32
	counts []uint32
	losses []float64 // of the unit's validation rows
	batch  []sample

	f, df      []float32 // block×outputs
	s, t       []float32 // outputs: σ(f), σ(-f)
	node       []float32 // nodes of one tree
	p          []float32 // trees×leaves, of one row
	g, r       []float32 // labels
	abreast    abreast

	qT        []float32 // trees×labels×leaves, of version qTVersion; nil: none yet
	qTVersion uint64

	ws workspace
}

func newScratch(z *sizes, f featureFunction) *scratch {
	return &scratch{
		f: make([]float32, block*z.outputs), df: make([]float32, block*z.outputs),
		s: make([]float32, z.outputs), t: make([]float32, z.outputs),
		node: make([]float32, z.nodes()),
		p: make([]float32, z.trees*z.leaves),
		g: make([]float32, z.labels), r: make([]float32, z.labels),
		abreast: newAbreast(z),
		ws: f.workspace(),
	}
}

// NewScratch implements algorithms.Kernel.
func (k *kernel) NewScratch() any { return newScratch(&k.sizes, k.f) }
