package boost

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Variant has the parts of a boosting algorithm that the algorithms of this package do not share.
// Its method New makes the algorithm.
type Variant struct {
	// Name is the word that selects the algorithm in a spec.
	Name string
	// Doc says what the algorithm is, in one line.
	Doc string
	// About says what the algorithm is for, and where it comes from.
	About algorithms.About
	// PerLabel says that a round has a tree for each label, whose leaves have one number. Else a
	// round has one tree, whose leaves have a number for each label.
	PerLabel bool
	// L2 says that there is a setting l2.
	L2 bool
	// Factor returns the factor of the trees' sums beside the learning rate, of so many labels.
	Factor func(labels int) float64
	// NewCriterion makes the criterion of one grower.
	NewCriterion func(c *Config) Criterion
}

// trees returns how many trees a round has.
func (v *Variant) trees(labels int) int {
	if v.PerLabel {
		return labels
	}
	return 1
}

// width returns how many numbers a leaf has.
func (v *Variant) width(labels int) int { return labels / v.trees(labels) }

// New returns the algorithm.
func (v Variant) New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name:       v.Name,
		Doc:        v.Doc,
		About:      v.About,
		Predicts:   algorithms.Distribution,
		Settings:   newSettings(&v),
		Fill:       (*Config).fill,
		Check:      (*Config).check,
		Fits:       (*Config).fits,
		Validation: func(c *Config) (share float64, least int) { return c.ValidationFraction, validationMin },
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			return newTrainer(&v, j.Config, j.Manifest), nil
		},
		StateVersion: stateFormat,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return newKernel(&v, j.Config, j.Manifest), nil
		},
		Model:  func(tensors []algorithms.Tensor) (algorithms.Model, error) { return decodeModel(&v, tensors) },
		Memory: func(c *Config, m *dataset.Manifest) algorithms.Footprint { return memory(&v, c, m) },
	})
}
