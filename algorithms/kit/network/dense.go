package network

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Dense is a layer each of whose outputs reads each input: y = Wᵀx + b. Its part of Θ is W
// (inputs×outputs, row-major), then b (outputs) where it has a bias.
type Dense struct {
	Name    string // of W's tensor
	Biases  string // of b's; "": there is no b
	From    Shape
	Outputs int
	Start   Start
}

// turned is a layer's W, transposed, of some version of Θ.
type turned struct {
	w       []float32 // outputs×inputs
	ready   bool
	version uint64
}

// Shapes implements Layer.
func (l *Dense) Shapes() (from, to Shape) { return l.From, Flat(l.Outputs) }

// Layout implements Layer.
func (l *Dense) Layout() []gradient.Layer {
	return weightsAndBiases(l.Name, l.Biases, l.Outputs, l.From.Size(), l.Outputs)
}

// weightsAndBiases lists a tensor of weights and, where it has a name, one of n biases.
func weightsAndBiases(weights, biases string, n int, dims ...int) []gradient.Layer {
	all := []gradient.Layer{{Name: weights, Dims: dims}}
	if biases != "" {
		all = append(all, gradient.Layer{Name: biases, Dims: []int{n}, Bias: true})
	}
	return all
}

// split returns W and b, which is empty where there is none.
func (l *Dense) split(theta []float32) (w, b []float32) {
	n := l.From.Size() * l.Outputs
	return theta[:n:n], theta[n:]
}

// Initialise implements Layer.
func (l *Dense) Initialise(theta []float32, key num.Key, n uint64) {
	w, _ := l.split(theta)
	l.Start.draw(w, l.Outputs, key, n)
}

// NewSpace implements Layer.
func (l *Dense) NewSpace(uint64, int) Space { return new(turned) }

// Forward implements Layer: of each output the bias, then the products by ascending input.
func (l *Dense) Forward(v *Values, _ *Pass, _ Space) {
	w, b := l.split(v.Theta)
	for from := 0; from < len(v.Y); from += l.Outputs {
		if row := v.Y[from : from+l.Outputs]; len(b) > 0 {
			copy(row, b)
		} else {
			clear(row)
		}
	}
	num.AddProduct(v.Y, v.X, w, l.From.Size(), l.Outputs)
}

// Backward implements Layer: sums of Θ by ascending row, DX by ascending output.
func (l *Dense) Backward(v *Values, p *Pass, s Space) {
	w, b := l.split(v.Sum)
	num.AddProductT(w, v.X, v.DY, len(v.DY)/l.Outputs, l.Outputs)
	for from := 0; len(b) > 0 && from < len(v.DY); from += l.Outputs {
		num.Add32(b, v.DY[from:from+l.Outputs])
	}
	if v.DX != nil {
		clear(v.DX)
		num.AddProduct(v.DX, v.DY, l.turn(v.Theta, p.Version, s.(*turned)), l.Outputs, l.From.Size())
	}
}

// turn returns W of a version, transposed.
func (l *Dense) turn(theta []float32, version uint64, t *turned) []float32 {
	if !t.ready || t.version != version {
		w, _ := l.split(theta)
		t.w = resize(t.w, len(w))
		num.Transpose32(t.w, l.From.Size(), w, l.Outputs, l.From.Size(), l.Outputs)
		t.ready, t.version = true, version
	}
	return t.w
}
