// Package ldlscl is LDL-SCL of Zheng, Jia and Li 2018: a maximum-entropy model in which samples have codes, so that
// similar samples share correlations of labels.
//
// k-means of the label distributions d gives m centres P_1 to P_m. A training sample has a code c with m positive
// numbers, its closeness to each centre, and the prediction p = softmax(Wᵀx + Vᵀc). The objective is the mean over
// samples of
//
//	K-L(d, p) + λ1 Σ_l c_l ‖p - P_l‖² + λ2 Σ_l 1/c_l
//
// and ½ λ3 (‖W‖² + ‖V‖²), without the biases. L-BFGS minimises it over W, V and ln c of all training samples together,
// from W = 0, V = 0 and c = 1. The code of a new sample follows from its features: ridge regression from x to ln c of
// the training samples. The weight of the squares of this regression is ridge·tr(XᵀX)/(features + 1), and the bias has
// none. ln c of a new sample is at most 20 away from 0.
//
// The paper's text was not at hand: its abstract and PyLDL, a public program, give the terms. PyLDL trains a network of
// two layers by Adam, and multiplies two means. Here, k-means is deterministic.
//
// The codes are in the trainer, as a part of the point of L-BFGS. An evaluation sums the derivatives by all codes, to
// which each task adds only the codes of its samples. So a dataset has at most 131,072 codes: 26,214 samples with five
// centres. There are no validation samples.
package ldlscl

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/clusters"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/lbfgs"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Name is the word that selects the algorithm in a spec.
const Name = "ldl-scl"

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "LDLSCL",
			Summary: "maximum-entropy model with codes of samples, which share correlations of labels",
			When:    "Use it to compare with its paper; sa-bfgs has a lower K-L divergence and takes less time.",
			Paper:   `Zheng, Jia and Li 2018, "Label Distribution Learning by Exploiting Sample Correlations Locally"`,
		},
		Doc: "LDL-SCL of Zheng, Jia and Li 2018: a maximum-entropy model whose samples have codes, by which similar " +
			"samples share correlations of labels",
		Predicts: algorithms.Distribution,
		Settings: settings,
		Fill:     (*Config).fill,
		Fits:     (*Config).fits,
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			return newTrainer(j.Config, j.Manifest), nil
		},
		StateVersion: 1,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return &kernel{sizesOf(j.Config, j.Manifest), j.Config.Lambda1, j.Config.Lambda2}, nil
		},
		Model:  learner.Decoder((*model).tensors),
		Memory: (*Config).memory,
	})
}

// Config holds the settings of a job, which settings describes.
type Config struct {
	Preset     string
	Bias       bool
	Scaling    string
	Clusters   int
	Lambda1    float64
	Lambda2    float64
	Lambda3    float64
	Ridge      float64
	Iterations int
	Tolerance  float64
}

// settings lists what a spec may say, in the order of help texts.
var settings = param.Table[Config]{
	param.Word("preset", "auto standardises dense features, and has a bias and greater weights; paper uses raw features",
		func(c *Config) *string { return &c.Preset }, param.Auto, param.Paper),
	param.Bool("bias", "give each label a bias", true, func(c *Config) *bool { return &c.Bias }).
		Preset(param.Paper, false),
	scaling.Setting(func(c *Config) *string { return &c.Scaling }),
	param.Int("clusters", "number of centres, by k-means of the label distributions: a sample has a code for each", 1, 100,
		5, func(c *Config) *int { return &c.Clusters }),
	param.Float("lambda1", "weight of the squared distances between a prediction and the centres, times the codes", 0, 1e6,
		1e-3, func(c *Config) *float64 { return &c.Lambda1 }),
	param.Float("lambda2", "weight of the reciprocals of the codes, which keeps codes above 0", 0, 1e6, 1e-3,
		func(c *Config) *float64 { return &c.Lambda2 }),
	param.Float("lambda3", "weight decay: ½·lambda3·(‖W‖² + ‖V‖²) is added to the loss; W excludes the biases", 0, 1e6,
		rawDecay, func(c *Config) *float64 { return &c.Lambda3 }).Preset(param.Paper, 1e-3).
		Says("auto: 0.1 if features are scaled, else 3e-3; paper: 1e-3"),
	param.Float("ridge", "weight of the squares of the regression from features to codes, as a multiple of the mean square "+
		"of a feature over all samples", 1e-9, 1e6, 1, func(c *Config) *float64 { return &c.Ridge }),
	param.Int("iterations", "maximum number of L-BFGS iterations; tolerance may end training earlier", 1, 1<<40, 300,
		func(c *Config) *int { return &c.Iterations }),
	param.Float("tolerance", "stop if no element of the gradient has a greater absolute value; 0: stop only if the "+
		"gradient is exactly 0", 0, 1e6, 1e-7, func(c *Config) *float64 { return &c.Tolerance }),
}

