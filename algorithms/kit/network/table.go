package network

import (
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
)

// builder lists the layers of a network in order, and names their tensors: convolution1, convolution2, ...,
// hidden1, ..., output. Tensors of biases end in .bias, tensors of the layer normalisation after a layer in .norm.
type builder struct {
	layers       []Layer
	shape        Shape // behind the last layer
	biased       bool
	convolutions int
	hidden       int
	name         string // of the last layer with weights
}

func (b *builder) add(l Layer) {
	b.layers = append(b.layers, l)
	_, b.shape = l.Shapes()
}

// biases returns the name of the biases of the last layer with weights; "": it has none.
func (b *builder) biases() string {
	if !b.biased {
		return ""
	}
	return b.name + ".bias"
}

func (b *builder) convolution(outputs, size, stride, padding int) {
	b.convolutions++
	b.name = fmt.Sprintf("convolution%d", b.convolutions)
	b.add(&Convolution{Name: b.name, Biases: b.biases(), From: b.shape, Outputs: outputs, Size: size, Stride: stride,
		Padding: padding, Start: He})
}

func (b *builder) dense(units int) {
	b.hidden++
	b.name = fmt.Sprintf("hidden%d", b.hidden)
	b.add(&Dense{Name: b.name, Biases: b.biases(), From: b.shape, Outputs: units, Start: He})
}

// output adds the last layer.
func (b *builder) output(units int, start Start) {
	b.name = "output"
	b.add(&Dense{Name: b.name, Biases: b.biases(), From: b.shape, Outputs: units, Start: start})
}

func (b *builder) norm() { b.add(&Norm{Name: b.name + ".norm", Of: b.shape}) }

func (b *builder) relu() { b.add(&ReLU{Of: b.shape}) }

func (b *builder) pool(size int, average bool) {
	b.add(&Pool{Of: b.shape, Size: size, Average: average})
}

// Hidden returns the layers of a network with one hidden layer: dense, an activation, dense. A
// model file has its tensors as hidden.ACTIVATION, hidden.bias, output and output.bias.
func Hidden(features, hidden, outputs int, activation string, start Start) []Layer {
	units := Flat(hidden)
	var between Layer = &ReLU{Of: units}
	if activation == LogisticUnits {
		between = &Logistic{Of: units}
	}
	return []Layer{
		&Dense{Name: "hidden." + activation, Biases: "hidden.bias", From: Flat(features), Outputs: hidden, Start: start},
		between,
		&Dense{Name: "output", Biases: "output.bias", From: units, Outputs: outputs, Start: start},
	}
}

// The activations of a hidden layer.
const (
	ReLUUnits     = "relu"
	LogisticUnits = "logistic"
)

// tableName is the tensor with the kinds of a network's layers.
const tableName = "layers"

// The kinds of a row of that tensor, with the numbers that follow.
const (
	codeInput       = iota // channels, height, width, whether layers have biases
	codeDense              // units
	codeConvolution        // channels, kernel, stride, padding
	codeReLU
	codePool // side, whether it is the mean
	codeNorm
	codeCrop // side; the first layer
)

// codeWidth is the numbers of a row: a kind and four more.
const codeWidth = 5

// Tensors lists what a model has of a network or of another function: the kinds of a network's
// layers, then its parameters. A network is one that Config.Layers or Decode made.
func Tensors(l *learner.Tensors, f gradient.Function, theta *[]float32) {
	if n, ok := f.(*Network); ok {
		codes := encode(n.Layers)
		l.U32(tableName, &codes, len(codes)/codeWidth, codeWidth)
	}
	gradient.Tensors(l, f, theta)
}

// TableBytes returns how much of a model the kinds of a function's layers take: see Tensors.
func TableBytes(f gradient.Function) int64 {
	if n, ok := f.(*Network); ok {
		return 4 * int64(len(encode(n.Layers)))
	}
	return 0
}

