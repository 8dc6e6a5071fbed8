package forest

import (
	"math"

	"github.com/coppice-ldl/coppice/dataset"
)

// walker is the forest in the form that prediction walks, derived from its trees.
type walker struct {
	steps   []step
	roots   []uint32 // by tree: its root in steps
	compact []uint32 // by feature: its place among the used ones, or unused
	used    int      // features that split a node
	width   int      // values of a row as walks read it: used, or 1 for leaves to look at
}

// step is a node: a row goes on to next where its value is below limit and to
// next+1 otherwise, compared as ordered. A leaf's next is itself, with a limit that
// no value reaches.
type step struct {
	limit   int32
	feature uint32 // compact
	next    uint32
}

const unused = 1<<32 - 1

// build derives the walker from a checked model.
func (w *walker) build(m *model) {
	nodes := 0
	for _, t := range m.trees {
		nodes += t.Nodes()
	}
	w.steps = make([]step, 0, nodes)
	w.compact = make([]uint32, m.features)
	for i := range w.compact {
		w.compact[i] = unused
	}
	for _, t := range m.trees {
		root := uint32(len(w.steps))
		w.roots = append(w.roots, root)
		for i, feature := range t.feature {
			if feature == leafMark {
				w.steps = append(w.steps, step{limit: math.MaxInt32, next: root + uint32(i)})
				continue
			}
			w.steps = append(w.steps, step{limit: ordered(ceil32(t.threshold[i])), feature: w.place(feature), next: root + t.left[i]})
		}
	}
	w.width = max(1, w.used)
}

// place returns a feature's place among the used ones.
func (w *walker) place(feature uint32) uint32 {
	if w.compact[feature] == unused {
		w.compact[feature] = uint32(w.used)
		w.used++
	}
	return w.compact[feature]
}

// ordered maps a value to an integer that ascends with it, 0 and -0 to 0, so that
// walks need no branch to compare. It is below math.MaxInt32 even for NaN.
func ordered(x float32) int32 {
	b := int32(math.Float32bits(x))
	if b < 0 {
		return -(b & math.MaxInt32)
	}
	return min(b, math.MaxInt32-1)
}

// ceil32 returns the least float32 that is not below t: x < t and x < ceil32(t)
// are the same for every float32 x.
func ceil32(t float64) float32 {
	f := float32(t)
	if float64(f) < t {
		f = nextUp(f)
	}
	return f
}

// nextUp returns the float32 above a finite x.
func nextUp(x float32) float32 {
	b := math.Float32bits(x)
	switch {
	case x == 0:
		return math.Float32frombits(1)
	case b>>31 == 1:
		return math.Float32frombits(b - 1)
	}
	return math.Float32frombits(b + 1)
}

// blockBytes bounds the dense rows that are predicted at a time.
const blockBytes = 256 << 10

// predictor is the working memory of one caller of Predict.
type predictor struct {
	x    []int32   // rows×width: the used features of a block of rows, ordered
	at   []uint32  // by row of the block: its node
	sums []float64 // rows×labels
	rows int       // of a block
}

// NewScratch implements algorithms.Model.
func (m *model) NewScratch() any {
	width := m.walker().width
	rows := max(lanes, min(256, blockBytes/4/width)/lanes*lanes)
	return &predictor{
		rows: rows, x: make([]int32, rows*width), at: make([]uint32, rows), sums: make([]float64, rows*m.labels),
	}
}

// lanes is how many rows walk down a tree side by side.
const lanes = 4

// Predict implements algorithms.Model: the mean of the trees' leaves (Eq. 4),
// summed in float64 in the order of the trees.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any) {
	p, w := scratch.(*predictor), m.walker()
	for len(refs) > 0 {
		n := min(p.rows, len(refs))
		for i, ref := range refs[:n] {
			w.write(p.x[i*w.width:(i+1)*w.width], shard(ref.Shard), int(ref.Pos))
		}
		m.predictBlock(dst[:n*m.labels], w, p, n)
		for i, ref := range refs[:n] {
			w.erase(p.x[i*w.width:(i+1)*w.width], shard(ref.Shard), int(ref.Pos))
		}
		dst, refs = dst[n*m.labels:], refs[n:]
	}
}

// write writes the used features of a row to x, which is all zeros for a sparse
// row.
func (w *walker) write(x []int32, r *dataset.Rows, pos int) {
	if !r.Sparse {
		for c, v := range r.Dense(pos) {
			if at := w.compact[c]; at != unused {
				x[at] = ordered(v)
			}
		}
		return
	}
	columns, values := r.NonZeros(pos)
	for i, c := range columns {
		if at := w.compact[c]; at != unused {
			x[at] = ordered(values[i])
		}
	}
}

// erase makes x all zeros again.
func (w *walker) erase(x []int32, r *dataset.Rows, pos int) {
	if !r.Sparse {
		clear(x)
		return
	}
	columns, _ := r.NonZeros(pos)
	for _, c := range columns {
		if at := w.compact[c]; at != unused {
			x[at] = 0
		}
	}
}

// predictBlock predicts the first n rows of p.x.
func (m *model) predictBlock(dst []float32, w *walker, p *predictor, n int) {
	sums := p.sums[:n*m.labels]
	clear(sums)
	for t, root := range w.roots {
		tree := m.trees[t]
		for i := 0; i < n; i += lanes {
			w.walk(p.at[i:i+lanes], p.x[i*w.width:], root)
		}
		for i := range n {
			leaf := int(tree.left[p.at[i]-root]) * m.labels
			row := sums[i*m.labels : (i+1)*m.labels]
			for c, v := range tree.leaves[leaf : leaf+m.labels] {
				row[c] += float64(v)
			}
		}
	}
	trees := float64(len(w.roots))
	for i, sum := range sums {
		dst[i] = float32(sum / trees)
	}
}

// after is 0 where x is below limit and 1 elsewhere.
func after(x, limit int32) uint32 { return uint32(1 + (int64(x)-int64(limit))>>63) }

// walk takes four rows from root down to their leaves.
func (w *walker) walk(at []uint32, x []int32, root uint32) {
	steps, n := w.steps, w.width
	xa, xb, xc, xd := x[:n], x[n:2*n], x[2*n:3*n], x[3*n:4*n]
	a, b, c, d := root, root, root, root
	for {
		sa, sb, sc, sd := &steps[a], &steps[b], &steps[c], &steps[d]
		na := sa.next + after(xa[sa.feature], sa.limit)
		nb := sb.next + after(xb[sb.feature], sb.limit)
		nc := sc.next + after(xc[sc.feature], sc.limit)
		nd := sd.next + after(xd[sd.feature], sd.limit)
		if na == a && nb == b && nc == c && nd == d {
			break
		}
		a, b, c, d = na, nb, nc, nd
	}
	at[0], at[1], at[2], at[3] = a, b, c, d
}
