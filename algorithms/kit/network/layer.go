package network

import (
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Layer is a layer of a network. It is stateless and shared by lanes; what it works in is its
// Space. No output depends on the rows beside its own, nor any sum on the size of blocks.
type Layer interface {
	// Shapes returns the shape of a row's values before the layer and behind it.
	Shapes() (from, to Shape)
	// Layout lists its tensors, in order; none where it has no parameters.
	Layout() []gradient.Layer
	// Initialise sets its first parameters, which are 0 before, from streams (key, n, i); n
	// tells apart the layers that have parameters.
	Initialise(theta []float32, key num.Key, n uint64)
	// NewSpace makes its working memory in one lane; it is layer number i of a network, which
	// draws from streams of a seed.
	NewSpace(seed uint64, i int) Space
	// Forward sets v.Y from v.X.
	Forward(v *Values, p *Pass, s Space)
	// Backward adds the derivatives of the loss by the layer's parameters to v.Sum, and sets
	// v.DX, unless it is nil, both from v.DY. Forward has just had these rows, with this Space.
	Backward(v *Values, p *Pass, s Space)
}

// Space is the working memory of a layer: its own type.
type Space any

// Values are what a layer reads and writes in a block of rows.
type Values struct {
	X, Y   []float32 // rows×inputs, rows×outputs
	DX, DY []float32 // derivatives of the loss by X and Y
	Theta  []float32 // the layer's parameters
	Sum    []float32 // derivatives of the loss by these, summed over rows
}

// Pass says what a block is taken through a network for.
type Pass struct {
	Version  uint64 // of Θ
	Training bool   // with dropout, whose streams count steps and Sample.Row
	Step     uint64
	Samples  []gradient.Sample // the rows of the block
}

// bare is embedded in layers without parameters.
type bare struct{}

// Layout implements Layer.
func (bare) Layout() []gradient.Layer { return nil }

// Initialise implements Layer.
func (bare) Initialise([]float32, num.Key, uint64) {}

// resize returns v with n values, whatever they are.
func resize[T any](v []T, n int) []T { return slices.Grow(v[:0], n)[:n] }

// sizes returns how many values of a row a layer reads and writes.
func sizes(l Layer) (inputs, outputs int) {
	from, to := l.Shapes()
	return from.Size(), to.Size()
}

// parameters returns the length of a layer's part of Θ.
func parameters(l Layer) (n int) {
	for _, t := range l.Layout() {
		n += t.Size()
	}
	return n
}