// The decays of preset auto.
const (
	scaledDecay = 0.1
	rawDecay    = 3e-3
)

// fill computes what depends on the data and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	if c.Preset != param.Auto {
		return
	}
	param.StandIn(given, "scaling", &c.Scaling, scaling.Rule(m))
	if c.Scaling != scaling.None {
		param.StandIn(given, "lambda3", &c.Lambda3, scaledDecay)
	}
}

// The bounds of the codes, and of the sums of the regression.
const (
	maxCodes = 1 << 17
	maxSums  = 1 << 25
)

// fits refuses too many samples or features.
func (c *Config) fits(m *dataset.Manifest) error {
	if _, err := maxent.Size(m); err != nil {
		return err
	}
	if n := int64(m.Rows) * int64(c.Clusters); n > maxCodes {
		return param.Errorf("clusters", "the codes of %d samples with %d centres would be %d values, at most %d are possible: "+
			"use sa-bfgs or fewer samples", m.Rows, c.Clusters, n, maxCodes)
	}
	s := sizesOf(c, m)
	if n := s.regression(); n > maxSums {
		return param.Errorf("clusters", "the products of %d features and %d codes would hold %d values, at most %d are "+
			"possible", m.Features, c.Clusters, n, maxSums)
	}
	return nil
}

// sizes are the sizes of a job.
type sizes struct{ features, labels, centres, rows int }

func sizesOf(c *Config, m *dataset.Manifest) sizes {
	return sizes{m.Features, m.Labels, c.Clusters, m.Rows}
}

// weights is the number of effective weights of W, with the offsets.
func (s *sizes) weights() int { return (s.features + 1) * s.labels }

// own is the number of values of V and of ln c of all samples.
func (s *sizes) own() int { return s.centres*s.labels + s.rows*s.centres }

// evaluation is the number of values that an evaluation sums: samples, K-L divergences, the derivatives by W, the other
// terms, the derivatives by V, and by ln c of each sample.
func (s *sizes) evaluation() int { return fullbatch.SumsAt + s.weights() + 1 + s.own() }

// regression is the number of values that the round of the regression sums: products of features, and of features and
// ln c. The last feature is 1.
func (s *sizes) regression() int64 {
	q := int64(s.features + 1)
	return q*(q+1)/2 + q*int64(s.centres)
}

// memory estimates the memory of a job's trainer.
func (c *Config) memory(m *dataset.Manifest) algorithms.Footprint {
	s := sizesOf(c, m)
	point, q := s.weights()+s.own(), int64(m.Features+1)
	sums := max(int64(s.evaluation()), s.regression(), int64(clusters.MostSums(c.Clusters, m)),
		int64(scaling.MostSums(c.Scaling, m)))
	fitted := 8 * (int64(s.weights()) + int64(s.centres*s.labels) + q*int64(s.centres))
	return algorithms.Footprint{
		Model: fitted + 64, Node: 8 * sums, Nodes: int64(len(m.Shards)),
		State: lbfgs.Bytes(point) + 8*int64(point) + 8*q*q + fitted + 16*int64(m.Features) + 8*int64(s.centres*s.labels) +
			512,
	}
}
