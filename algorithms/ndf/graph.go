package ndf

import (
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
)

// Graph implements graph.Model. The factors of paths are the shares that go to the left at all split nodes, then the
// shares that go to the right.
func (m *model) Graph(b *graph.Builder, x graph.Value) (graph.Value, error) {
	if !m.soft {
		return "", graph.None("with routing=hard, a sample whose output is within rounding of 0 takes another branch in " +
			"another program; a model that is trained with routing=soft has a graph")
	}
	var outputs []graph.Value
	var paths [][]int
	var distributions []float32
	splits, alone := 0, make([]float64, m.labels) // the sum of trees that are a single leaf
	for _, t := range m.trees {
		splits += len(t.hidden)
	}
	before := 0
	for i, t := range m.trees {
		if len(t.hidden) == 0 {
			for c, v := range t.Distribution(0) {
				alone[c] += float64(v)
			}
			continue
		}
		outputs = append(outputs, m.outputsGraph(b, x, m.networks[i]))
		ways := make([][]int, t.Nodes())
		for at := range t.Nodes() {
			network, left, split := t.Test(at)
			if !split {
				paths = append(paths, ways[at])
				distributions = append(distributions, t.Distribution(int(left))...)
				continue
			}
			ways[left] = append(slices.Clone(ways[at]), before+int(network))
			ways[left+1] = append(slices.Clone(ways[at]), splits+before+int(network))
		}
		before += len(t.hidden)
	}
	sums := b.F64(alone, m.labels)
	if splits == 0 {
		sums = graph.Repeat(b, sums, x, m.labels)
	} else {
		out := b.Concat(0, outputs...)
		factors := b.Concat(0, b.Op("Sigmoid", out), b.Op("Sigmoid", b.Op("Neg", out)))
		reached, order := graph.Products(b, b.Cast(factors, graph.Float64), paths)
		leaves := make([]float64, 0, len(distributions))
		for _, leaf := range order {
			for _, v := range distributions[leaf*m.labels:][:m.labels] {
				leaves = append(leaves, float64(v))
			}
		}
		reached = b.Op("MatMul", b.Transpose(reached, 1, 0), b.F64(leaves, len(order), m.labels))
		sums = b.Op("Add", reached, sums)
	}
	return b.Cast(b.Op("Div", sums, b.Number(float64(len(m.trees)))), graph.Float32), nil
}

// outputsGraph returns the outputs of networks (networks×samples). Networks with fewer hidden units than others have
// more with weights of 0. Perceptrons have weights of inputs in place of hidden units.
func (m *model) outputsGraph(b *graph.Builder, x graph.Value, networks []network) graph.Value {
	count, inputs, hidden := len(networks), m.inputs, 0
	for i := range networks {
		hidden = max(hidden, networks[i].hidden)
	}
	var read []int
	var shift, scale []float32
	first, last := make([]float32, count*inputs*hidden), make([]float32, count*hidden) // weights
	direct := make([]float32, count*inputs)                                            // weights of perceptrons
	firstBias, lastBias, perceptrons := make([]float32, count*hidden), make([]float32, count), false
	for i := range networks {
		n := &networks[i]
		for _, f := range n.inputs {
			read = append(read, int(f))
		}
		shift, scale = append(shift, n.shift...), append(scale, n.scale...)
		units, output := n.layers(n.weights)
		lastBias[i] = output[len(output)-1]
		if n.hidden == 0 {
			copy(direct[i*inputs:], output[:inputs])
			perceptrons = true
			continue
		}
		copy(last[i*hidden:], output[:n.hidden])
		for h := range n.hidden {
			own := units[h*(inputs+1):][:inputs+1]
			for k, w := range own[:inputs] {
				first[(i*inputs+k)*hidden+h] = w
			}
			firstBias[i*hidden+h] = own[inputs]
		}
	}
	z := b.Op("Sub", b.Gather(x, 1, read...), b.F32(shift, len(shift)))
	z = b.Op("Mul", z, b.F32(scale, len(scale)))
	z = b.Op("Min", b.Op("Max", z, b.F32([]float32{-maxInput})), b.F32([]float32{maxInput}))
	z = b.Transpose(b.Reshape(z, 0, count, inputs), 1, 0, 2)
	out := b.F32(lastBias, count, 1, 1)
	if hidden > 0 {
		units := b.Op("Add", b.Op("MatMul", z, b.F32(first, count, inputs, hidden)), b.F32(firstBias, count, 1, hidden))
		out = b.Op("Add", b.Op("MatMul", b.Op("Tanh", units), b.F32(last, count, hidden, 1)), out)
	}
	if perceptrons {
		out = b.Op("Add", b.Op("MatMul", z, b.F32(direct, count, inputs, 1)), out)
	}
	return b.Reshape(out, count, -1)
}
