package network

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Plan is what a network is made of.
type Plan struct {
	Sparse bool                 // rows are sparse
	Scaled bool                 // inputs are scaled
	Seed   uint64               // of the streams of dropout
	Given  map[string][]float32 // first values of tensors, by name; the others are drawn
	Layers []Layer              // from the first, which reads the row, to the last; two at least, the last one Dense
}

// Network is a feature function of several layers: see gradient.Function. Θ has the parameters of
// the layers, one after the other.
type Network struct {
	Plan
	rows   gradient.Function // takes rows as they are stored: the first layer where that is Dense
	first  Layer             // that layer; nil: rows has no parameters
	behind []Layer           // the other layers
	at     []int             // where the part of Θ of each of these begins, and where the last one's ends
	lowest int               // the first of these whose DX somebody asks for: parameters come before
}

// New returns the network of a plan.
func New(p Plan) *Network {
	f := &Network{Plan: p, behind: p.Layers}
	from, _ := p.Layers[0].Shapes()
	if d, ok := p.Layers[0].(*Dense); ok {
		f.first, f.behind = d, p.Layers[1:]
		f.rows = &gradient.Linear{
			Features: from.Size(), Outputs: d.Outputs, Bias: d.Biases != "", Sparse: p.Sparse, Scaled: p.Scaled,
		}
	} else {
		f.rows = stored(from.Size())
	}
	f.at = []int{gradient.Parameters(f.rows)}
	for i, l := range f.behind {
		if f.at[i] == 0 {
			f.lowest = i + 1
		}
		f.at = append(f.at, f.at[i]+parameters(l))
	}
	return f
}

// border returns where the parameters of the layers behind the first begin in Θ.
func (f *Network) border() int { return f.at[0] }

// Layout implements gradient.Function.
func (f *Network) Layout() []gradient.Layer { return layoutOf(f.Layers) }

// OutputsFrom implements gradient.Function: the last layer.
func (f *Network) OutputsFrom() (first, units int) {
	n := len(f.behind) - 1
	_, units = sizes(f.behind[n])
	return f.at[n], units
}

// Initialise implements gradient.Function: the layers with parameters count from 0. What is given
// replaces what was drawn, so that other layers are drawn as ever.
func (f *Network) Initialise(theta []float32, key num.Key) {
	clear(theta)
	n := uint64(0)
	for _, l := range f.Layers {
		if k := parameters(l); k > 0 {
			l.Initialise(theta[:k:k], key, n)
			for _, t := range l.Layout() {
				copy(theta[:t.Size()], f.Given[t.Name])
				theta = theta[t.Size():]
			}
			n++
		}
	}
}

// space is the working memory of a Network.
type space struct {
	rows   gradient.Workspace
	first  gradient.Weights // those of the first layer
	spaces []Space          // of the layers behind it
	values []Values         // of these
	pass   Pass
}

// NewWorkspace implements gradient.Function.
func (f *Network) NewWorkspace() gradient.Workspace {
	s := &space{rows: f.rows.NewWorkspace(), values: make([]Values, len(f.behind))}
	for i, l := range f.behind {
		s.spaces = append(s.spaces, l.NewSpace(f.Seed, len(f.Layers)-len(f.behind)+i))
	}
	return s
}

// firstWeights returns the weights of the first layer.
func (f *Network) firstWeights(w *gradient.Weights, s *space) *gradient.Weights {
	s.first = gradient.Weights{Theta: w.Theta[:f.border():f.border()], Version: w.Version, Input: w.Input}
	return &s.first
}

// laneValues is about how many values between layers, and derivatives by them, a lane keeps.
const laneValues = 1 << 21

// MostRows implements gradient.Limited.
func (f *Network) MostRows() int {
	values := 0
	for _, l := range f.Layers {
		_, outputs := sizes(l)
		values += 2 * outputs
	}
	return max(1, laneValues/values)
}

// Predict implements gradient.Function.
func (f *Network) Predict(dst []float32, samples []gradient.Sample, w *gradient.Weights, ws gradient.Workspace) {
	_, outputs := sizes(f.behind[len(f.behind)-1])
	for most := f.MostRows(); len(samples) > 0; {
		n := min(most, len(samples))
		f.forward(dst, w, Pass{Version: w.Version, Samples: samples[:n]}, ws.(*space))
		dst, samples = dst[n*outputs:], samples[n:]
	}
}

// Forward implements gradient.Function.
func (f *Network) Forward(dst []float32, samples []gradient.Sample, w *gradient.Weights, step uint64,
	ws gradient.Workspace) {
	f.forward(dst, w, Pass{Version: w.Version, Samples: samples, Training: true, Step: step}, ws.(*space))
}

