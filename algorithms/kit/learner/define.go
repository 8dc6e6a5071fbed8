package learner

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// ErrModel is wrapped by every error about the tensors of a model.
var ErrModel = errors.New("the tensors are not a model of this algorithm")

// ErrNoLabels says that a dataset has nothing to learn.
var ErrNoLabels = errors.New("the dataset has no labels to learn")

// Define makes the algorithm of a definition.
func Define[C any](d Definition[C]) algorithms.Algorithm { return &algorithm[C]{d} }

type algorithm[C any] struct{ d Definition[C] }

// Name implements algorithms.Algorithm.
func (a *algorithm[C]) Name() string { return a.d.Name }

// Doc implements algorithms.Algorithm.
func (a *algorithm[C]) Doc() string { return a.d.Doc }

// About implements algorithms.Algorithm.
func (a *algorithm[C]) About() algorithms.About { return a.d.About }

// Predicts implements algorithms.Algorithm.
func (a *algorithm[C]) Predicts() algorithms.Output { return a.d.Predicts }

// Params implements algorithms.Algorithm.
func (a *algorithm[C]) Params() []param.Param { return a.d.Settings.Params() }

// Resolve implements algorithms.Algorithm: the defaults of the preset first, then the given
// settings, then those that follow from them. Errors are *param.Error, or wrap ErrNoLabels.
func (a *algorithm[C]) Resolve(given param.Values, m *dataset.Manifest) (algorithms.Resolved, error) {
	c := new(C)
	if err := a.d.Settings.Fill(c, given, a.d.Name); err != nil {
		return algorithms.Resolved{}, err
	}
	if a.d.Fill != nil {
		a.d.Fill(c, given, m)
	}
	if err := a.d.Settings.Check(c); err != nil {
		return algorithms.Resolved{}, err
	}
	if err := a.check(c); err != nil {
		return algorithms.Resolved{}, err
	}
	if err := a.fits(c, m); err != nil {
		return algorithms.Resolved{}, err
	}
	share, least := a.validation(c)
	raw, err := a.d.Settings.JSON(c)
	if err != nil {
		err = a.errorf("settings: %w", err)
	}
	return algorithms.Resolved{Params: raw, ValidationFraction: share, ValidationMin: least, Weights: a.weights(c)}, err
}

// Divided implements algorithms.Divider.
func (a *algorithm[C]) Divided(params json.RawMessage, s *dataset.Split, m *dataset.Manifest) (json.RawMessage, error) {
	if a.d.Divide == nil {
		return params, nil
	}
	c, err := a.d.Settings.Parse(params)
	if err == nil {
		err = a.d.Divide(c, s, m)
	}
	if err != nil {
		return nil, err
	}
	return a.d.Settings.JSON(c)
}

func (a *algorithm[C]) check(c *C) error {
	if a.d.Check == nil {
		return nil
	}
	return a.d.Check(c)
}

func (a *algorithm[C]) fits(c *C, m *dataset.Manifest) error {
	if m.Labels == 0 {
		return a.errorf("%w", ErrNoLabels)
	}
	if a.d.Fits == nil {
		return nil
	}
	return a.d.Fits(c, m)
}

// validation returns the share and the least number of validation rows.
func (a *algorithm[C]) validation(c *C) (share float64, least int) {
	if a.d.Validation != nil {
		share, least = a.d.Validation(c)
	}
	if share == 0 {
		least = 0
	}
	return share, least
}

func (a *algorithm[C]) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", a.d.Name, fmt.Errorf(format, args...))
}

// config reads a job's settings.
func (a *algorithm[C]) config(j *round.Job) (*C, error) {
	c, err := a.d.Settings.Parse(j.Params)
	if err == nil {
		err = a.check(c)
	}
	if err != nil {
		return nil, a.errorf("settings: %w", err)
	}
	return c, nil
}

// job reads and checks a job. An algorithm whose validation share differs from the split's would
// validate on rows that do not exist.
func (a *algorithm[C]) job(j *round.Job, m *dataset.Manifest) (*Job[C], error) {
	c, err := a.config(j)
	if err != nil {
		return nil, err
	}
	if share, _ := a.validation(c); a.d.Validation != nil && j.Split.ValidationFraction != share {
		return nil, a.errorf("the split has the validation fraction %v, but the settings have %v", j.Split.ValidationFraction, share)
	}
	return &Job[C]{Job: j, Config: c, Manifest: m}, a.fits(c, m)
}

// NewTrainer implements algorithms.Algorithm. Errors about the state wrap fields.ErrState.
func (a *algorithm[C]) NewTrainer(j *round.Job, m *dataset.Manifest, state []byte) (algorithms.Trainer, error) {
	job, err := a.job(j, m)
	if err == nil {
		err = a.checkWeights(j, job.Config)
	}
	if err != nil {
		return nil, err
	}
	t, err := a.d.Trainer(job)
	if err != nil {
		return nil, err
	}
	t.bind(a.d.StateVersion, t.State)
	if state == nil {
		t.Start()
		return t, nil
	}
	if err := fields.Read(state, a.d.StateVersion, t.State); err != nil {
		return nil, a.errorf("%w", err)
	}
	return t, nil
}

// NewKernel implements algorithms.Algorithm.
func (a *algorithm[C]) NewKernel(j *round.Job, m *dataset.Manifest) (round.Kernel, error) {
	job, err := a.job(j, m)
	if err != nil {
		return nil, err
	}
	return a.d.Kernel(job)
}

// SubJob implements algorithms.Parent.
func (a *algorithm[C]) SubJob(j *round.Job, m *dataset.Manifest, unit int) (*round.Job, error) {
	if a.d.SubJob == nil {
		return nil, a.errorf("the algorithm has no sub-jobs")
	}
	job, err := a.job(j, m)
	if err != nil {
		return nil, err
	}
	return a.d.SubJob(job, unit)
}

// DecodeModel implements algorithms.Algorithm. Errors wrap ErrModel.
func (a *algorithm[C]) DecodeModel(tensors []algorithms.Tensor) (algorithms.Model, error) {
	m, err := a.d.Model(tensors)
	if err != nil {
		return nil, a.errorf("%w: %w", ErrModel, err)
	}
	return m, nil
}

// Footprint implements algorithms.Algorithm.
func (a *algorithm[C]) Footprint(j *round.Job, m *dataset.Manifest) (algorithms.Footprint, error) {
	c, err := a.config(j)
	if err != nil {
		return algorithms.Footprint{}, err
	}
	return a.d.Memory(c, m), nil
}
