package forest

import (
	"cmp"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coppice-ldl/coppice/algorithms"
)

// Ensemble is trees that predict together. Either all trees are as wide as there are labels, or
// all have a width of 1: then tree t is about label t mod labels.
type Ensemble struct {
	features, labels int
	trees            []*Tree

	derive  sync.Once
	derived walker

	couldDivide atomic.Int64 // rows × trees that could have gone as sets of rows
	deriveSets  sync.Once
	derivedSets setForest
}

// Join makes m the ensemble of trees, before it predicts.
func (m *Ensemble) Join(trees []*Tree, features, labels int) {
	m.trees, m.features, m.labels = trees, features, labels
}

// walker returns the trees in the form that prediction reads, made on the first call.
func (m *Ensemble) walker() *walker {
	m.derive.Do(func() { m.derived.build(m) })
	return &m.derived
}

// sets returns the trees in the form that takes many sparse rows down together, made on the first
// call.
func (m *Ensemble) sets() *setForest {
	m.deriveSets.Do(func() { m.derivedSets.build(m) })
	return &m.derivedSets
}

// Shape implements algorithms.Model.
func (m *Ensemble) Shape() (features, labels int) { return m.features, m.labels }

// treeTensors is the number of tensors that hold trees, node after node or leaf after leaf.
const treeTensors = 6

// tensors returns the tree's pieces of these tensors.
func (t *Tree) tensors() [treeTensors]algorithms.Tensor {
	return [...]algorithms.Tensor{{U32: t.feature}, {U32: t.left}, {U32: t.samples}, {F64: t.threshold}, {F64: t.gain}, {F32: t.leaves}}
}

// build derives the walker from a checked model.
func (w *walker) build(m *Ensemble) {
	w.order(m)
	size, furthest, leaves := 0, uint32(0), 0
	for _, t := range m.trees {
		size, leaves = size+t.Nodes(), max(leaves, t.Leaves())
		for i, feature := range t.feature {
			if feature != leafMark {
				furthest = max(furthest, t.left[i]-uint32(i))
			}
		}
	}
	w.width = max(1, w.used)
	w.splits, w.fitsSets = (size-len(m.trees))/2, leaves <= 1<<maxPlanes
	w.nodes.bits = uint32(bits.Len32(furthest))
	w.fits = int(w.nodes.bits)+bits.Len(uint(4*(w.width-1))) <= 32 && leaves <= maxLeaves && uint64(size) <= 1<<31
	if !w.fits {
		return
	}
	w.nodes.list = make([]walkNode, 0, size)
	for _, t := range m.trees {
		w.add(t)
	}
}

// order numbers the used features by how many samples passed their nodes: features that
// most rows read are neighbours in memory, and stay in the processor's cache.
func (w *walker) order(m *Ensemble) {
	visits := make([]uint64, m.features)
	for _, t := range m.trees {
		for i, feature := range t.feature {
			if feature != leafMark {
				visits[feature] += 1 + uint64(t.samples[i])
			}
		}
	}
	w.compact = make([]uint32, m.features)
	var used []uint32
	for i, n := range visits {
		if w.compact[i] = unused; n > 0 {
			used = append(used, uint32(i))
		}
	}
	slices.SortFunc(used, func(a, b uint32) int { return cmp.Or(cmp.Compare(visits[b], visits[a]), cmp.Compare(a, b)) })
	for place, feature := range used {
		w.compact[feature] = uint32(place)
	}
	w.used = len(used)
}

// build derives the form.
func (f *setForest) build(m *Ensemble) {
	seen := questionNumbers{number: make(map[uint64]uint32)}
	var questions []uint32
	for _, t := range m.trees {
		questions = seen.appendOf(questions, t)
	}
	order := seen.sort()
	for i, q := range questions {
		questions[i] = order[q]
	}
	f.list(seen.keys, m.features)
	for _, t := range m.trees {
		n := t.Nodes() - t.Leaves()
		f.trees = append(f.trees, newSetTree(t, questions[:n]))
		questions = questions[n:]
	}
}
