// Package edllrl is EDL-LRL of Jia et al. 2019: a maximum-entropy model whose predictions for similar samples are to
// have a low rank. The paper calls this local low-rank label correlations.
//
// The samples have groups, by k-means of their label distributions d. With the predictions P_g of the samples of group
// g as rows, the objective is
//
//	½ Σ ‖p - d‖² + ½ N l2 ‖W‖² + λ Σ_g ‖P_g‖_tr
//
// over N samples, where ‖·‖_tr is the sum of singular values. ADMM minimises it in steps. A step runs L-BFGS on W, with
// the loss ½‖p - d‖² + Λ(p - z) + ½ρ‖p - z‖² of a sample. Then Z_g is the singular value threshold of P_g + Λ_g/ρ at
// λ/ρ, and the multipliers gain ρ(P - Z). Z and the
// multipliers are 0 at first.
//
// z and Λ of a sample follow from its predictions under the weights at the end of each step, and from a matrix T_g of
// each group: Z_g = (P_g + Λ_g/ρ) T_g. So no worker owns a state of samples. The trainer sends the weights and the
// matrices of all steps, and a task computes z and Λ of its samples from them. It does so once in a step, as long as
// there is memory for the result. T_g follows from a sum of products of labels.
//
// The paper's text was not at hand; the authors' program gives the terms. It has a gradient of the softmax that is
// diagonal, takes wrong samples for the groups, and has λ = 1e-7, so that the rank plays no part. This package has the
// gradient of the objective. There are no validation samples.
package edllrl

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/clusters"
	"github.com/coppice-ldl/coppice/algorithms/kit/lbfgs"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Name is the word that selects the algorithm in a spec.
const Name = "edl-lrl"

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "EDLLRL",
			Summary: "maximum-entropy model with predictions of low rank in groups of samples",
			When:    "Use it to compare with its paper; sa-bfgs has a lower K-L divergence and takes less time.",
			Paper: `Jia et al. 2019, "Facial Emotion Distribution Learning by Exploiting Low-Rank Label ` +
				`Correlations Locally"`,
		},
		Doc: "EDL-LRL of Jia et al. 2019: a maximum-entropy model by least squares, whose predictions in groups of " +
			"similar samples have a low rank",
		Predicts: algorithms.Distribution,
		Settings: settings,
		Fill:     (*Config).fill,
		Fits:     (*Config).fits,
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			return newTrainer(j.Config, j.Manifest), nil
		},
		StateVersion: 1,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return newKernel(j.Config, j.Manifest), nil
		},
		Model:  maxent.Decode,
		Memory: (*Config).memory,
	})
}

// Config holds the settings of a job, which settings describes.
type Config struct {
	Preset     string
	Bias       bool
	Scaling    string
	L2         float64
	Lambda     float64
	Rho        float64
	Clusters   int
	Steps      int
	Iterations int
}

// settings lists what a spec may say, in the order of help texts.
var settings = param.Table[Config]{
	param.Word("preset", "auto standardises dense features, and has a bias; paper uses raw features", func(c *Config) *string {
		return &c.Preset
	}, param.Auto, param.Paper),
	param.Bool("bias", "give each label a bias", true, func(c *Config) *bool {
		return &c.Bias
	}).Preset(param.Paper, false),
	scaling.Setting(func(c *Config) *string { return &c.Scaling }),
	param.Float("l2", "weight decay: ½·l2·‖W‖² is added to the loss; W excludes the biases", 0, 1e6, usualRaw,
		func(c *Config) *float64 { return &c.L2 }).Preset(param.Paper, 1e-6).
		Says("auto: 0.01 if features are scaled, else 3e-4; paper: 1e-6"),
	param.Float("lambda", "weight of the trace norms of the predictions of each group, in a sum over all samples", 0, 1e6,
		0.1, func(c *Config) *float64 { return &c.Lambda }),
	param.Float("rho", "weight of the constraints in a step of ADMM; it decides how fast the steps converge", 1e-6, 1e6, 1,
		func(c *Config) *float64 { return &c.Rho }),
	param.Int("clusters", "number of groups of samples, by k-means of the label distributions", 1, 100, 5,
		func(c *Config) *int { return &c.Clusters }).InPaper(),
	param.Int("steps", "number of steps of ADMM", 1, 1000, 20, func(c *Config) *int { return &c.Steps }),
	param.Int("iterations", "maximum number of L-BFGS iterations of a step", 1, 10_000, 20, func(c *Config) *int {
		return &c.Iterations
	}),
}

// The weight decays of preset auto: standardised features have larger weights' worth of noise than raw ones.
const (
	usualScaled = 1e-2
	usualRaw    = 3e-4
)

// fill computes what depends on the data and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	if c.Preset != param.Auto {
		return
	}
	param.StandIn(given, "scaling", &c.Scaling, scaling.Rule(m))
	if c.Scaling != scaling.None {
		param.StandIn(given, "l2", &c.L2, usualScaled)
	}
}

// The bounds of the weights and matrices of all steps, and of the sums of products of labels.
const (
	maxHistory  = 1 << 26
	maxProducts = 1 << 24
)

// stepValues is the number of values of a step that the trainer keeps: weights, then T of each group.
func (c *Config) stepValues(m *dataset.Manifest) int64 {
	return int64(maxent.Evaluation(m.Features, m.Labels)) + int64(c.Clusters)*int64(m.Labels)*int64(m.Labels)
}

// fits refuses too many features or labels.
func (c *Config) fits(m *dataset.Manifest) error {
	if _, err := maxent.Size(m); err != nil {
		return err
	}
	if n := products(c.Clusters, m.Labels); n > maxProducts {
		return param.Errorf("clusters", "the products of labels of %d groups would hold %d values, at most %d are possible",
			c.Clusters, n, maxProducts)
	}
	if n := int64(c.Steps) * c.stepValues(m); n > maxHistory {
		return param.Errorf("steps", "the weights of %d steps would hold %d values, at most %d are possible: use fewer steps",
			c.Steps, n, maxHistory)
	}
	return nil
}

// products is the number of values of the sums of products of labels.
func products(groups, labels int) int64 { return int64(groups) * int64(labels) * int64(labels+1) / 2 }

// memory estimates the memory of a job's trainer.
func (c *Config) memory(m *dataset.Manifest) algorithms.Footprint {
	n := maxent.Evaluation(m.Features, m.Labels)
	sums := max(int64(fullbatchSums+n+1), products(c.Clusters, m.Labels), int64(clusters.MostSums(c.Clusters, m)),
		int64(scaling.MostSums(c.Scaling, m)))
	return algorithms.Footprint{
		Model: 8*int64(n) + 12, Node: 8 * sums, Nodes: int64(len(m.Shards)),
		State: lbfgs.Bytes(n) + 8*int64(c.Steps)*c.stepValues(m) + 16*int64(m.Features) +
			8*int64(c.Clusters*m.Labels) + 512,
	}
}

// errNoModel says that training is not over.
func errNoModel(t *trainer) error {
	return fmt.Errorf("there is no model yet: the job is at step %d of %d", t.step, t.cfg.Steps)
}
