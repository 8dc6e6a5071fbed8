package network

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/num"
)

// layerCase is a layer with random parameters and rows, and its twin: the layer in float64, of
// one row, written from its equation.
type layerCase struct {
	name string
	l    Layer
	twin func(x, theta []float64, row uint32) []float64
}

// cases have each kind of layer, and what borders of images make of them.
func cases() []layerCase {
	image, flat := Shape{2, 5, 6}, Flat(7)
	list := []layerCase{
		{"dense", &Dense{Name: "w", Biases: "b", From: flat, Outputs: 5}, nil},
		{"dense without biases", &Dense{Name: "w", From: image, Outputs: 3}, nil},
		{"ReLU", &ReLU{Of: flat}, nil},
		{"logistic", &Logistic{Of: flat}, nil},
		{"dropout", &Dropout{Of: Flat(9), Rate: 0.4}, nil},
		{"norm", &Norm{Name: "w", Of: flat}, nil},
		{"norm of an image", &Norm{Name: "w", Of: image}, nil},
		{"max pooling", &Pool{Of: image, Size: 2}, nil},
		{"average pooling", &Pool{Of: image, Size: 3, Average: true}, nil},
	}
	for _, c := range []struct{ size, stride, padding int }{{3, 1, 1}, {3, 1, 0}, {2, 2, 0}, {3, 2, 1}, {5, 3, 4},
		{1, 1, 0}, {4, 1, 3}} {
		l := &Convolution{Name: "w", Biases: "b", From: image, Outputs: 3, Size: c.size, Stride: c.stride, Padding: c.padding}
		list = append(list, layerCase{fmt.Sprintf("convolution %+v", c), l, nil})
	}
	list = append(list, layerCase{"convolution without biases", &Convolution{Name: "w", From: image, Outputs: 20, Size: 3,
		Stride: 1, Padding: 1}, nil})
	for i := range list {
		list[i].twin = twinOf(list[i].l)
	}
	return list
}

// twinOf returns the twin of a layer.
func twinOf(l Layer) func(x, theta []float64, row uint32) []float64 {
	switch l := l.(type) {
	case *Dense:
		return func(x, theta []float64, _ uint32) []float64 { return twinDense(l, x, theta) }
	case *Convolution:
		return func(x, theta []float64, _ uint32) []float64 { return twinConvolution(l, x, theta) }
	case *ReLU:
		return func(x, _ []float64, _ uint32) []float64 {
			return each(x, func(v float64) float64 { return math.Max(0, v) })
		}
	case *Logistic:
		return func(x, _ []float64, _ uint32) []float64 {
			return each(x, func(v float64) float64 { return 1 / (1 + math.Exp(-v)) })
		}
	case *Pool:
		return func(x, _ []float64, _ uint32) []float64 { return twinPool(l, x) }
	case *Norm:
		return func(x, theta []float64, _ uint32) []float64 { return twinNorm(l, x, theta) }
	case *Dropout:
		return func(x, _ []float64, row uint32) []float64 { return twinDropout(l, x, row) }
	}
	panic("no twin")
}

func each(x []float64, f func(float64) float64) (y []float64) {
	for _, v := range x {
		y = append(y, f(v))
	}
	return y
}

func twinDense(l *Dense, x, theta []float64) []float64 {
	y := make([]float64, l.Outputs)
	for j := range y {
		if l.Biases != "" {
			y[j] = theta[len(x)*l.Outputs+j]
		}
		for i, v := range x {
			y[j] += v * theta[i*l.Outputs+j]
		}
	}
	return y
}

func twinConvolution(l *Convolution, x, theta []float64) (y []float64) {
	height, width := (l.From.Height+2*l.Padding-l.Size)/l.Stride+1, (l.From.Width+2*l.Padding-l.Size)/l.Stride+1
	for o := range l.Outputs {
		for i := range height {
			for j := range width {
				sum := 0.0
				if l.Biases != "" {
					sum = theta[l.From.Channels*l.Size*l.Size*l.Outputs+o]
				}
				for c := range l.From.Channels {
					for a := range l.Size {
						for b := range l.Size {
							r, s := i*l.Stride+a-l.Padding, j*l.Stride+b-l.Padding
							if r >= 0 && r < l.From.Height && s >= 0 && s < l.From.Width {
								sum += x[(c*l.From.Height+r)*l.From.Width+s] * theta[((c*l.Size+a)*l.Size+b)*l.Outputs+o]
							}
						}
					}
				}
				y = append(y, sum)
			}
		}
	}
	return y
}