func (f *Network) forward(dst []float32, w *gradient.Weights, p Pass, s *space) {
	s.pass = p
	rows := len(p.Samples)
	inputs, _ := sizes(f.behind[0])
	x := resize(s.values[0].X, rows*inputs)
	f.rows.Predict(x, p.Samples, f.firstWeights(w, s), s.rows)
	for i, l := range f.behind {
		v := &s.values[i]
		_, outputs := sizes(l)
		v.X, v.Theta = x, w.Theta[f.at[i]:f.at[i+1]]
		if i+1 < len(f.behind) {
			v.Y = resize(v.Y, rows*outputs)
		} else {
			v.Y = dst[:rows*outputs]
		}
		l.Forward(v, &s.pass, s.spaces[i])
		x = v.Y
	}
}

// GradientShape implements gradient.Function: the first layer's shape as Linear has it, and the
// sums of the others at the end of F32.
func (f *Network) GradientShape() round.Shape {
	shape := f.rows.GradientShape()
	shape.F32 += f.at[len(f.behind)] - f.border()
	return shape
}

// splitSum returns the parts of a sum's F32 of the first layer, which is empty where its sums
// are rows, and of the others.
func (f *Network) splitSum(sum *round.Partial) (first, others []float32) {
	n := len(sum.F32) - (f.at[len(f.behind)] - f.border())
	return sum.F32[:n:n], sum.F32[n:]
}

// Begin implements gradient.Function.
func (f *Network) Begin(dst *round.Partial, u *round.Task, samples []gradient.Sample, most int, ws gradient.Workspace) {
	f.rows.Begin(dst, u, samples, most, ws.(*space).rows)
}

// Backward implements gradient.Function.
func (f *Network) Backward(dst *round.Partial, df []float32, samples []gradient.Sample, w *gradient.Weights,
	ws gradient.Workspace) {
	s := ws.(*space)
	first, others := f.splitSum(dst)
	for i := len(f.behind) - 1; i >= 0 && f.at[i+1] > 0; i-- {
		v := &s.values[i]
		v.DY, v.Sum = df, others[f.at[i]-f.border():f.at[i+1]-f.border()]
		if i >= f.lowest {
			v.DX = resize(v.DX, len(v.X))
		}
		f.behind[i].Backward(v, &s.pass, s.spaces[i])
		df = v.DX
	}
	if f.first == nil {
		return
	}
	all := dst.F32
	dst.F32 = first
	f.rows.Backward(dst, df, samples, f.firstWeights(w, s), s.rows)
	dst.F32 = all
}

// GradientRows implements gradient.Function: the rows of the first layer, as Linear has them.
func (f *Network) GradientRows(x *scaling.Values) int { return f.rows.GradientRows(x) }

// Stride implements gradient.Function.
func (f *Network) Stride() int { return f.rows.Stride() }

// Gradient implements gradient.Function.
func (f *Network) Gradient(g []float32, from int, sum *round.Partial, factor float32, x *scaling.Values) {
	n := min(len(g), max(0, f.border()-from))
	if n > 0 {
		f.rows.Gradient(g[:n], from, sum, factor, x)
	}
	if rest := g[n:]; len(rest) > 0 {
		_, others := f.splitSum(sum)
		copy(rest, others[from+n-f.border():])
		num.Scale32(rest, factor)
	}
}

// stored is the feature function of a network that does not begin with a dense layer: the scaled
// features of a row, so many, dense or sparse. It has no parameters.
type stored int

// Layout implements gradient.Function.
func (f stored) Layout() []gradient.Layer { return nil }

// Initialise implements gradient.Function.
func (f stored) Initialise([]float32, num.Key) {}

// OutputsFrom implements gradient.Function.
func (f stored) OutputsFrom() (first, units int) { return 0, int(f) }

// NewWorkspace implements gradient.Function.
func (f stored) NewWorkspace() gradient.Workspace { return nil }

// Predict implements gradient.Function.
func (f stored) Predict(dst []float32, samples []gradient.Sample, w *gradient.Weights, _ gradient.Workspace) {
	n := int(f)
	for i := range samples {
		row := dst[i*n : (i+1)*n]
		if x := &samples[i]; x.Sparse {
			clear(row)
			for k, c := range x.Columns {
				row[c] = x.X[k]
			}
		} else {
			copy(row, x.X)
		}
		if !w.Input.None() {
			w.Input.Dense(row, row)
		}
	}
}

// Forward implements gradient.Function.
func (f stored) Forward(dst []float32, samples []gradient.Sample, w *gradient.Weights, _ uint64,
	ws gradient.Workspace) {
	f.Predict(dst, samples, w, ws)
}

// GradientShape implements gradient.Function.
func (f stored) GradientShape() round.Shape { return round.Shape{} }

// Begin implements gradient.Function.
func (f stored) Begin(*round.Partial, *round.Task, []gradient.Sample, int, gradient.Workspace) {}

// Backward implements gradient.Function.
func (f stored) Backward(*round.Partial, []float32, []gradient.Sample, *gradient.Weights, gradient.Workspace) {
}

// GradientRows implements gradient.Function.
func (f stored) GradientRows(*scaling.Values) int { return 0 }

// Stride implements gradient.Function.
func (f stored) Stride() int { return 1 }

// Gradient implements gradient.Function.
func (f stored) Gradient([]float32, int, *round.Partial, float32, *scaling.Values) {}
