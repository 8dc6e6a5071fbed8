package network

import (
	"math"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Layer is a layer of a network. It is stateless and shared by lanes; what it works in is its
// Space. No output depends on other rows, and no sum depends on the size of blocks.
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

// layoutOf lists the tensors of layers.
func layoutOf(layers []Layer) (all []gradient.Layer) {
	for _, l := range layers {
		all = append(all, l.Layout()...)
	}
	return all
}

// parameters returns the length of a layer's part of Θ.
func parameters(l Layer) (n int) {
	for _, t := range l.Layout() {
		n += t.Size()
	}
	return n
}

// Shape is the shape of the values of a sample: Channels images of Height rows and Width columns, in this order.
// A row without an image has the shape n×1×1.
type Shape struct{ Channels, Height, Width int }

// Flat returns the shape of n values that are no image.
func Flat(n int) Shape { return Shape{n, 1, 1} }

// Area returns the positions of an image.
func (s Shape) Area() int { return s.Height * s.Width }

// Size returns the number of values.
func (s Shape) Size() int { return s.Channels * s.Area() }

// String returns the shape as settings have it: 1x8x8.
func (s Shape) String() string { return dataset.Shape(s).String() }

// maxSide bounds each number of a list of units.
const maxSide = 1 << 16

// mostLayers bounds the numbers of a list.
const mostLayers = 32

// Start is the law of a layer's first weights. Biases begin at 0.
type Start uint8

// The laws of a layer with n inputs and m outputs.
const (
	Glorot Start = iota // uniform within ±sqrt(6/(n+m)) (Glorot and Bengio 2010)
	He                  // normal with the variance 2/n (He et al. 2015)
	Small               // normal with the deviation 0.01
)

// draw fills weights, inputs×outputs: row i from stream (key, n, i).
func (s Start) draw(w []float32, outputs int, key num.Key, n uint64) {
	inputs := len(w) / outputs
	bound, deviation := math.Sqrt(6/float64(inputs+outputs)), math.Sqrt(2/float64(inputs))
	if s == Small {
		deviation = 0.01
	}
	for i := range inputs {
		stream := num.NewStream(key, n, uint32(i))
		row := w[i*outputs : (i+1)*outputs]
		for j := range row {
			if s == Glorot {
				row[j] = float32(bound * (2*stream.Float64() - 1))
			} else {
				row[j] = float32(deviation * stream.Normal())
			}
		}
	}
}

// MaxValues bounds Θ: what one value of a round can hold (512 MiB). maxRow bounds what a layer
// makes of one row, and what a convolution reads for it, position by position (64 MiB).
const (
	MaxValues = 1 << 27
	maxRow    = 1 << 24
)

// layerOf returns the name of a tensor's layer: hidden1 of hidden1.norm.bias.
func layerOf(tensor string) string {
	name, _, _ := strings.Cut(tensor, ".")
	return name
}

func fill(v []float32, x float32) {
	for i := range v {
		v[i] = x
	}
}

// ReLU is the rectifier y = max(0, x), whose derivative at 0 is 0.
type ReLU struct {
	bare
	Of Shape
}

// Shapes implements Layer.
func (l *ReLU) Shapes() (from, to Shape) { return l.Of, l.Of }

// NewSpace implements Layer.
func (l *ReLU) NewSpace(uint64, int) Space { return nil }

// Forward implements Layer.
func (l *ReLU) Forward(v *Values, _ *Pass, _ Space) { num.KeepPositive(v.Y, v.X, v.X) }

// Backward implements Layer.
func (l *ReLU) Backward(v *Values, _ *Pass, _ Space) {
	if v.DX != nil {
		num.KeepPositive(v.DX, v.DY, v.Y)
	}
}

// Logistic is y = 1/(1 + exp(-x)).
type Logistic struct {
	bare
	Of Shape
}

// logisticSpace has the derivatives of the last outputs.
type logisticSpace struct{ slope []float32 }

// Shapes implements Layer.
func (l *Logistic) Shapes() (from, to Shape) { return l.Of, l.Of }

// NewSpace implements Layer.
func (l *Logistic) NewSpace(uint64, int) Space { return new(logisticSpace) }

// Forward implements Layer.
func (l *Logistic) Forward(v *Values, _ *Pass, ws Space) {
	s := ws.(*logisticSpace)
	s.slope = resize(s.slope, len(v.Y))
	num.SigmoidPairs(v.Y, s.slope, v.X)
	num.Mul32(s.slope, v.Y)
}

// Backward implements Layer.
func (l *Logistic) Backward(v *Values, _ *Pass, ws Space) {
	if v.DX != nil {
		copy(v.DX, v.DY)
		num.Mul32(v.DX, ws.(*logisticSpace).slope)
	}
}

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
