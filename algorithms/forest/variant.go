package forest

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/round"
)

// Variant describes a forest algorithm by what differs among them. Its method New
// makes the algorithm.
type Variant struct {
	// Name is the word that selects the algorithm in a spec.
	Name string
	// Classes returns the number of class labels that the Labeller gives, at least 2,
	// for rows with so many labels.
	Classes func(labels int) int
	// RowValue, if set, computes a number from a row's label distribution, once a job for
	// each training row. Labellers find it in BootstrapSample.RowValues.
	RowValue func(label []float32) float64
	// NewLabeller makes the labeller of one grower.
	NewLabeller func(seed uint64) Labeller
}

// New returns the algorithm.
func (f Variant) New() algorithms.Algorithm { return algorithm{f} }

type algorithm struct{ variant Variant }

// Name implements algorithms.Algorithm.
func (a algorithm) Name() string { return a.variant.Name }

// Params implements algorithms.Algorithm.
func (algorithm) Params() []algorithms.Param { return params() }

// Resolve implements algorithms.Algorithm. Errors are *algorithms.ParamError, or say
// that the dataset has no labels.
func (a algorithm) Resolve(given algorithms.Values, m *dataset.Manifest) (algorithms.Resolved, error) {
	return resolve(a.variant.Name, given, m)
}

// NewTrainer implements algorithms.Algorithm. An unusable state gives an error that
// wraps ErrState.
func (a algorithm) NewTrainer(j *round.Job, m *dataset.Manifest, state []byte) (algorithms.Trainer, error) {
	c, err := parseConfig(j.Params)
	if err != nil {
		return nil, err
	}
	if err := checkSplit(c, j, m); err != nil {
		return nil, err
	}
	t := &trainer{cfg: c, features: m.Features, labels: m.Labels}
	if state == nil {
		return t, nil
	}
	return t, t.restore(state)
}

// checkSplit refuses a split that leaves too few training rows. A split that lists the
// rows is checked by the kernel only, which has them.
func checkSplit(c *Config, j *round.Job, m *dataset.Manifest) error {
	if j.Split.Assigned != "" {
		return nil
	}
	roles, err := j.Split.Assign(m.Rows, nil)
	if err != nil {
		return err
	}
	rows := 0
	for _, role := range roles {
		if role == dataset.Train {
			rows++
		}
	}
	return c.checkDraws(rows)
}

// NewKernel implements algorithms.Algorithm. The kernel implements
// round.CollectKernel.
func (a algorithm) NewKernel(j *round.Job, m *dataset.Manifest) (round.Kernel, error) {
	c, err := parseConfig(j.Params)
	if err != nil {
		return nil, err
	}
	if m.Labels == 0 {
		return nil, fmt.Errorf("%s: the dataset has no labels", a.variant.Name)
	}
	return &kernel{variant: a.variant, cfg: *c, seed: j.Seed, labels: m.Labels}, nil
}

// DecodeModel implements algorithms.Algorithm. Errors wrap ErrModel.
func (a algorithm) DecodeModel(tensors []algorithms.Tensor) (algorithms.Model, error) {
	m, err := decodeModel(tensors)
	if err != nil {
		return nil, err
	}
	return m, nil
}
