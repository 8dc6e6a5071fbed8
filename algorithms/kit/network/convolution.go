package network

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Convolution is a layer whose outputs at each position read a window of Size×Size positions of
// every channel: y[o,p] = b[o] + Σ_t W[t,o] x[t,p], where t counts (channel, row, column) of the
// window. Windows begin Padding positions outside the image, where values are 0, and are Stride
// positions apart. Its part of Θ is W (t×outputs, row-major), then b (outputs) where it has a
// bias.
type Convolution struct {
	Name, Biases          string // of W's tensor, of b's; Biases "": there is no b
	From                  Shape
	Outputs               int // channels behind it
	Size, Stride, Padding int
	Start                 Start
}

// convolutionSpace is the working memory of a Convolution.
type convolutionSpace struct {
	columns []float32 // t×positions: what each output position of one row reads
	turned  []float32 // positions×outputs: DY of one row, transposed
	ones    []float32 // positions
}

// Shapes implements Layer.
func (l *Convolution) Shapes() (from, to Shape) {
	side := func(n int) int { return max(0, n+2*l.Padding-l.Size)/l.Stride + 1 }
	return l.From, Shape{l.Outputs, side(l.From.Height), side(l.From.Width)}
}

// reads returns how many values an output reads.
func (l *Convolution) reads() int { return l.From.Channels * l.Size * l.Size }

// Layout implements Layer.
func (l *Convolution) Layout() []gradient.Layer {
	return weightsAndBiases(l.Name, l.Biases, l.Outputs, l.From.Channels, l.Size, l.Size, l.Outputs)
}

// split returns W and b, which is empty where there is none.
func (l *Convolution) split(theta []float32) (w, b []float32) {
	n := l.reads() * l.Outputs
	return theta[:n:n], theta[n:]
}

// Initialise implements Layer.
func (l *Convolution) Initialise(theta []float32, key num.Key, n uint64) {
	w, _ := l.split(theta)
	l.Start.draw(w, l.Outputs, key, n)
}

// NewSpace implements Layer.
func (l *Convolution) NewSpace(uint64, int) Space {
	_, to := l.Shapes()
	s := &convolutionSpace{
		columns: make([]float32, l.reads()*to.Area()), turned: make([]float32, to.Size()), ones: make([]float32, to.Area()),
	}
	for i := range s.ones {
		s.ones[i] = 1
	}
	return s
}

// Forward implements Layer: of each output the bias, then the products by ascending t.
func (l *Convolution) Forward(v *Values, _ *Pass, ws Space) {
	s, w := ws.(*convolutionSpace), l.window()
	weights, b := l.split(v.Theta)
	n, m, area := l.From.Size(), w.to.Size(), w.to.Area()
	for i := range len(v.X) / n {
		y := v.Y[i*m : (i+1)*m]
		clear(y)
		for o, bias := range b {
			fill(y[o*area:(o+1)*area], bias)
		}
		w.gather(s.columns, v.X[i*n:(i+1)*n])
		num.AddProductT(y, weights, s.columns, l.reads(), area)
	}
}

func fill(v []float32, x float32) {
	for i := range v {
		v[i] = x
	}
}

// Backward implements Layer: sums of Θ by ascending row and position; DX by ascending output, then
// by ascending t.
func (l *Convolution) Backward(v *Values, _ *Pass, ws Space) {
	s, w := ws.(*convolutionSpace), l.window()
	weights, _ := l.split(v.Theta)
	sum, b := l.split(v.Sum)
	n, m, area := l.From.Size(), w.to.Size(), w.to.Area()
	for i := range len(v.X) / n {
		dy := v.DY[i*m : (i+1)*m]
		num.Transpose32(s.turned, l.Outputs, dy, area, l.Outputs, area)
		w.gather(s.columns, v.X[i*n:(i+1)*n])
		num.AddProduct(sum, s.columns, s.turned, area, l.Outputs)
		if len(b) > 0 {
			num.AddProduct(b, s.ones, s.turned, area, l.Outputs)
		}
		if v.DX != nil {
			clear(s.columns)
			num.AddProduct(s.columns, weights, dy, l.Outputs, area)
			w.scatter(v.DX[i*n:(i+1)*n], s.columns)
		}
	}
}
