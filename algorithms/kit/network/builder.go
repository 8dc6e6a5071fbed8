package network

import "fmt"

// builder lists the layers of a network, one behind the other, and names their tensors:
// convolution1, convolution2, ..., hidden1, ..., output; those of biases end in .bias, those of
// the layer normalisation behind a layer in .norm.
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
	b.add(&Convolution{Name: b.name, Biases: b.biases(), From: b.shape, Outputs: outputs, Size: size, Stride: stride, Padding: padding, Start: He})
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

func (b *builder) dropout(rate float64) { b.add(&Dropout{Of: b.shape, Rate: rate}) }

func (b *builder) pool(size int, average bool) {
	b.add(&Pool{Of: b.shape, Size: size, Average: average})
}
