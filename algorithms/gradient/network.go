package gradient

import (
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/scaling"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/round"
)

// Start is the law of a network's first weights. Biases begin at 0.
type Start uint8

// The laws of a layer with n inputs and m outputs.
const (
	Glorot Start = iota // uniform within ±sqrt(6/(n+m)) (Glorot and Bengio 2010)
	He                  // normal with the variance 2/n (He et al. 2015)
)

// maxHidden bounds the units of a hidden layer that is read from a model.
const maxHidden = 1 << 20

// Network is a feature function with a hidden layer: f(x; Θ) = W₂ᵀ a(W₁ᵀx + b₁) + b₂, where a
// is the activation of the hidden units. Θ is W₁ (features×hidden), b₁, W₂ (hidden×outputs), b₂,
// each row-major; without Options.Bias there is neither b₁ nor b₂.
type Network struct {
	Options
	activation activation
	first      Linear // W₁ and b₁: what depends on how rows are stored
	last       dense  // W₂ and b₂
}

func newNetwork(o Options, a activation) Function {
	first := o
	first.Outputs = o.Hidden
	return &Network{Options: o, activation: a, first: Linear{first}, last: dense{o.Hidden, o.Outputs, o.Bias}}
}

func newReLU(o Options) Function     { return newNetwork(o, relu{}) }
func newLogistic(o Options) Function { return newNetwork(o, logistic{}) }

func decodeReLU(o Options, tensors []algorithms.Tensor) Function {
	return decodeNetwork(o, relu{}, tensors)
}

func decodeLogistic(o Options, tensors []algorithms.Tensor) Function {
	return decodeNetwork(o, logistic{}, tensors)
}

// decodeNetwork returns nil where the first tensor is not the W₁ of a network with activation a.
func decodeNetwork(o Options, a activation, tensors []algorithms.Tensor) Function {
	if len(tensors) == 0 || tensors[0].Name != a.tensor() || len(tensors[0].Dims) != 2 {
		return nil
	}
	if o.Hidden = tensors[0].Dims[1]; o.Hidden < 1 || o.Hidden > maxHidden {
		return nil
	}
	return newNetwork(o, a)
}

// Layout implements Function.
func (f *Network) Layout() []Layer {
	layers := []Layer{{Name: f.activation.tensor(), Dims: []int{f.Features, f.Hidden}}}
	if f.Bias {
		layers = append(layers, Layer{"hidden.bias", []int{f.Hidden}, true})
	}
	layers = append(layers, Layer{Name: "output", Dims: []int{f.Hidden, f.Outputs}})
	if f.Bias {
		layers = append(layers, Layer{"output.bias", []int{f.Outputs}, true})
	}
	return layers
}

// border returns where W₂ begins in Θ.
func (f *Network) border() int { return f.first.rows() * f.Hidden }

// split returns the parts of Θ, or of a gradient, that belong to the layers.
func (f *Network) split(theta []float32) (first, last []float32) {
	n := f.border()
	return theta[:n:n], theta[n:]
}

// Initialise implements Function: it draws row i of the weights of layer l, counted from 0,
// from stream (key, l, i).
func (f *Network) Initialise(theta []float32, key num.Key) {
	clear(theta)
	first, last := f.split(theta)
	f.draw(first[:f.Features*f.Hidden], f.Hidden, key, 0)
	f.draw(last[:f.Hidden*f.Outputs], f.Outputs, key, 1)
}

// draw fills the weights of a layer.
func (f *Network) draw(w []float32, outputs int, key num.Key, layer uint64) {
	inputs := len(w) / outputs
	bound, deviation := math.Sqrt(6/float64(inputs+outputs)), math.Sqrt(2/float64(inputs))
	for i := range inputs {
		s := num.NewStream(key, layer, uint32(i))
		row := w[i*outputs : (i+1)*outputs]
		for j := range row {
			if f.Start == He {
				row[j] = float32(deviation * s.Normal())
			} else {
				row[j] = float32(bound * (2*s.Float64() - 1))
			}
		}
	}
}

