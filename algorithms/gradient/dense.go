package gradient

import (
	"slices"

	"github.com/coppice-ldl/coppice/internal/num"
)

// dense is a layer of a network behind the first one: y = Wᵀx + b. Its part of Θ is W
// (inputs×outputs, row-major), then b (outputs) where there is one.
type dense struct {
	inputs, outputs int
	bias            bool
}

// turned is a layer's W, transposed, of some version of Θ.
type turned struct {
	w       []float32 // outputs×inputs
	ready   bool
	version uint64
}

// size returns the length of the layer's part of Θ.
func (l *dense) size() int {
	if l.bias {
		return (l.inputs + 1) * l.outputs
	}
	return l.inputs * l.outputs
}

// split returns W and b, which is empty where there is none.
func (l *dense) split(theta []float32) (w, b []float32) {
	n := l.inputs * l.outputs
	return theta[:n:n], theta[n:]
}

// forward sets dst (rows×outputs) to the layer's outputs of x (rows×inputs): of each, the bias,
// then the products by ascending input.
func (l *dense) forward(dst, x, theta []float32) {
	w, b := l.split(theta)
	for from := 0; from < len(dst); from += l.outputs {
		if row := dst[from : from+l.outputs]; l.bias {
			copy(row, b)
		} else {
			clear(row)
		}
	}
	num.AddProduct(dst, x, w, l.inputs, l.outputs)
}

// sum adds Σ x dy over the rows to g, the layer's part of a gradient: by ascending row.
func (l *dense) sum(g, x, dy []float32) {
	w, b := l.split(g)
	num.AddProductT(w, x, dy, len(dy)/l.outputs, l.outputs)
	for from := 0; l.bias && from < len(dy); from += l.outputs {
		num.Add32(b, dy[from:from+l.outputs])
	}
}

// backward sets dx (rows×inputs) to W dy, by ascending output.
func (l *dense) backward(dx, dy, theta []float32, version uint64, t *turned) {
	if !t.ready || t.version != version {
		w, _ := l.split(theta)
		t.w = slices.Grow(t.w[:0], len(w))[:len(w)]
		num.Transpose32(t.w, l.inputs, w, l.outputs, l.inputs, l.outputs)
		t.ready, t.version = true, version
	}
	clear(dx)
	num.AddProduct(dx, dy, t.w, l.outputs, l.inputs)
}
