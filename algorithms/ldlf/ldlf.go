package ldlf

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/round"
)

// Name is the word that selects the algorithm in a spec.
const Name = "ldlf"

// Algorithm is the entry of the registry; see algorithms.Algorithm.
type Algorithm struct{}

var _ algorithms.Algorithm = Algorithm{}

// Name implements algorithms.Algorithm.
func (Algorithm) Name() string { return Name }

// Params implements algorithms.Algorithm.
func (Algorithm) Params() []algorithms.Param {
	params := make([]algorithms.Param, len(settings))
	for i := range settings {
		params[i] = settings[i].Param
	}
	return params
}

// Resolve implements algorithms.Algorithm. Errors are *algorithms.ParamError, or say
// that the dataset has no labels.
func (Algorithm) Resolve(given algorithms.Values, m *dataset.Manifest) (algorithms.Resolved, error) {
	c, err := resolve(given, m)
	if err != nil {
		return algorithms.Resolved{}, err
	}
	return c.resolved()
}

// NewTrainer implements algorithms.Algorithm. An unusable state gives an error that
// wraps ErrState.
func (Algorithm) NewTrainer(j *round.Job, m *dataset.Manifest, state []byte) (algorithms.Trainer, error) {
	c, err := configOf(j)
	if err != nil {
		return nil, err
	}
	t, err := newTrainer(c, j.Seed, m)
	if err != nil {
		return nil, err
	}
	if state == nil {
		t.Start()
		return t, nil
	}
	if err := t.restore(state); err != nil {
		return nil, err
	}
	return t, nil
}

// NewKernel implements algorithms.Algorithm.
func (Algorithm) NewKernel(j *round.Job, m *dataset.Manifest) (round.Kernel, error) {
	c, err := configOf(j)
	if err != nil {
		return nil, err
	}
	return newKernel(c, j.Seed, m)
}

// DecodeModel implements algorithms.Algorithm. Errors wrap ErrModel.
func (Algorithm) DecodeModel(tensors []algorithms.Tensor) (algorithms.Model, error) {
	m, err := decodeModel(tensors)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// configOf reads a job's settings; a validation share that differs from the
// split's would stop early on rows that do not exist.
func configOf(j *round.Job) (*Config, error) {
	c, err := parseConfig(j.Params)
	if err != nil {
		return nil, err
	}
	if j.Split.ValidationFraction != c.ValidationFraction {
		return nil, fmt.Errorf("ldlf: the split validates on %v of the rows, the settings on %v", j.Split.ValidationFraction, c.ValidationFraction)
	}
	return c, nil
}
