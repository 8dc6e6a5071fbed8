// Package gradienttest holds feature functions against what gradient.Function promises. The test of
// a function calls Check.
package gradienttest

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Options say which rows a function is shown.
type Options struct {
	Features, Outputs int
	Sparse, Scaled    bool
}

// Check fails t for what is wrong with f. again makes f of a model's tensors.
func Check(t *testing.T, f gradient.Function, o Options, again func([]algorithms.Tensor) gradient.Function) {
	t.Helper()
	c := newFunctionCase(f, o)
	c.checkGradient(t)
	c.checkParts(t)
	c.checkStorage(t)
	c.checkTensors(t, again)
}

// functionCase is a function with first parameters, and rows to look at.
type functionCase struct {
	f gradient.Function
	Options
	w       gradient.Weights
	samples []gradient.Sample
	df      []float32 // of a loss that is Σ df·f: linear in the outputs
}

func newFunctionCase(f gradient.Function, o Options) *functionCase {
	const rows, seed = 9, 3
	c := &functionCase{f: f, Options: o, df: make([]float32, rows*o.Outputs)}
	c.w.Theta = make([]float32, gradient.Parameters(c.f))
	c.f.Initialise(c.w.Theta, num.NewKey(seed, "test/theta"))
	s := num.NewStream(num.NewKey(seed, "test"), 0, 0)
	for i := range c.df {
		c.df[i] = float32(s.Normal())
	}
	if o.Scaled {
		c.w.Input = scaling.Of(make([]float64, 2*o.Features))
		for i := range c.w.Input.Shift {
			c.w.Input.Shift[i], c.w.Input.Scale[i] = s.Normal(), 0.5+s.Float64()
		}
	}
	for row := range uint32(rows) {
		x := gradient.Sample{Row: row, Sparse: o.Sparse}
		for j := range uint32(o.Features) {
			v := float32(0)
			if s.Float64() < 0.6 {
				v = float32(s.Normal())
			}
			if !o.Sparse || v != 0 {
				x.X = append(x.X, v)
			}
			if o.Sparse && v != 0 {
				x.Columns = append(x.Columns, j)
			}
		}
		c.samples = append(c.samples, x)
	}
	return c
}

// loss is Σ df·f of mini-batch 4, with f as Forward gives it, in a workspace of its own.
func (c *functionCase) loss() (sum float64) {
	c.w.Version++ // Θ may be another
	f := make([]float32, len(c.df))
	c.f.Forward(f, c.samples, &c.w, 4, c.f.NewWorkspace())
	for i, x := range f {
		sum += float64(x) * float64(c.df[i])
	}
	return sum
}

// partial is what Begin, Forward and Backward make of the samples, in blocks of so many.
func (c *functionCase) partial(block int) *round.Partial {
	shape := c.f.GradientShape()
	shape.F64 += gradient.GradientAt
	p, ws, f := new(round.Partial), c.f.NewWorkspace(), make([]float32, len(c.df))
	p.Reset(shape)
	c.f.Begin(p, new(round.Task), c.samples, block, ws)
	for from := 0; from < len(c.samples); from += block {
		part := c.samples[from:min(from+block, len(c.samples))]
		c.f.Forward(f[:len(part)*c.Outputs], part, &c.w, 4, ws)
		c.f.Backward(p, c.df[from*c.Outputs:][:len(part)*c.Outputs], part, &c.w, ws)
	}
	return p
}

// gradient is the whole gradient that p holds, in parts of so many strides, twice over.
func (c *functionCase) gradient(p *round.Partial, strides int) []float32 {
	g := make([]float32, len(c.w.Theta))
	n := strides * c.f.Stride()
	for from := 0; from < len(g); from += n {
		c.f.Gradient(g[from:min(from+n, len(g))], from, p, 2, &c.w.Input)
	}
	return g
}

// difference is the derivative of the loss by parameter i, by differences at four points h
// apart, in float64. It errs by terms of h⁴ and by the outputs' rounding over h.
func (c *functionCase) difference(i int, h float32) float64 {
	x := c.w.Theta[i]
	at := func(steps float32) float64 {
		c.w.Theta[i] = x + steps*h
		defer func() { c.w.Theta[i] = x }()
		return c.loss()
	}
	width := float64((x+h)-x) - float64((x-h)-x)
	return (8*(at(1)-at(-1)) - (at(2) - at(-2))) / (6 * width)
}

