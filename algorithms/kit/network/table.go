package network

import (
	"errors"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
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

// Decode returns the network that a model's tensors are of, the first of which is the table of its
// layers; nil where it is another one. Whether the tensors are right is for Tensors to say.
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
	if row[1] < 1 || row[1] > maxSide || row[2] < 1 || row[2] > maxSize || row[3] < 1 || row[3] > maxSize || row[4] >= row[2] || !l.fits() || !l.bounded() {
		return false
	}
	b.convolution(row[1], row[2], row[3], row[4])
	return true
}
