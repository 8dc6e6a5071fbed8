package ndf

import (
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// predictor is the working memory of one caller of Predict.
type predictor struct {
	reader reader
	z, zt  []float32
	t, out []float32
	fl, fr []float32
	sums   []float64 // rows × labels
	order  []uint32  // rows of the block, those of a node together
	right  []uint32
	ranges [][2]uint32 // by node: its rows in order
	masses [][]float64 // by depth, two for each: the share of each row that reaches a node
}

// NewScratch implements algorithms.Model.
func (m *model) NewScratch() any {
	width, nodes, depth := m.inputs+1, 0, 0
	for _, t := range m.trees {
		nodes = max(nodes, t.Nodes())
		depth = max(depth, t.Depth())
	}
	floats := func(n int) []float32 { return make([]float32, n) }
	p := &predictor{
		z: floats(blockRows * width), zt: floats(blockRows * width), t: floats(blockRows * (m.most + 1)),
		out: floats(blockRows),
		fl:  floats(blockRows), fr: floats(blockRows), sums: make([]float64, blockRows*m.labels),
		order: make([]uint32, blockRows), right: make([]uint32, 0, blockRows), ranges: make([][2]uint32, nodes),
	}
	p.reader.place = make([]uint32, m.features)
	num.Fill(p.reader.place, absent)
	p.reader.zeros = floats(m.inputs)
	if m.soft {
		for range 2 * (depth + 1) {
			p.masses = append(p.masses, make([]float64, blockRows))
		}
	}
	return p
}

// Predict implements algorithms.Model: the mean over the trees, summed in float64 in their order. A
// tree predicts the leaf that a row reaches, or, with soft routing, the mean of its leaves, each
// weighted by the product of f along its path.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any) {
	p := scratch.(*predictor)
	for len(refs) > 0 {
		n := min(blockRows, len(refs))
		sums := p.sums[:n*m.labels]
		clear(sums)
		for i, t := range m.trees {
			w := walk{m: m, p: p, tree: t, networks: m.networks[i], refs: refs[:n], shard: shard, sums: sums}
			if m.soft {
				fillOnes(p.masses[0][:n])
				w.soft(0, 0)
			} else {
				w.hard()
			}
		}
		trees := float64(len(m.trees))
		for i, sum := range sums {
			dst[i] = float32(sum / trees)
		}
		dst, refs = dst[n*m.labels:], refs[n:]
	}
}

func fillOnes(v []float64) {
	for i := range v {
		v[i] = 1
	}
}

// walk is a block of rows on the way through a tree.
type walk struct {
	m        *model
	p        *predictor
	tree     *Tree
	networks []network
	refs     []dataset.RowRef
	shard    func(uint32) *dataset.Rows
	sums     []float64
}

// outputs computes the outputs of a network for the rows of the block that order lists.
func (w *walk) outputs(n *network, order []uint32) []float32 {
	p, width := w.p, len(n.inputs)+1
	sparse := w.shard(w.refs[0].Shard).Sparse
	p.reader.begin(n, w.m.features, sparse)
	rows := len(order)
	b := block{rows: rows, z: p.z[:rows*width], zt: p.zt[:rows*width], t: p.t[:rows*(n.hidden+1)], out: p.out[:rows]}
	for i, row := range order {
		ref := w.refs[row]
		p.reader.read(b.z[i*width:(i+1)*width], n, w.shard(ref.Shard), int(ref.Pos))
	}
	p.reader.end(n, sparse)
	b.transpose(len(n.inputs))
	n.forward(&b, n.weights)
	for i, x := range b.out {
		if x != x {
			b.out[i] = 0 // weights of a damaged file may be so large
		}
	}
	return b.out
}

// identity lists all rows of the block.
func (w *walk) identity() []uint32 {
	order := w.p.order[:len(w.refs)]
	for i := range order {
		order[i] = uint32(i)
	}
	return order
}

// hard adds the leaf of each row to its sums. Nodes come after their parents.
func (w *walk) hard() {
	p := w.p
	order := w.identity()
	p.ranges[0] = [2]uint32{0, uint32(len(order))}
	for at := range w.tree.Nodes() {
		from, to := p.ranges[at][0], p.ranges[at][1]
		network, left, split := w.tree.Test(at)
		if !split {
			w.addLeaf(int(left), order[from:to])
			continue
		}
		middle := from
		if from < to {
			middle += w.divide(order[from:to], w.outputs(&w.networks[network], order[from:to]))
		}
		p.ranges[left], p.ranges[left+1] = [2]uint32{from, middle}, [2]uint32{middle, to}
	}
}

// divide moves the rows with outputs above 0 to the front, and returns their number.
func (w *walk) divide(order []uint32, out []float32) (left uint32) {
	right := w.p.right[:0]
	for i, row := range order {
		if out[i] > 0 {
			order[left] = row
			left++
		} else {
			right = append(right, row)
		}
	}
	copy(order[left:], right)
	return left
}

func (w *walk) addLeaf(leaf int, order []uint32) {
	labels, d := w.m.labels, w.tree.Distribution(leaf)
	for _, row := range order {
		sums := w.sums[int(row)*labels : (int(row)+1)*labels]
		for c, v := range d {
			sums[c] += float64(v)
		}
	}
}

// soft adds all leaves below a node, for the shares of the rows that masses[2·depth] has.
func (w *walk) soft(at, depth int) {
	p, n, labels := w.p, len(w.refs), w.m.labels
	mass := p.masses[2*depth][:n]
	network, left, split := w.tree.Test(at)
	if !split {
		d := w.tree.Distribution(int(left))
		for i, share := range mass {
			sums := w.sums[i*labels : (i+1)*labels]
			for c, v := range d {
				sums[c] += float64(share * float64(v))
			}
		}
		return
	}
	out := w.outputs(&w.networks[network], w.identity())
	num.SigmoidPairs(p.fl[:n], p.fr[:n], out)
	below, right := p.masses[2*depth+2][:n], p.masses[2*depth+3][:n]
	for i, share := range mass {
		below[i], right[i] = share*float64(p.fl[i]), share*float64(p.fr[i])
	}
	w.soft(int(left), depth+1)
	copy(below, right)
	w.soft(int(left)+1, depth+1)
}