func twinPool(l *Pool, x []float64) (y []float64) {
	for c := range l.Of.Channels {
		for i := range l.Of.Height / l.Size {
			for j := range l.Of.Width / l.Size {
				most, sum := math.Inf(-1), 0.0
				for a := range l.Size {
					for b := range l.Size {
						v := x[(c*l.Of.Height+i*l.Size+a)*l.Of.Width+j*l.Size+b]
						most, sum = math.Max(most, v), sum+v
					}
				}
				if l.Average {
					most = sum / float64(l.Size*l.Size)
				}
				y = append(y, most)
			}
		}
	}
	return y
}

func twinNorm(l *Norm, x, theta []float64) (y []float64) {
	mean, variance := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	for i, v := range x {
		c := i / (l.Of.Height * l.Of.Width)
		y = append(y, theta[c]*(v-mean)/math.Sqrt(variance+1e-5)+theta[l.Of.Channels+c])
	}
	return y
}

// The seed and the number of the layer, and the mini-batch.
const testSeed, testLayer, testStep = 5, 2, 77

func twinDropout(l *Dropout, x []float64, row uint32) (y []float64) {
	s := num.NewStream(num.NewKey(testSeed, "dropout/2"), testStep, row)
	for _, v := range x {
		if float64(s.Uint32())/(1<<32) < l.Rate {
			v = 0
		}
		y = append(y, v/(1-l.Rate))
	}
	return y
}

// drawn returns n random numbers.
func drawn(s *num.Stream, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(s.Normal())
	}
	return v
}

func wide(v []float32) (w []float64) {
	for _, x := range v {
		w = append(w, float64(x))
	}
	return w
}

// rowsOf are how many rows a layer is shown.
const rowsOf = 5

// passOf is a training pass of the rows from one on.
func passOf(from, n int) *Pass {
	p := &Pass{Training: true, Step: testStep, Version: 3}
	for i := range n {
		p.Samples = append(p.Samples, gradient.Sample{Row: uint32(100 + from + i)})
	}
	return p
}

// run takes values through a layer, forwards and backwards, in blocks of so many rows.
func run(l Layer, all *Values, block int) {
	inputs, outputs := sizes(l)
	s := l.NewSpace(testSeed, testLayer)
	for from := 0; from < rowsOf; from += block {
		n := min(block, rowsOf-from)
		in, out := func(v []float32) []float32 {
			return v[from*inputs : (from+n)*inputs]
		}, func(v []float32) []float32 { return v[from*outputs : (from+n)*outputs] }
		v := &Values{X: in(all.X), Y: out(all.Y), DX: in(all.DX), DY: out(all.DY), Theta: all.Theta, Sum: all.Sum}
		p := passOf(from, n)
		l.Forward(v, p, s)
		l.Backward(v, p, s)
	}
}

func newValues(l Layer) *Values {
	inputs, outputs := sizes(l)
	s := num.NewStream(num.NewKey(9, "layer"), 0, 0)
	n := parameters(l)
	return &Values{
		X: drawn(s, rowsOf*inputs), Y: make([]float32, rowsOf*outputs), DX: make([]float32, rowsOf*inputs),
		DY:    drawn(s, rowsOf*outputs),
		Theta: drawn(s, n), Sum: make([]float32, n),
	}
}

// TestLayers holds each layer against its twin: outputs, and derivatives against central
// differences of the twin.
func TestLayers(t *testing.T) {
	testkit.WithoutRace(t)
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			v := newValues(c.l)
			run(c.l, v, rowsOf)
			x, theta, inputs := wide(v.X), wide(v.Theta), len(v.X)/rowsOf
			all := func() (y []float64) {
				for i := range rowsOf {
					y = append(y, c.twin(x[i*inputs:(i+1)*inputs], theta, uint32(100+i))...)
				}
				return y
			}
			near(t, "output", v.Y, all())
			loss := func() (sum float64) {
				for i, y := range all() {
					sum += y * float64(v.DY[i])
				}
				return sum
			}
			near(t, "derivative by an input", v.DX, differences(x, loss))
			near(t, "derivative by a parameter", v.Sum, differences(theta, loss))
		})
	}
}

// differences returns the central differences of f by the elements of x.
func differences(x []float64, f func() float64) (d []float64) {
	const step = 1e-5
	for i, v := range x {
		x[i] = v + step
		up := f()
		x[i] = v - step
		d = append(d, (up-f())/(2*step))
		x[i] = v
	}
	return d
}

// near fails where values differ by more than 1e-5 of the largest.
func near(t *testing.T, what string, got []float32, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	size := 1.0
	for _, x := range want {
		size = max(size, math.Abs(x))
	}
	for i, x := range got {
		if e := math.Abs(float64(x)-want[i]) / size; !(e <= 1e-5) {
			t.Fatalf("%s %d is %v, want %v", what, i, x, want[i])
		}
	}
}

