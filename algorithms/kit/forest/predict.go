package forest

import (
	"github.com/coppice-ldl/coppice/dataset"
)

// blockBytes and blockRows bound the rows that are predicted at a time: each tree is read
// into the processor's cache once for a block, and a block's used features fit in beside it.
const (
	blockBytes = 256 << 10
	blockRows  = setRows * blockHalves
)

// predictor is the working memory of one caller of Predict. What walks and sets of rows need is
// made when the first rows take that way.
type predictor struct {
	x       []uint32    // the used features of a block of rows, or of one row; zeroBits where unset
	written []uint32    // indices in x that sparse rows have set
	dense   int         // dense rows have set x[:dense]
	leaves  []uint32    // by row of the block, or by tree: the leaf that was reached
	sums    []float64   // rows×labels
	rows    int         // that walk together
	sets    *setScratch // of rows that are not walked
}

// NewScratch implements algorithms.Model.
func (m *Ensemble) NewScratch() any {
	width := m.walker().width
	trees := (len(m.trees) + lanes - 1) / lanes * lanes
	return &predictor{
		rows:   max(lanes, min(blockRows, blockBytes/4/width)/lanes*lanes),
		leaves: make([]uint32, max(blockRows, trees)), sums: make([]float64, blockRows*m.labels),
	}
}

// makeX makes x for so many values, if it has fewer.
func (p *predictor) makeX(values int) {
	if len(p.x) >= values {
		return
	}
	p.x = make([]uint32, values)
	for i := range p.x {
		p.x[i] = zeroBits
	}
}

// EachSums computes, for each row, the sums of the leaves that the row reaches (rows×labels), in
// the order of the trees. It calls do with the sums of some rows at a time, from row
// from on; do may change them. scratch is of NewScratch.
func (m *Ensemble) EachSums(refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any, do func(from int, sums []float64)) {
	p := scratch.(*predictor)
	for from := 0; from < len(refs); {
		n := min(blockRows, len(refs)-from)
		sums := p.sums[:n*m.labels]
		clear(sums)
		m.AddSums(sums, refs[from:from+n], shard, scratch)
		do(from, sums)
		from += n
	}
}

// AddSums adds to each row of sums (rows×labels) the leaves that the row reaches, in the order of
// the trees.
func (m *Ensemble) AddSums(sums []float64, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any) {
	p := scratch.(*predictor)
	for len(refs) > 0 {
		n := min(blockRows, len(refs))
		if m.divides(refs[:n], shard) {
			m.addDivided(sums[:n*m.labels], refs[:n], shard, p)
		} else {
			m.addWalked(sums[:n*m.labels], refs[:n], shard, p)
		}
		sums, refs = sums[n*m.labels:], refs[n:]
	}
}

// addWalked is AddSums for rows that walk. Groups of eight rows walk down one tree together; a
// single row walks down eight trees at a time.
func (m *Ensemble) addWalked(sums []float64, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, p *predictor) {
	w := m.walker()
	if w.fits && len(refs) >= lanes {
		p.makeX(p.rows * w.width)
	}
	p.makeX(w.width)
	from := shards{get: shard}
	for w.fits && len(refs) >= lanes {
		n := min(p.rows, len(refs)/lanes*lanes)
		for i, ref := range refs[:n] {
			p.write(w, i/lanes*lanes*w.width+i%lanes, lanes, from.of(ref), int(ref.Pos))
		}
		m.addBlock(sums[:n*m.labels], w, p, n)
		p.clear()
		sums, refs = sums[n*m.labels:], refs[n:]
	}
	for i, ref := range refs {
		p.write(w, 0, 1, from.of(ref), int(ref.Pos))
		m.addRow(sums[i*m.labels:(i+1)*m.labels], w, p)
		p.clear()
	}
}

// write writes the used features of a row to x[from], x[from+stride] and so on.
func (p *predictor) write(w *walker, from, stride int, r *dataset.Rows, pos int) {
	if !r.Sparse {
		for c, v := range r.Dense(pos) {
			if at := w.compact[c]; at != unused {
				p.x[from+int(at)*stride] = clamp(v)
			}
		}
		p.dense = max(p.dense, from+w.width*stride)
		return
	}
	columns, values := r.NonZeros(pos)
	for i, c := range columns {
		if at := w.compact[c]; at != unused {
			place := from + int(at)*stride
			p.x[place] = clamp(values[i])
			p.written = append(p.written, uint32(place))
		}
	}
}

// clear sets x to zeroBits again.
func (p *predictor) clear() {
	for _, at := range p.written {
		p.x[at] = zeroBits
	}
	for i := range p.x[:min(p.dense, len(p.x))] {
		p.x[i] = zeroBits
	}
	p.written, p.dense = p.written[:0], 0
}

// addBlock adds the leaves of the first n rows of p.x.
func (m *Ensemble) addBlock(sums []float64, w *walker, p *predictor, n int) {
	leaves := p.leaves[:n]
	for t, root := range w.roots {
		walkRows(leaves, &w.nodes, p.x, w.width, root, w.depths[t])
		m.addTree(sums, t, leaves)
	}
}

// addTree adds the leaves of tree t that rows reached.
func (m *Ensemble) addTree(sums []float64, t int, reached []uint32) {
	tree := m.trees[t]
	if tree.Labels == m.labels {
		addLeaves(sums, tree.leaves, reached, m.labels)
		return
	}
	label := t % m.labels
	for i, leaf := range reached {
		sums[i*m.labels+label] += float64(tree.leaves[leaf])
	}
}

// addRow adds the leaves of the row that begins p.x.
func (m *Ensemble) addRow(sums []float64, w *walker, p *predictor) {
	leaves := p.leaves[:(len(m.trees)+lanes-1)/lanes*lanes]
	if w.fits {
		for i := copy(leaves, w.roots); i < len(leaves); i++ {
			leaves[i] = w.roots[0]
		}
		walkTrees(leaves, &w.nodes, p.x)
	} else {
		for t, tree := range m.trees {
			leaves[t] = w.descend(tree, p.x)
		}
	}
	for t := range m.trees {
		m.addTree(sums, t, leaves[t:t+1])
	}
}

// descend walks a row down a tree whose numbers do not fit in walkNodes.
func (w *walker) descend(t *Tree, x []uint32) (leaf uint32) {
	at := uint32(0)
	for t.feature[at] != leafMark {
		at = t.left[at] + walkRight(x[w.compact[t.feature[at]]], orderedBits(ceil32(t.threshold[at])))
	}
	return t.left[at]
}

// addDivided is AddSums for a block of rows that go down the trees as sets.
func (m *Ensemble) addDivided(sums []float64, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, p *predictor) {
	f := m.sets()
	if p.sets == nil {
		p.sets = f.newScratch()
	}
	s := p.sets
	s.note(f, refs, shard)
	used := (len(refs) + setRows - 1) / setRows
	for t := range f.trees {
		tree := &f.trees[t]
		divideSets(&s.space, used, s.answers, tree.borders)
		for h := range used {
			numberLeaves((*[setRows]uint32)(p.leaves[h*setRows:]), s.space.planes[h][:tree.planes], tree.leaf)
		}
		m.addTree(sums, t, p.leaves[:len(refs)])
	}
	clear(s.answers)
}
