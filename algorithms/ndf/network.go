package ndf

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// network is the split function of a node: a multi-layer perceptron with one hidden layer, or,
// with no hidden unit, a perceptron. A row goes to the left where its output is above 0, that is
// where f_L = σ(output) is above ½.
type network struct {
	inputs       []uint32  // features, ascending
	shift, scale []float32 // by input: z = (x - shift)·scale
	hidden       int
	// weights are, with m inputs: W₁ and b₁ (hidden × (m+1), the bias last), then w₂ and b₂
	// (hidden + 1); of a perceptron w and b (m + 1).
	weights []float32
}

// parameters is the number of weights and biases of a network.
func parameters(inputs, hidden int) int {
	if hidden == 0 {
		return inputs + 1
	}
	return hidden*(inputs+1) + hidden + 1
}

// layers splits weights into those of the hidden layer, which a perceptron does not have, and
// those of the output.
func (n *network) layers(weights []float32) (hidden, output []float32) {
	first := n.hidden * (len(n.inputs) + 1)
	return weights[:first], weights[first:]
}

// isBias reports whether weight i is a bias.
func (n *network) isBias(i int) bool {
	row := len(n.inputs) + 1
	return i == len(n.weights)-1 || i < n.hidden*row && i%row == row-1
}

// blockRows is how many rows go through a network together: their inputs stay in the
// processor's cache.
const blockRows = 256

// block is a block of rows on the way through a network. z is in the order of rows. In zt and t the values of an input
// or unit stand together, one for each row.
type block struct {
	z    []float32 // rows × (inputs + 1): the inputs, and 1
	zt   []float32 // the transpose of z
	t    []float32 // (hidden + 1) × rows: tanh of the hidden layer, and 1; a perceptron has none
	out  []float32 // by row: the output
	rows int
}

// forward computes t and out under some weights. Each element is a chain of fused
// multiply-adds over the ascending inputs: a row's output does not depend on its block.
func (n *network) forward(b *block, weights []float32) {
	hidden, output := n.layers(weights)
	last := b.zt
	if n.hidden > 0 {
		units := b.t[:n.hidden*b.rows]
		clear(units)
		num.AddProduct(units, hidden, b.zt, len(n.inputs)+1, b.rows)
		tanhs(units)
		num.Fill(b.t[len(units):], 1)
		last = b.t
	}
	clear(b.out)
	num.AddProduct(b.out, output, last, len(output), b.rows)
}

// backward adds to g the gradient of a loss whose slopes along the outputs are d. It overwrites t.
func (n *network) backward(g []float32, b *block, weights, d []float32) {
	hidden, output := n.layers(g)
	if n.hidden == 0 {
		num.AddProduct(output, d, b.z, b.rows, len(output))
		return
	}
	num.AddProduct(output, b.t, d, b.rows, 1)
	_, w := n.layers(weights)
	for h := range n.hidden {
		tanhSlopes(b.t[h*b.rows:(h+1)*b.rows], d, w[h])
	}
	num.AddProduct(hidden, b.t[:n.hidden*b.rows], b.z, b.rows, len(n.inputs)+1)
}

// maxInput bounds standardised inputs: a row that is far from all training rows keeps finite outputs.
const maxInput = 1e4

// standardise returns the value of input i if its feature has the value x.
func (n *network) standardise(i int, x float32) float32 {
	z := (x - n.shift[i]) * n.scale[i]
	if !(z < maxInput) {
		return maxInput
	}
	return max(z, -maxInput)
}

// reader reads the inputs of networks from rows, which are dense or sparse.
type reader struct {
	place []uint32  // by feature: its input, or absent; for sparse rows
	zeros []float32 // by input: that of the value 0; for sparse rows
}

const absent = 1<<32 - 1

// begin prepares for the rows of a network; end must follow.
func (r *reader) begin(n *network, features int, sparse bool) {
	if !sparse {
		return
	}
	if len(r.place) != features {
		r.place = make([]uint32, features)
		for i := range r.place {
			r.place[i] = absent
		}
	}
	forest.Resized(&r.zeros, len(n.inputs))
	for i, f := range n.inputs {
		r.place[f] = uint32(i)
		r.zeros[i] = n.standardise(i, 0)
	}
}

func (r *reader) end(n *network, sparse bool) {
	if !sparse {
		return
	}
	for _, f := range n.inputs {
		r.place[f] = absent
	}
}

// read sets z to the inputs of a row, and 1.
func (r *reader) read(z []float32, n *network, rows *dataset.Rows, pos int) {
	m := len(n.inputs)
	z[m] = 1
	if !rows.Sparse {
		x, shift, scale := rows.Dense(pos), n.shift[:m], n.scale[:m]
		for i, f := range n.inputs {
			v := (x[f] - shift[i]) * scale[i]
			if !(v < maxInput && v > -maxInput) {
				v = n.standardise(i, x[f])
			}
			z[i] = v
		}
		return
	}
	copy(z, r.zeros)
	columns, values := rows.NonZeros(pos)
	for j, c := range columns {
		if i := r.place[c]; i != absent {
			z[i] = n.standardise(int(i), values[j])
		}
	}
}

// transpose sets b.zt from b.z.
func (b *block) transpose(inputs int) {
	num.Transpose32(b.zt, b.rows, b.z, inputs+1, b.rows, inputs+1)
}