// checkGradient holds Backward and Gradient against differences of Forward. Where differences
// of two widths disagree there is a kink between them, as a rectifier has: few may.
func (c *functionCase) checkGradient(t *testing.T) {
	t.Helper()
	g := c.gradient(c.partial(len(c.samples)), len(c.w.Theta))
	size, kinks := 0.0, 0
	for _, x := range g {
		size = max(size, math.Abs(float64(x)))
	}
	for i, x := range g {
		wide, narrow := 2*c.difference(i, 1./64), 2*c.difference(i, 1./128)
		if math.Abs(wide-narrow) > 1e-4*size {
			kinks++
			continue
		}
		if e := math.Abs(float64(x)-narrow) / size; !(e <= 1e-4) {
			t.Fatalf("parameter %d: gradient %v, by differences %v: %.2g of the largest", i, x, narrow, e)
		}
	}
	if kinks > len(g)/5 || size == 0 {
		t.Errorf("%d kinks among %d parameters, largest gradient %v", kinks, len(g), size)
	}
}

// checkParts: the gradient does not depend on the parts that it is asked for, nor, but for
// rounding, on the size of blocks; GradientRows tells the truth.
func (c *functionCase) checkParts(t *testing.T) {
	t.Helper()
	p := c.partial(len(c.samples))
	whole, parts := c.gradient(p, len(c.w.Theta)), c.gradient(p, 1)
	if at := firstOther(parts, whole); at >= 0 {
		t.Errorf("parameter %d: gradient %v in parts, %v in one", at, parts[at], whole[at])
	}
	blocks := c.gradient(c.partial(2), 3)
	for i, x := range blocks {
		if math.Abs(float64(x-whole[i])) > 1e-4 {
			t.Errorf("parameter %d: gradient %v in blocks of two rows, %v in one", i, x, whole[i])
		}
	}
	n := c.f.GradientRows(&c.w.Input)
	rows := make([]float32, n)
	for i, row := range p.Index {
		if at := int(row) * p.Width; at < n {
			for j, v := range p.Values[i*p.Width : (i+1)*p.Width] {
				rows[at+j] = 2 * v
			}
		}
	}
	if at := firstOther(rows, whole[:n]); at >= 0 {
		t.Errorf("parameter %d: gradient %v in rows, %v in all", at, rows[at], whole[at])
	}
}

// checkStorage: a row predicts the same whether it is dense or sparse, alone or among others.
func (c *functionCase) checkStorage(t *testing.T) {
	t.Helper()
	f, one, ws := make([]float32, len(c.df)), make([]float32, c.Outputs), c.f.NewWorkspace()
	c.f.Predict(f, c.samples, &c.w, ws)
	for i, x := range c.samples {
		other := gradient.Sample{Row: x.Row, Sparse: !x.Sparse}
		if x.Sparse {
			other.X = make([]float32, c.Features)
			for k, column := range x.Columns {
				other.X[column] = x.X[k]
			}
		} else {
			for column, v := range x.X {
				other.X, other.Columns = append(other.X, v), append(other.Columns, uint32(column))
			}
		}
		for name, x := range map[string]gradient.Sample{"alone": x, "in the other storage": other} {
			c.f.Predict(one, []gradient.Sample{x}, &c.w, ws)
			for j, y := range one {
				if want := f[i*c.Outputs+j]; math.Abs(float64(y-want)) > 1e-5 || name == "alone" && y != want {
					t.Errorf("row %d %s: output %d is %v, want %v", i, name, j, y, want)
				}
			}
		}
	}
}

// checkTensors: a model's tensors are those of the function, and make it again.
func (c *functionCase) checkTensors(t *testing.T, decode func([]algorithms.Tensor) gradient.Function) {
	t.Helper()
	tensors := learner.ListTensors(func(l *learner.Tensors) { gradient.Tensors(l, c.f, &c.w.Theta) })
	again := decode(tensors)
	var theta []float32
	if err := learner.ReadTensors(tensors, func(l *learner.Tensors) { gradient.Tensors(l, again, &theta) }); err != nil {
		t.Error(err)
	}
	if at := firstOther(theta, c.w.Theta); at >= 0 || len(theta) != gradient.Parameters(again) {
		t.Errorf("parameter %d of %d is another after decoding", at, len(theta))
	}
	a, b := make([]float32, len(c.df)), make([]float32, len(c.df))
	c.f.Predict(a, c.samples, &c.w, c.f.NewWorkspace())
	again.Predict(b, c.samples, &c.w, again.NewWorkspace())
	if at := firstOther(a, b); at >= 0 {
		t.Errorf("output %d of the decoded function is %v, want %v", at, b[at], a[at])
	}
}

// firstOther returns where two vectors differ first, or -1.
func firstOther(a, b []float32) int {
	for i, x := range a {
		if x != b[i] {
			return i
		}
	}
	return -1
}
