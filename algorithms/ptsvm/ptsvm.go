// Package ptsvm is PT-SVM of Geng 2016: problem transformation, and a support vector machine for each pair of labels.
//
// A sample with the label distribution d becomes one sample of each label c, with the weight d_c, times the weight of
// the sample if it has one. For each pair of
// labels a < b, a linear machine separates the samples of a from the samples of b: it minimises
//
//	½‖w‖² + γ Σ_i [d_ia max(0, 1 - w·x_i)² + d_ib max(0, 1 + w·x_i)²]
//
// where x ends with a 1 for the bias. The function is smooth with a piecewise constant second derivative: Newton's
// method with conjugate gradients takes it to a gradient of 1e-6 of the first one. Platt's sigmoid makes a probability
// r_ab of the value f = w·x: 1 / (1 + exp(A f + B)), fitted to the values of three folds, each by a machine that has
// not seen it. The probabilities of all pairs become one label distribution p by the second method of Wu, Lin and Weng
// 2004: p minimises Σ_a Σ_{b≠a} (r_ba p_a - r_ab p_b)² where Σ p = 1, a system of labels equations.
//
// Geng's toolbox draws the samples, and takes LIBSVM's kernel machines; PyLDL has one linear machine for each label
// against all others. The weights, the squared losses and the folds are choices.
//
// A pair is one task on the whole dataset; its folds are its own, and no state stays with shards. Tasks are farmed
// out, and each result is recorded. Validation chooses γ, if it is not given: the first round has the machines of all
// choices, and after the choice all of them are trained again, with the validation samples.
package ptsvm

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "PTSVM",
			Summary: "support vector machines on weighted samples",
			When:    "Use it as a baseline of papers; sa-bfgs is about as accurate and takes much less time.",
			Paper:   `Geng 2016, "Label Distribution Learning"`,
		},
		Doc: "PT-SVM of Geng 2016: a linear support vector machine for each pair of labels, in which each sample counts " +
			"for both labels by its degrees",
		Predicts: algorithms.Distribution,
		Settings: settings,
		Fill:     (*Config).fill,
		Check:    (*Config).check,
		Fits: func(c *Config, m *dataset.Manifest) error {
			if m.Validation != nil && c.Gamma > 0 && c.ValidationFraction > 0 {
				return param.Errorf("gamma", "is given, so the samples of {validation} would choose nothing; omit one of the "+
					"two")
			}
			return fits(m)
		},
		Validation: func(c *Config) (share float64, least int) { return c.ValidationFraction, validationMin },
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			return newTrainer(j.Config, j.Manifest), nil
		},
		StateVersion: 1,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return &kernel{cfg: *j.Config, features: j.Manifest.Features, labels: j.Manifest.Labels,
				rows: j.Manifest.Rows, sparse: j.Manifest.Sparse, key: num.NewKey(j.Seed, "pt-svm/folds")}, nil
		},
		Model: learner.Decoder((*model).tensors),
		Memory: func(c *Config, m *dataset.Manifest) algorithms.Footprint {
			n := 8 * int64(pairs(m.Labels)) * int64(m.Features+machineMore)
			f := algorithms.Footprint{State: n + 256, Model: n + 256, Node: 8 * int64(max(1+len(choices),
				scaling.MostSums(c.Scaling, m))), Nodes: int64(len(m.Shards))}
			if c.Gamma == 0 {
				f.State += (int64(len(choices)) - 1) * n
			}
			if c.Scaling != scaling.None {
				f.State += 16 * int64(m.Features)
			}
			return f
		},
	})
}
