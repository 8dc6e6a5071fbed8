package aabp

import (
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/softmax"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Versions of the tensors.
const (
	modelFormat  = 1
	targetFormat = 2 // of a model of targets
)

// model is a trained network; see algorithms.Model.
type model struct {
	softmax.Predictor
	hidden int
	units  string // of the hidden layer
	kind   string // of scaling
	// targets is true if the model predicts targets in bounds: the logistic function of each output.
	targets bool
}

var unitWords = []string{unitLogistic, unitReLU}

// tensors lists the tensors: settings, then scaling (where there is any), the network's.
func (m *model) tensors(l *learner.Tensors) {
	units, kind := slices.Index(unitWords, m.units), slices.Index(scaling.Kinds, m.kind)
	if !l.Settings(l.Targets(&m.targets, modelFormat, targetFormat), learner.Within(&m.Features, 1, dataset.MaxFeatures),
		learner.Within(&m.Labels, 1, dataset.MaxLabels),
		learner.Within(&m.hidden, 1, maxHidden), learner.Within(&units, 0, len(unitWords)-1), learner.Within(&kind, 0,
			len(scaling.Kinds)-1)) {
		return
	}
	if l.Reading() {
		if m.targets {
			m.Output = logistic
		}
		m.units, m.kind = unitWords[units], scaling.Kinds[kind]
		m.Function = newFunction(&Config{Hidden: m.hidden, Units: m.units, Scaling: m.kind}, 0,
			&dataset.Manifest{Features: m.Features, Labels: m.Labels})
		l.Check(gradient.Parameters(m.Function) <= maxValues, "the model has %d parameters, which is too many",
			gradient.Parameters(m.Function))
	}
	m.Weights.Input.Tensors(l, m.kind, m.Features)
	gradient.Tensors(l, m.Function, &m.Weights.Theta)
	l.Check(num.Finite64(m.Weights.Input.Shift) && num.Finite64(m.Weights.Input.Scale) && num.Finite32(m.Weights.Theta),
		"the model has a value that is not finite")
}

// Tensors implements algorithms.Model.
func (m *model) Tensors() []algorithms.Tensor { return learner.ListTensors(m.tensors) }

// PredictsTargets reports whether the model predicts targets in bounds.
func (m *model) PredictsTargets() bool { return m.targets }

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string {
	return [][2]string{
		{"hidden units", fmt.Sprintf("%d, %s", m.hidden, m.units)},
		{"scaling", m.kind},
		{"parameters", fmt.Sprint(len(m.Weights.Theta))},
	}
}

// Graph implements graph.Model.
func (m *model) Graph(b *graph.Builder, x graph.Value) (graph.Value, error) {
	if !m.targets {
		return m.Predictor.Graph(b, x)
	}
	f, err := network.Graph(b, m.Function, &m.Weights, x)
	if err != nil {
		return "", err
	}
	one := b.Number(1)
	p := b.Op("Div", one, b.Op("Add", one, b.Op("Exp", b.Op("Neg", b.Cast(f, graph.Float64)))))
	return b.Cast(p, graph.Float32), nil
}
