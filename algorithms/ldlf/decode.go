package ldlf

import (
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/internal/num"
)

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
		learner.Within(&m.outputs, 1, maxOutputs), learner.Within(&m.features, 1, maxValues), learner.Within(&m.labels, 1, maxValues),
		learner.Within(&bias, 0, 1), learner.Within(&kind, 0, len(scaling.Kinds)-1)) {
		return
	}
	if l.Reading() {
		m.sizes = newSizes(&Config{Trees: m.trees, Depth: m.depth, Outputs: m.outputs, Bias: bias == 1}, m.features, m.labels)
		var err error
		m.kind = scaling.Kinds[kind]
		m.f, err = m.decodeFunction(functionTensors(l.Left()))
		l.Check(err == nil, "%w", err)
		if err != nil {
			return
		}
		m.parameters = gradient.Parameters(m.f)
		l.Check(m.outputs >= m.splits && m.theta() <= maxValues && m.sizes.q() <= maxValues, "the model has too many values: %+v", m.sizes)
	}
	m.weights.Input.Tensors(l, m.kind, m.features)
	l.U32("phi", &m.phi, m.trees, m.splits)
	network.Tensors(l, m.f, &m.weights.Theta)
	l.F32("q", &m.q, m.trees, m.leaves, m.labels)
}

// functionTensors returns what stands between φ and q, the feature function's tensors.
func functionTensors(tensors []algorithms.Tensor) []algorithms.Tensor {
	i := slices.IndexFunc(tensors, func(t algorithms.Tensor) bool { return t.Name == "phi" })
	return tensors[min(i+1, max(0, len(tensors)-1)):max(0, len(tensors)-1)]
}

// decodeModel makes a model of its tensors, whose memory it may keep.
func decodeModel(tensors []algorithms.Tensor) (*model, error) {
	m := new(model)
	return m, learner.ReadTensors(tensors, func(l *learner.Tensors) {
		m.tensors(l)
		l.Check(num.Finite64(m.weights.Input.Shift) && num.Finite64(m.weights.Input.Scale) && num.Finite32(m.weights.Theta), "the model has a value that is not finite")
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
