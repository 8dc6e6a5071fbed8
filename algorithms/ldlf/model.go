package ldlf

import (
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// model is a trained forest; see algorithms.Model.
type model struct {
	sizes
	kind    string // of scaling
	phi     []uint32
	q       []float32
	weights gradient.Weights
	f       gradient.Function
}

// Tensors implements algorithms.Model.
func (m *model) Tensors() []algorithms.Tensor { return learner.ListTensors(m.tensors) }

// Shape implements algorithms.Model.
func (m *model) Shape() (features, labels int) { return m.features, m.labels }

// NewScratch implements algorithms.Model.
func (m *model) NewScratch() any { return newScratch(&m.sizes, m.f) }

// Predict implements algorithms.Model: the mean of the trees' predictions.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, working any) {
	s := working.(*scratch)
	for i, ref := range refs {
		s.Batch = append(s.Batch[:0], gradient.SampleOf(shard(ref.Shard), int(ref.Pos)))
		m.f.Predict(s.F, s.Batch, &m.weights, s.Space)
		predictForest(chunk(dst, i, m.labels), s.F[:m.outputs], m.q, m.phi, &m.sizes, s)
	}
}

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string {
	all := [][2]string{
		{"trees", fmt.Sprint(m.trees)},
		{"depth", fmt.Sprint(m.depth)},
		{"leaves", fmt.Sprintf("%d in each tree", m.leaves)},
		{"outputs", fmt.Sprint(m.outputs)},
		{"bias", fmt.Sprint(m.bias)},
		{"scaling", m.kind},
		{"parameters", fmt.Sprintf("%d of the splits (Θ), %d of the leaves (q)", m.parameters, m.sizes.q())},
	}
	if n, ok := m.f.(*network.Network); ok {
		all = append(all, [2]string{"network", network.Describe(n)})
	}
	return all
}

// modelFormat is the version of the tensors.
const modelFormat = 1

// tensors lists the tensors: settings, then scaling (where there is any), φ, the feature
// function's, q.
func (m *model) tensors(l *learner.Tensors) {
	bias, kind := 0, slices.Index(scaling.Kinds, m.kind)
	if m.bias {
		bias = 1
	}
	if !l.Settings(modelFormat, learner.Within(&m.trees, 1, maxTrees), learner.Within(&m.depth, minDepth, maxDepth),
		learner.Within(&m.outputs, 1, maxOutputs), learner.Within(&m.features, 1, maxValues), learner.Within(&m.labels, 1,
			maxValues),
		learner.Within(&bias, 0, 1), learner.Within(&kind, 0, len(scaling.Kinds)-1)) {
		return
	}
	if l.Reading() {
		m.sizes = newSizes(&Config{Trees: m.trees, Depth: m.depth, Outputs: m.outputs, Bias: bias == 1}, m.features, m.labels)
		m.kind = scaling.Kinds[kind]
		// The feature function's tensors stand between φ and q.
		rest := l.Left()
		phi, q := slices.IndexFunc(rest, func(t algorithms.Tensor) bool { return t.Name == "phi" }), max(0, len(rest)-1)
		n, err := network.Decode(m.features, m.outputs, rest[min(phi+1, q):q])
		l.Check(err == nil, "%w", err)
		if err != nil {
			return
		}
		m.f = &gradient.Linear{Features: m.features, Outputs: m.outputs, Bias: m.bias}
		if n != nil {
			m.f = n
		}
		m.parameters = gradient.Parameters(m.f)
		l.Check(m.outputs >= m.splits && m.parameters <= maxValues && m.sizes.q() <= maxValues,
			"the model has too many values: %+v", m.sizes)
	}
	m.weights.Input.Tensors(l, m.kind, m.features)
	l.U32("phi", &m.phi, m.trees, m.splits)
	network.Tensors(l, m.f, &m.weights.Theta)
	l.F32("q", &m.q, m.trees, m.leaves, m.labels)
}

// decodeModel makes a model of its tensors, whose memory it may keep.
func decodeModel(tensors []algorithms.Tensor) (algorithms.Model, error) {
	m := new(model)
	return m, learner.ReadTensors(tensors, func(l *learner.Tensors) {
		m.tensors(l)
		l.Check(num.Finite64(m.weights.Input.Shift) && num.Finite64(m.weights.Input.Scale) && num.Finite32(m.weights.Theta),
			"the model has a value that is not finite")
		l.Check(!slices.ContainsFunc(m.q, func(v float32) bool { return !(v >= 0 && v <= math.MaxFloat32) }),
			"a leaf has a probability that is negative or not finite")
		if l.Reading() {
			err := m.checkPhi()
			l.Check(err == nil, "%w", err)
		}
	})
}

// checkPhi reports a split node whose output unit does not exist, or comes twice in its tree.
func (m *model) checkPhi() error {
	seen := make([]int, m.outputs)
	for i, unit := range m.phi {
		tree := i/m.splits + 1
		if int(unit) >= m.outputs || seen[unit] == tree {
			return fmt.Errorf("split node %d of tree %d reads output unit %d", i%m.splits, tree-1, unit)
		}
		seen[unit] = tree
	}
	return nil
}

// Graph implements graph.Model. The factors of paths are σ(f) of all outputs, then σ(-f).
func (m *model) Graph(b *graph.Builder, x graph.Value) (graph.Value, error) {
	f, err := network.Graph(b, m.f, &m.weights, x)
	if err != nil {
		return "", err
	}
	f = b.Transpose(f, 1, 0)
	factors := b.Concat(0, b.Op("Sigmoid", f), b.Op("Sigmoid", b.Op("Neg", f)))
	var paths [][]int
	for tree := range m.trees {
		phi := m.treePhi(m.phi, tree)
		for leaf := range m.leaves {
			path := make([]int, m.depth-1)
			for node, at := m.splits+leaf, len(path)-1; node > 0; at, node = at-1, (node-1)/2 {
				path[at] = int(phi[(node-1)/2])
				if node%2 == 0 {
					path[at] += m.outputs
				}
			}
			paths = append(paths, path)
		}
	}
	reached, order := graph.Products(b, factors, paths)
	q := make([]float32, 0, len(m.q))
	for _, leaf := range order {
		q = append(q, m.q[leaf*m.labels:][:m.labels]...)
	}
	sums := b.Op("MatMul", b.Transpose(reached, 1, 0), b.F32(q, len(order), m.labels))
	return b.Op("Div", sums, b.F32([]float32{float32(m.trees)})), nil
}