// encode returns the rows of a network's layers. Layers that belong to training have none.
func encode(layers []Layer) (codes []uint32) {
	add := func(numbers ...int) {
		row := make([]uint32, codeWidth)
		for i, n := range numbers {
			row[i] = uint32(n)
		}
		codes = append(codes, row...)
	}
	from, _ := layers[0].Shapes()
	biased := 0
	if d := layers[len(layers)-1].(*Dense); d.Biases != "" {
		biased = 1
	}
	add(codeInput, from.Channels, from.Height, from.Width, biased)
	for _, l := range layers {
		switch l := l.(type) {
		case *Dense:
			add(codeDense, l.Outputs)
		case *Convolution:
			add(codeConvolution, l.Outputs, l.Size, l.Stride, l.Padding)
		case *ReLU:
			add(codeReLU)
		case *Pool:
			mean := 0
			if l.Average {
				mean = 1
			}
			add(codePool, l.Size, mean)
		case *Norm:
			add(codeNorm)
		case *Crop:
			add(codeCrop, l.Side)
		}
	}
	return codes
}

// errTable says that a model's table of layers is of no network.
var errTable = errors.New("the layers of the model do not fit its features and outputs")

// Decode returns the network of a model's tensors, if the first of them is the table of a network's
// layers, and otherwise nil. Tensors says whether the tensors are right.
func Decode(features, outputs int, tensors []algorithms.Tensor) (*Network, error) {
	if len(tensors) == 0 || tensors[0].Name != tableName {
		return nil, nil
	}
	layers := decode(tensors[0].U32)
	if layers == nil {
		return nil, errTable
	}
	from, _ := layers[0].Shapes()
	if _, to := layers[len(layers)-1].Shapes(); from.Size() != features || to.Size() != outputs {
		return nil, errTable
	}
	return New(Plan{Layers: layers}), nil
}

// maxTable bounds the rows of a table: the input, a crop, a list each of convolutions and of hidden
// layers, and the output.
const maxTable = 3 + 8*mostLayers

// decode returns the layers of a table, nil where it is of no network.
func decode(codes []uint32) []Layer {
	if len(codes)%codeWidth != 0 || len(codes) < 3*codeWidth || len(codes) > maxTable*codeWidth {
		return nil
	}
	rows := make([][codeWidth]int, len(codes)/codeWidth)
	for i, n := range codes {
		if n > MaxValues {
			return nil
		}
		rows[i/codeWidth][i%codeWidth] = int(n)
	}
	in := rows[0]
	if in[0] != codeInput || !product(in[1], in[2], in[3]) || in[4] > 1 {
		return nil
	}
	b, n := &builder{shape: Shape{in[1], in[2], in[3]}, biased: in[4] == 1}, 0
	for i, row := range rows[1:] {
		if !b.take(row, i == len(rows)-2) {
			return nil
		}
		if n += parameters(b.layers[i]); n > MaxValues || !product(b.shape.Channels, b.shape.Height, b.shape.Width) {
			return nil
		}
	}
	return b.layers
}

// product reports whether the product of numbers is from 1 to maxRow.
func product(numbers ...int) bool {
	n := 1
	for _, x := range numbers {
		if n *= x; n < 1 || n > maxRow {
			return false
		}
	}
	return true
}

// take adds the layer of a row of a table, and reports whether it can be.
func (b *builder) take(row [codeWidth]int, last bool) bool {
	if last && row[0] != codeDense {
		return false
	}
	switch row[0] {
	case codeDense:
		return b.takeDense(row[1], last)
	case codeConvolution:
		return b.takeConvolution(row)
	case codeReLU:
		b.relu()
	case codeNorm:
		if b.name == "" {
			return false
		}
		b.norm()
	case codePool:
		if row[1] < 1 || row[1] > min(b.shape.Height, b.shape.Width) || row[2] > 1 {
			return false
		}
		b.pool(row[1], row[2] == 1)
	case codeCrop:
		if len(b.layers) > 0 || row[1] < 1 || row[1] > min(b.shape.Height, b.shape.Width) {
			return false
		}
		b.add(&Crop{Of: b.shape, Side: row[1]})
	default:
		return false
	}
	return true
}

