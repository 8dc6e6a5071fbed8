package dldl

import (
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/softmax"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// modelFormat is the version of the tensors.
const modelFormat = 1

// model is a trained network; see algorithms.Model.
type model struct {
	softmax.Predictor
	scaling string
}

var errNoNetwork = errors.New("the network of the model is missing")

// tensors lists the tensors: settings, the network's, then scaling (where there is any).
func (m *model) tensors(l *learner.Tensors) {
	kind := slices.Index(scaling.Kinds, m.scaling)
	if !l.Settings(modelFormat, learner.Within(&m.Features, 1, dataset.MaxFeatures),
		learner.Within(&m.Labels, 1, dataset.MaxLabels),
		learner.Within(&kind, 0, len(scaling.Kinds)-1)) {
		return
	}
	if l.Reading() {
		m.scaling = scaling.Kinds[kind]
		f, err := network.Decode(m.Features, m.Labels, l.Left())
		if f == nil && err == nil {
			err = errNoNetwork
		}
		l.Check(err == nil, "%w", err)
		if err != nil {
			return
		}
		m.Function = f
	}
	network.Tensors(l, m.Function, &m.Weights.Theta)
	m.Weights.Input.Tensors(l, m.scaling, m.Features)
	l.Check(num.Finite64(m.Weights.Input.Shift) && num.Finite64(m.Weights.Input.Scale) && num.Finite32(m.Weights.Theta),
		"the model has a value that is not finite")
}

// Tensors implements algorithms.Model.
func (m *model) Tensors() []algorithms.Tensor { return learner.ListTensors(m.tensors) }

// Describe implements algorithms.Model.
func (m *model) Describe() [][2]string {
	return [][2]string{
		{"network", network.Describe(m.Function)},
		{"scaling", m.scaling},
		{"parameters", fmt.Sprint(len(m.Weights.Theta))},
	}
}