// TestBlocks: no bit depends on how many rows a block has.
func TestBlocks(t *testing.T) {
	for _, c := range cases() {
		want := newValues(c.l)
		run(c.l, want, rowsOf)
		for _, block := range []int{1, 2, 3} {
			got := newValues(c.l)
			run(c.l, got, block)
			for what, pair := range map[string][2][]float32{"output": {got.Y, want.Y}, "derivative": {got.DX, want.DX},
				"sum": {got.Sum, want.Sum}} {
				for i, x := range pair[0] {
					if x != pair[1][i] {
						t.Fatalf("%s: %s %d is %v in blocks of %d rows, %v in one", c.name, what, i, x, block, pair[1][i])
					}
				}
			}
		}
	}
}

// TestTies: the first of equal values is the greatest, and the rectifier's derivative at 0 is 0,
// at -0 and at what is no number too.
func TestTies(t *testing.T) {
	l := &Pool{Of: Shape{1, 2, 2}, Size: 2}
	v := &Values{X: []float32{1, 2, 2, 2}, Y: make([]float32, 1), DX: make([]float32, 4), DY: []float32{3}}
	s := l.NewSpace(0, 0)
	l.Forward(v, &Pass{}, s)
	l.Backward(v, &Pass{}, s)
	if fmt.Sprint(v.Y, v.DX) != "[2] [0 3 0 0]" {
		t.Errorf("max pooling: %v, derivatives %v", v.Y, v.DX)
	}
	nan := float32(math.NaN())
	r := &ReLU{Of: Flat(4)}
	v = &Values{X: []float32{0, float32(math.Copysign(0, -1)), nan, 2}, Y: make([]float32, 4), DX: make([]float32, 4),
		DY: []float32{1, 1, 1, 1}}
	r.Forward(v, &Pass{}, nil)
	r.Backward(v, &Pass{}, nil)
	if fmt.Sprint(v.Y, v.DX) != "[0 0 0 2] [0 0 0 1]" {
		t.Errorf("ReLU: %v, derivatives %v", v.Y, v.DX)
	}
}

// TestDropoutShare: about the rate of values is 0 in training, none elsewhere, and the mean stays.
func TestDropoutShare(t *testing.T) {
	const n = 100_003
	l := &Dropout{Of: Flat(n), Rate: 0.3}
	v := &Values{X: make([]float32, n), Y: make([]float32, n)}
	fill(v.X, 1)
	s := l.NewSpace(1, 0)
	for _, training := range []bool{false, true} {
		l.Forward(v, &Pass{Training: training, Samples: make([]gradient.Sample, 1)}, s)
		zeros := 0
		for _, y := range v.Y {
			if y == 0 {
				zeros++
			} else if want := float32(1 / 0.7); training && y != want {
				t.Fatalf("a value that is kept is %v, want %v", y, want)
			}
		}
		if share := float64(zeros) / n; !training && zeros > 0 || training && math.Abs(share-0.3) > 0.006 {
			t.Errorf("training %v: a share of %v is 0", training, share)
		}
	}
}

// TestAugment: an image of one bright pixel is moved by every shift about as often, mirrored half of
// the time, and stays as it is but in training.
func TestAugment(t *testing.T) {
	shape := Shape{2, 5, 7}
	l := &Augment{Of: shape, Flip: true, Shift: 2}
	v := &Values{X: make([]float32, shape.Size()), Y: make([]float32, shape.Size())}
	v.X[35+2*7+1] = 1 // channel 1, row 2, column 1
	s := l.NewSpace(1, 0)
	l.Forward(v, &Pass{}, s)
	if !slices.Equal(v.X, v.Y) {
		t.Error("an image is changed outside training")
	}
	seen := make(map[[2]int]int)
	gone := 0
	for row := range uint32(6000) {
		l.Forward(v, &Pass{Training: true, Step: 9, Samples: []gradient.Sample{{Row: row}}}, s)
		at := slices.Index(v.Y, 1)
		if at < 0 {
			gone++
			continue
		}
		if v.Y[at] = 0; at < 35 || slices.Contains(v.Y, 1) {
			t.Fatal("another channel, or another pixel, is bright")
		}
		seen[[2]int{(at - 35) / 7, at % 7}]++
	}
	// Columns 1 - 2..1 + 2 and 5 - 2..5 + 2: -1 and 7 are outside, 3 comes from both.
	for place, n := range seen {
		want := 6000 / 50
		if place[1] == 3 {
			want *= 2
		}
		if n < want*2/3 || n > want*4/3 {
			t.Errorf("the pixel is at %v %d times, want about %d", place, n, want)
		}
	}
	if len(seen) != 5*7 || gone < 1000 || gone > 1400 {
		t.Errorf("%d places, outside %d times", len(seen), gone)
	}
}
