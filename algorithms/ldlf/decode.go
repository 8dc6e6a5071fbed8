package ldlf

import (
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/learner"
	"github.com/coppice-ldl/coppice/internal/num"
)

// modelFormat is the version of the tensors.
const modelFormat = 1

// scalings numbers the scalings in a model's settings.
var scalings = []string{scalingNone, scalingStandard, scalingMinMax}

// tensors lists the tensors: settings, then scaling (where there is any), φ, Θ, q.
func (m *model) tensors(l *learner.Tensors) {
	bias, kind := 0, slices.Index(scalings, m.kind)
	if m.bias {
		bias = 1
	}
	l.Settings(modelFormat, learner.Within(&m.trees, 1, maxTrees), learner.Within(&m.depth, minDepth, maxDepth),
		learner.Within(&m.outputs, 1, maxOutputs), learner.Within(&m.features, 1, maxValues), learner.Within(&m.labels, 1, maxValues),
		learner.Within(&bias, 0, 1), learner.Within(&kind, 0, len(scalings)-1))
	if l.Reading() {
		*m = *newModel(newSizes(&Config{Trees: m.trees, Depth: m.depth, Outputs: m.outputs, Bias: bias == 1}, m.features, m.labels),
			scalings[max(0, kind)], nil, nil, nil, nil)
		l.Check(m.outputs >= m.splits && m.theta() <= maxValues && m.sizes.q() <= maxValues, "%+v are too many values", m.sizes)
	}
	if x := newScaling(m.input); m.kind != scalingNone {
		l.F64("scaling.shift", &x.shift, m.features)
		l.F64("scaling.scale", &x.scale, m.features)
		if l.Reading() {
			m.input = slices.Concat(x.shift, x.scale)
			m.weights.input = newScaling(m.input)
		}
	}
	l.U32("phi", &m.phi, m.trees, m.splits)
	l.F32("theta", &m.weights.theta, m.theta()/max(1, m.outputs), m.outputs)
	l.F32("q", &m.q, m.trees, m.leaves, m.labels)
}

// decodeModel makes a model of its tensors, whose memory it keeps but for the scaling's.
func decodeModel(tensors []algorithms.Tensor) (*model, error) {
	m := new(model)
	return m, learner.ReadTensors(tensors, func(l *learner.Tensors) {
		m.tensors(l)
		l.Check(num.Finite64(m.input) && num.Finite32(m.weights.theta), "a value is not finite")
		l.Check(!slices.ContainsFunc(m.q, func(v float32) bool { return !(v >= 0 && v <= math.MaxFloat32) }),
			"a leaf's probability is negative or not finite")
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
