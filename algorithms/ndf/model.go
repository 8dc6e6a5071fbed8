package ndf

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
)

// modelFormat is the version of the tensors; FORMAT.md describes them.
const modelFormat = 1

// maxSplits bounds the split nodes of a model.
const maxSplits = 1<<31 - 1

// model implements algorithms.Model.
type model struct {
	features, labels, inputs int
	soft                     bool
	trees                    []*Tree
	networks                 [][]network // by tree and split node
	most                     int         // hidden units of a network
	ensemble                 forest.Ensemble
}

// newModel joins checked trees into a forest.
func newModel(trees []*Tree, features, labels, inputs int, soft bool) *model {
	m := &model{features: features, labels: labels, inputs: inputs, soft: soft, trees: trees}
	var inner []*forest.Tree
	for _, t := range trees {
		list, _ := t.list()
		for _, n := range list {
			m.most = max(m.most, n.hidden)
		}
		m.networks = append(m.networks, list)
		inner = append(inner, t.Tree)
	}
	m.ensemble.Join(inner, features, labels)
	return m
}

// file is a forest in a model file.
type file struct {
	forest.Arrays
	features, labels, soft int
	splits                 int // split nodes of all trees
	all                    networks
}

// tensors lists the tensors: the networks, then the trees.
func (f *file) tensors(l *learner.Tensors) {
	l.Settings(modelFormat, learner.Within(&f.Count, 1, maxTrees), learner.Within(&f.features, 1, dataset.MaxFeatures),
		learner.Within(&f.labels, 1, dataset.MaxLabels), learner.Within(&f.all.width, 1, dataset.MaxFeatures),
		learner.Within(&f.soft, 0, 1),
		learner.Within(&f.splits, 0, maxSplits))
	l.U32("hidden", &f.all.hidden, f.splits)
	l.U32("inputs", &f.all.inputs, f.splits, f.all.width)
	l.F32("shift", &f.all.shift, f.splits, f.all.width)
	l.F32("scale", &f.all.scale, f.splits, f.all.width)
	weights := len(f.all.weights)
	if l.Reading() {
		weights = 0
		for i, hidden := range f.all.hidden {
			l.Check(hidden <= maxHidden, "network %d has %d hidden units, which is not possible", i, hidden)
			weights += parameters(f.all.width, int(min(hidden, maxHidden)))
		}
	}
	l.F32("weights", &f.all.weights, weights)
	f.Width, f.Features = f.labels, f.splits
	f.List(l)
}

// networkTensors is the number of tensors before those of networks.
const networkTensors = 1

// Tensors implements algorithms.Model. The pieces of tensors are the arrays of the trees, not
// copies.
func (m *model) Tensors() []algorithms.Tensor {
	f := file{Arrays: *m.ensemble.Arrays(), features: m.features, labels: m.labels, all: networks{width: m.inputs}}
	if m.soft {
		f.soft = 1
	}
	weights := 0
	for _, t := range m.trees {
		f.splits += len(t.hidden)
		weights += len(t.weights)
	}
	tensors := f.AddPieces(learner.ListTensors(f.tensors))
	tensors[networkTensors+4].Dims = []int{weights}
	for _, t := range m.trees {
		for i, piece := range []algorithms.Tensor{{U32: present(t.hidden)}, {U32: present(t.inputs)}, {F32: t.shift},
			{F32: t.scale}, {F32: t.weights}} {
			x := &tensors[networkTensors+i]
			x.Pieces = append(x.Pieces, piece)
		}
	}
	return tensors
}

// present returns v, but not nil: the type of a tensor's piece is that of the slice which is there.
func present(v []uint32) []uint32 {
	if v == nil {
		return []uint32{}
	}
	return v
}

// Shape implements algorithms.Model.
func (m *model) Shape() (features, labels int) { return m.features, m.labels }

// decodeModel makes a forest from its tensors, whose memory the trees share.
func decodeModel(tensors []algorithms.Tensor) (*model, error) {
	var f file
	if err := learner.ReadTensors(tensors, f.tensors); err != nil {
		return nil, err
	}
	if err := f.all.check(f.features); err != nil {
		return nil, err
	}
	list, err := f.Trees(forest.Degrees)
	if err != nil {
		return nil, err
	}
	trees, all := []*Tree(nil), f.all
	for i, tree := range list {
		splits := tree.Nodes() - tree.Leaves()
		if splits > len(all.hidden) {
			return nil, fmt.Errorf("%w: tree %d has more split nodes than the model has networks", forest.ErrTree, i)
		}
		t := &Tree{Tree: tree, networks: all.cut(splits)}
		if err := t.checkSplits(); err != nil {
			return nil, fmt.Errorf("tree %d: %w", i, err)
		}
		trees = append(trees, t)
	}
	if len(all.hidden) > 0 {
		return nil, fmt.Errorf("%w: %d networks have no split node", forest.ErrTree, len(all.hidden))
	}
	return newModel(trees, f.features, f.labels, f.all.width, f.soft == 1), nil
}

// cut takes the first networks off s, which is checked.
func (s *networks) cut(count int) networks {
	weights := 0
	for _, hidden := range s.hidden[:count] {
		weights += parameters(s.width, int(hidden))
	}
	values := count * s.width
	head := networks{width: s.width, hidden: s.hidden[:count], inputs: s.inputs[:values], shift: s.shift[:values],
		scale: s.scale[:values], weights: s.weights[:weights]}
	*s = networks{width: s.width, hidden: s.hidden[count:], inputs: s.inputs[values:], shift: s.shift[values:],
		scale: s.scale[values:], weights: s.weights[weights:]}
	return head
}

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string {
	networks, units, weights, small := 0, 0, 0, 0
	for _, list := range m.networks {
		for i := range list {
			n := &list[i]
			networks++
			units += n.hidden
			for j, w := range n.weights {
				if !n.isBias(j) {
					weights++
					if w > -smallWeight && w < smallWeight {
						small++
					}
				}
			}
		}
	}
	routing := routingHard
	if m.soft {
		routing = routingSoft
	}
	pairs := append(m.ensemble.DescribeTrees(),
		[2]string{"routing", routing},
		[2]string{"networks", fmt.Sprintf("%d of %d inputs, %.1f hidden units each", networks, m.inputs,
			float64(units)/float64(max(1, networks)))},
		[2]string{"weights", fmt.Sprintf("%d, %.1f %% within ±%g", weights, 100*float64(small)/float64(max(1, weights)),
			smallWeight)})
	return pairs
}

// smallWeight is a weight that Describe counts as small.
const smallWeight = 0.01

// treeShape is what the trees of a job have in common.
type treeShape struct {
	features, labels, inputs int
	soft                     bool
}

func (s treeShape) decode(b []byte) (*Tree, error) {
	return decodeTree(b, s.features, s.labels, s.inputs)
}

func (s treeShape) model(trees []*Tree) *model {
	return newModel(trees, s.features, s.labels, s.inputs, s.soft)
}

func shapeOf(c *Config, m *dataset.Manifest) treeShape {
	return treeShape{features: m.Features, labels: m.Labels, inputs: c.inputs(m.Features), soft: c.Routing == routingSoft}
}
