package forest

import (
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
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
	dense   int         // dense rows have set x[:dense], which clear leaves to the next rows
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
func (m *Ensemble) EachSums(refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any,
	do func(from int, sums []float64)) {
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
	if p.dense > 0 {
		for at := range w.width {
			p.x[from+at*stride] = zeroBits
		}
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

// clear sets what sparse rows have set to zeroBits again. Dense rows replace all values of the rows before.
func (p *predictor) clear() {
	if len(p.written) == 0 {
		return
	}
	for _, at := range p.written {
		p.x[at] = zeroBits
	}
	num.Fill(p.x[:min(p.dense, len(p.x))], zeroBits)
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

// setScratch is the working memory of a setForest for one block of rows.
type setScratch struct {
	answers [][blockHalves]rowSet // by question: the rows whose value is far
	space   setSpace
}

func (f *setForest) newScratch() *setScratch {
	s := &setScratch{answers: make([][blockHalves]rowSet, len(f.limits))}
	for h := range s.space.slot {
		for w := range setWords {
			s.space.slot[h][allRows][w] = ^uint64(0)
		}
	}
	return s
}

// complete makes the answers complete: a value that has passed a limit has passed those before it.
func (s *setScratch) complete(f *setForest) {
	for _, q := range f.several {
		answers := s.answers[q.from:q.to]
		for i := len(answers) - 1; i > 0; i-- {
			later, earlier := &answers[i], &answers[i-1]
			for h := range later {
				for w := range later[h] {
					earlier[h][w] |= later[h][w]
				}
			}
		}
	}
}

// Sets of rows are for blocks of at least leastRows rows; a tree has at most splitsPerRow splits
// for each of them, since each split is worked on, whether or not a row comes there. The form is
// made when rowsPerSplit rows could have gone down a tree as sets for each of its splits: making
// it for fewer takes longer than the rows' walks. A forest has at most mostSplits splits: a lane keeps
// 64 bytes of answers for each question, 16 MiB then.
const (
	leastRows    = 64
	splitsPerRow = 8
	rowsPerSplit = 4
	mostSplits   = 1 << 18
)

// divides tells whether a block of rows goes down the trees as sets of rows. Noting a row's values
// takes longer than for its walks, so rows have at most as many values as there are trees.
func (m *Ensemble) divides(refs []dataset.RowRef, shard func(uint32) *dataset.Rows) bool {
	w, work := m.walker(), len(refs)*len(m.trees)
	if len(refs) < leastRows || !w.fitsSets || w.splits > min(mostSplits, splitsPerRow*work) ||
		storedValues(refs, shard, work) > work {
		return false
	}
	return m.couldDivide.Load() >= rowsPerSplit*int64(w.splits) || m.couldDivide.Add(int64(work)) >= rowsPerSplit*
		int64(w.splits)
}

// shards gets the shards of rows: again only where the next row is in another.
type shards struct {
	get    func(uint32) *dataset.Rows
	number uint32
	rows   *dataset.Rows
}

// of returns the shard of a row.
func (s *shards) of(ref dataset.RowRef) *dataset.Rows {
	if s.rows == nil || ref.Shard != s.number {
		s.number, s.rows = ref.Shard, s.get(ref.Shard)
	}
	return s.rows
}

// storedValues counts the values that rows have, up to a limit; dense rows have too many.
func storedValues(refs []dataset.RowRef, shard func(uint32) *dataset.Rows, limit int) (n int) {
	from := shards{get: shard}
	for _, ref := range refs {
		r := from.of(ref)
		if !r.Sparse {
			return limit + 1
		}
		if n += int(r.Start[ref.Pos+1] - r.Start[ref.Pos]); n > limit {
			return n
		}
	}
	return n
}

// note notes the values of rows.
func (s *setScratch) note(f *setForest, refs []dataset.RowRef, shard func(uint32) *dataset.Rows) {
	from := shards{get: shard}
	for i, ref := range refs {
		columns, values := from.of(ref).NonZeros(int(ref.Pos))
		f.noteRow(s.answers, i, columns, values)
	}
	s.complete(f)
}

// walker is a forest in the form that prediction reads. It is derived from the trees and
// never stored.
type walker struct {
	nodes   walkNodes
	roots   []uint32 // by tree: its root among the nodes
	depths  []int    // by tree
	compact []uint32 // by feature: its place among the used ones, or unused
	used    int      // features that split a node
	width   int      // values of a row in walks: used, at least 1
	fits    bool     // nodes are made: all numbers fit in a walkNode

	splits   int  // of all trees
	fitsSets bool // the trees can be a setForest
}

const unused = 1<<32 - 1

// add adds a tree.
func (w *walker) add(t *Tree) {
	w.roots = append(w.roots, uint32(len(w.nodes.list)))
	depth, deepest := make([]uint8, t.Nodes()), uint8(0)
	for i, feature := range t.feature {
		if feature == leafMark {
			deepest = max(deepest, depth[i])
			w.nodes.list = append(w.nodes.list, walkNode{limit: leafLimit + t.left[i]})
			continue
		}
		child := t.left[i]
		depth[child], depth[child+1] = depth[i]+1, depth[i]+1
		w.nodes.list = append(w.nodes.list, walkNode{
			limit: orderedBits(ceil32(t.threshold[i])),
			step:  4*w.compact[feature]<<w.nodes.bits | (child - uint32(i)),
		})
	}
	w.depths = append(w.depths, int(deepest))
}