// networkSpace is the working memory of Network.
type networkSpace struct {
	first   Workspace
	weights Weights // those of the first layer
	hidden  []float32
	slope   []float32 // the activation's derivatives at hidden
	back    []float32 // derivatives of the loss by the hidden layer's sums
	turned  turned
}

// NewWorkspace implements Function.
func (f *Network) NewWorkspace() Workspace { return &networkSpace{first: f.first.NewWorkspace()} }

// firstWeights returns the weights of the first layer.
func (f *Network) firstWeights(w *Weights, s *networkSpace) *Weights {
	theta, _ := f.split(w.Theta)
	s.weights = Weights{Theta: theta, Version: w.Version, Input: w.Input}
	return &s.weights
}

// Forward implements Function.
func (f *Network) Forward(dst []float32, samples []Sample, w *Weights, _ uint64, ws Workspace) {
	f.Predict(dst, samples, w, ws)
}

// Predict implements Function.
func (f *Network) Predict(dst []float32, samples []Sample, w *Weights, ws Workspace) {
	s := ws.(*networkSpace)
	n := len(samples) * f.Hidden
	s.hidden, s.slope = slices.Grow(s.hidden[:0], n)[:n], slices.Grow(s.slope[:0], n)[:n]
	f.first.Predict(s.hidden, samples, f.firstWeights(w, s), s.first)
	f.activation.apply(s.hidden, s.slope)
	_, last := f.split(w.Theta)
	f.last.forward(dst[:len(samples)*f.Outputs], s.hidden, last)
}

// GradientShape implements Function: the first layer's shape as Linear has it, and W₂ and b₂
// at the end of F32.
func (f *Network) GradientShape() round.Shape {
	shape := f.first.GradientShape()
	shape.F32 += f.last.size()
	return shape
}

// splitSum returns the parts of a sum's F32 that belong to the layers; the first one's is empty
// where its sums are rows.
func (f *Network) splitSum(sum *round.Partial) (first, last []float32) {
	n := len(sum.F32) - f.last.size()
	return sum.F32[:n:n], sum.F32[n:]
}

// Begin implements Function.
func (f *Network) Begin(dst *round.Partial, u *round.Unit, samples []Sample, most int, ws Workspace) {
	f.first.Begin(dst, u, samples, most, ws.(*networkSpace).first)
}

// Backward implements Function.
func (f *Network) Backward(dst *round.Partial, df []float32, samples []Sample, w *Weights, ws Workspace) {
	s := ws.(*networkSpace)
	_, theta := f.split(w.Theta)
	first, last := f.splitSum(dst)
	f.last.sum(last, s.hidden, df)
	s.back = slices.Grow(s.back[:0], len(s.hidden))[:len(s.hidden)]
	f.last.backward(s.back, df, theta, w.Version, &s.turned)
	num.Mul32(s.back, s.slope)
	all := dst.F32
	dst.F32 = first
	f.first.Backward(dst, s.back, samples, f.firstWeights(w, s), s.first)
	dst.F32 = all
}

// GradientRows implements Function: the rows of W₁, as Linear has them.
func (f *Network) GradientRows(x *scaling.Values) int { return f.first.GradientRows(x) }

// Stride implements Function.
func (f *Network) Stride() int { return f.first.Stride() }

// Gradient implements Function.
func (f *Network) Gradient(g []float32, from int, sum *round.Partial, factor float32, x *scaling.Values) {
	n := min(len(g), max(0, f.border()-from))
	if n > 0 {
		f.first.Gradient(g[:n], from, sum, factor, x)
	}
	if rest := g[n:]; len(rest) > 0 {
		_, last := f.splitSum(sum)
		copy(rest, last[from+n-f.border():])
		num.Scale32(rest, factor)
	}
}