func (b *builder) takeDense(units int, last bool) bool {
	if units < 1 || units > MaxValues/b.shape.Size() {
		return false
	}
	if last {
		b.output(units, He)
	} else {
		b.dense(units)
	}
	return true
}

func (b *builder) takeConvolution(row [codeWidth]int) bool {
	l := &Convolution{From: b.shape, Outputs: row[1], Size: row[2], Stride: row[3], Padding: row[4]}
	if row[1] < 1 || row[1] > maxSide || row[2] < 1 || row[2] > maxSize || row[3] < 1 || row[3] > maxSize ||
		row[4] >= row[2] || !l.fits() || !l.bounded() {
		return false
	}
	b.convolution(row[1], row[2], row[3], row[4])
	return true
}

// Describe says in one line what a function is, layers that belong to training left out: "1x8x8,
// convolution 3x3 of 16, ReLU, max of 2x2, dense 128, ReLU, dense 64".
func Describe(f gradient.Function) string {
	n, ok := f.(*Network)
	if !ok {
		return Linear
	}
	from, _ := n.Layers[0].Shapes()
	words := []string{from.String()}
	if from.Area() == 1 {
		words[0] = fmt.Sprintf("%d features", from.Channels)
	}
	for _, l := range n.Layers {
		if word := describe(l); word != "" {
			words = append(words, word)
		}
	}
	return strings.Join(words, ", ")
}

// describe returns a word for a layer; "": it belongs to training alone.
func describe(l Layer) string {
	switch l := l.(type) {
	case *Dropout, *Augment:
		return ""
	case *Dense:
		return fmt.Sprintf("dense %d", l.Outputs)
	case *Convolution:
		return fmt.Sprintf("convolution %dx%d of %d", l.Size, l.Size, l.Outputs)
	case *ReLU:
		return "ReLU"
	case *Logistic:
		return LogisticUnits
	case *Pool:
		if l.Average {
			return fmt.Sprintf("mean of %dx%d", l.Size, l.Size)
		}
		return fmt.Sprintf("max of %dx%d", l.Size, l.Size)
	case *Crop:
		return fmt.Sprintf("crop %dx%d", l.Side, l.Side)
	case *Norm:
		return "layer normalisation"
	}
	return fmt.Sprintf("%T", l)
}

// Layers returns the layers of a network for rows of so many features, which Fits has not refused.
// The feature function is a network.
func (c *Config) Layers(features int, biased bool, o Output) []Layer {
	b := &builder{shape: Flat(features), biased: biased}
	if c.Features == Conv {
		b.shape = c.image(features)
		if c.Flip || c.Shift > 0 {
			b.add(&Augment{Of: b.shape, Flip: c.Flip, Shift: c.Shift})
		}
		if c.Crop > 0 {
			b.add(&Crop{Of: b.shape, Side: c.Crop})
		}
		for _, channels := range c.list(c.Channels) {
			b.convolution(channels, c.Kernel, c.Stride, c.Padding)
			c.activate(b)
			if c.Pool > 1 {
				b.pool(c.Pool, c.Pooling == average)
			}
		}
	}
	for _, units := range c.list(c.Hidden) {
		b.dense(units)
		c.activate(b)
		if c.Dropout > 0 {
			b.add(&Dropout{Of: b.shape, Rate: c.Dropout})
		}
	}
	b.output(o.Units, o.Start)
	return b.layers
}

// activate adds what follows the weights of a layer.
func (c *Config) activate(b *builder) {
	if c.LayerNorm {
		b.norm()
	}
	b.relu()
}
