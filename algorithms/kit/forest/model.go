package forest

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
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
	return [...]algorithms.Tensor{{U32: t.feature}, {U32: t.left}, {U32: t.samples}, {F64: t.threshold}, {F64: t.gain},
		{F32: t.leaves}}
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

// modelFormat is the version of the tensors; FORMAT.md describes them.
const modelFormat = 1

// maxTrees bounds the trees of a model, as its settings tensor holds their number.
const maxTrees = 1<<32 - 1

// file is a forest in a model file.
type file struct {
	Arrays
	labels int
}

func newFile(m *Ensemble) *file { return &file{Arrays: *m.Arrays(), labels: m.labels} }

// tensors lists the tensors.
func (f *file) tensors(l *learner.Tensors) {
	l.Settings(modelFormat, learner.Within(&f.Count, 1, maxTrees), learner.Within(&f.Features, 1, dataset.MaxFeatures),
		learner.Within(&f.labels, 1, dataset.MaxLabels))
	f.Width = f.labels
	f.List(l)
}

// decodeModel makes a forest from its tensors, whose memory the trees share.
func decodeModel(tensors []algorithms.Tensor) (*model, error) {
	var f file
	if err := learner.ReadTensors(tensors, f.tensors); err != nil {
		return nil, err
	}
	trees, err := f.Trees(Degrees)
	if err != nil {
		return nil, err
	}
	return newModel(trees, f.Features, f.labels), nil
}

// Arrays are the arrays of all trees of a model, one after the other, as tensors. Settings that
// come before them bound Count, Features and Width.
type Arrays struct {
	Count    int // of trees
	Features int // that trees may read
	Width    int // numbers of a leaf

	nodes, leaves []uint32 // of each tree
	evaluations   []float64
	all           Tree
	pieces        []*Tree // of a model that is written
}

// Arrays returns the arrays of the trees.
func (m *Ensemble) Arrays() *Arrays {
	a := &Arrays{Count: len(m.trees), Features: m.features, Width: m.trees[0].Labels, pieces: m.trees}
	for _, t := range m.trees {
		a.nodes, a.leaves = append(a.nodes, uint32(t.Nodes())), append(a.leaves, uint32(t.Leaves()))
		a.evaluations = append(a.evaluations, float64(t.Evaluations))
	}
	return a
}

// List lists the tensors, the last ones of a model. Of a model that is written AddPieces completes them.
func (a *Arrays) List(l *learner.Tensors) {
	l.U32("nodes", &a.nodes, a.Count)
	l.U32("leaves", &a.leaves, a.Count)
	l.F64("gain_evaluations", &a.evaluations, a.Count)
	if l.Reading() {
		a.check(l)
	}
	nodes, leaves := 0, 0
	for i := range a.leaves {
		nodes, leaves = nodes+int(a.nodes[i]), leaves+int(a.leaves[i])
	}
	l.U32("feature", &a.all.feature, nodes)
	l.U32("left", &a.all.left, nodes)
	l.U32("samples", &a.all.samples, nodes)
	l.F64("threshold", &a.all.threshold, nodes)
	l.F64("gain", &a.all.gain, nodes)
	l.F32("leaf", &a.all.leaves, leaves, a.Width)
}

// AddPieces adds the arrays of the trees to the tensors that List listed, and returns these.
func (a *Arrays) AddPieces(tensors []algorithms.Tensor) []algorithms.Tensor {
	for _, t := range a.pieces {
		for i, piece := range t.tensors() {
			x := &tensors[len(tensors)-treeTensors+i]
			x.Pieces = append(x.Pieces, piece)
		}
	}
	return tensors
}

// check refuses sizes and counts that no tree has.
func (a *Arrays) check(l *learner.Tensors) {
	for i := range a.nodes {
		l.Check(a.nodes[i] >= 1 && uint64(a.leaves[i]) == (uint64(a.nodes[i])+1)/2,
			"tree %d is damaged: it has %d nodes and %d leaves", i, a.nodes[i], a.leaves[i])
		e := a.evaluations[i]
		l.Check(e >= 0 && e <= 1<<53 && e == float64(uint64(e)),
			"tree %d is damaged: its number of gain evaluations is %v, which is not possible", i, e)
	}
}

// Trees cuts arrays that were read into trees, and checks these. The trees share the arrays' memory.
func (a *Arrays) Trees(r LeafRange) ([]*Tree, error) {
	list := make([]*Tree, len(a.nodes))
	node, leaf := 0, 0
	for i := range list {
		nodes, leaves := node+int(a.nodes[i]), leaf+int(a.leaves[i])
		list[i] = &Tree{
			Labels: a.Width, Evaluations: uint64(a.evaluations[i]),
			feature: a.all.feature[node:nodes], left: a.all.left[node:nodes], samples: a.all.samples[node:nodes],
			threshold: a.all.threshold[node:nodes], gain: a.all.gain[node:nodes],
			leaves: a.all.leaves[leaf*a.Width : leaves*a.Width],
		}
		if err := list[i].check(a.Features, r); err != nil {
			return nil, fmt.Errorf("tree %d: %w", i, err)
		}
		node, leaf = nodes, leaves
	}
	return list, nil
}

// model implements algorithms.Model.
type model struct{ Ensemble }

// Tensors implements algorithms.Model. The pieces of tensors are the arrays of the trees, not
// copies.
func (m *model) Tensors() []algorithms.Tensor {
	f := newFile(&m.Ensemble)
	return f.AddPieces(learner.ListTensors(f.tensors))
}

// Predict implements algorithms.Model: the mean of the trees' leaves (Eq. 4 of Chen et al.
// 2018), summed in float64 in the order of the trees.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any) {
	trees := float64(len(m.trees))
	m.EachSums(refs, shard, scratch, func(from int, sums []float64) {
		for i, sum := range sums {
			dst[from*m.labels+i] = float32(sum / trees)
		}
	})
}

// newModel joins trees into a forest.
func newModel(trees []*Tree, features, labels int) *model {
	m := new(model)
	m.Join(trees, features, labels)
	return m
}
