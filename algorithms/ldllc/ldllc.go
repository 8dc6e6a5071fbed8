// Package ldllc is LDLLC of Jia et al. 2018: the maximum-entropy model of package maxent with a penalty, which moves
// the weights of correlated labels towards each other, and the weights of opposite labels apart.
//
// Minimised is the mean over samples of K-L(d, p), the weight decay, and
//
//	(λ/2) Σ_j Σ_{k≠j} s_jk √(‖w_j - w_k‖² + 1e-6)
//
// where w_j are the weights of label j without the bias and s_jk is the sign of Pearson's correlation of w_j and w_k, 0
// if one of them is constant. The paper's text was not at hand: its abstract and PyLDL, a public program, give the
// penalty. PyLDL minimises sums over samples and no decay, where λ = 0.001 changes next to nothing; here λ is of the
// mean.
//
// The penalty depends only on the weights. The trainer adds it, and the rounds are the same as in sa-bfgs. So shards,
// folds, ensembles and early stopping, which validates by K-L, know nothing of it. The gradient takes the signs as
// constants. The penalty jumps where a sign changes, and L-BFGS treats such a step as too long. With opposite
// labels, the penalty falls without bound, and only the decay ends this: l2 = 0 is refused.
package ldllc

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Name is the word that selects the algorithm in a spec.
const Name = "ldllc"

// New returns the algorithm.
func New() algorithms.Algorithm {
	return maxent.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "LDLLC",
			Summary: "maximum-entropy model with correlated weights",
			When:    "Use it to compare with its paper; sa-bfgs is as accurate and takes less time.",
			Paper:   `Jia et al. 2018, "Label Distribution Learning by Exploiting Label Correlations"`,
		},
		Doc: "LDLLC of Jia et al. 2018: a maximum-entropy model with a penalty of the distances between the weights of " +
			"labels",
		Settings: settings,
		Fill: func(c *Config, given param.Values, m *dataset.Manifest) {
			c.Fit.Fill(given, m)
			if c.Preset == param.Auto {
				param.StandIn(given, "l2", &c.L2, max(c.L2, leastDecay))
			}
		},
		StateVersion: 1,
	}, fit, maxent.Added[Config]{Penalty: func(j *learner.Job[Config]) func(g, w []float64) float64 {
		p := &penalty{lambda: j.Config.Lambda, labels: j.Manifest.Labels,
			centred: make([]float64, j.Manifest.Labels*j.Manifest.Features), difference: make([]float64, j.Manifest.Features)}
		return p.add
	}})
}

// Config holds the settings of a job, which settings describes.
type Config struct {
	maxent.Fit
	Lambda float64
}

func fit(c *Config) *maxent.Fit { return &c.Fit }

// leastDecay is the weight decay of preset auto at least.
const leastDecay = 1e-4

// settings lists what a spec may say, in the order of help texts.
var settings = maxent.Table(fit, "raw features, and runs all iterations",
	param.Float("l2", "weight decay: ½·l2·‖W‖² is added to the loss; W excludes the biases. Without a decay, the penalty "+
		"of opposite labels would fall without bound", 1e-9, 1e6, leastDecay, func(c *Config) *float64 { return &c.L2 }).
		Preset(param.Paper, 0.01).
		Says("auto: 1e-4 with decay path or at least 5,000 samples per feature, else 0.01 if features are scaled, else "+
			"3e-4; paper: 0.01"),
	param.Float("lambda", "weight of the distances between the weights of labels", 0, 1e6, 1e-3,
		func(c *Config) *float64 {
			return &c.Lambda
		}))

// penalty is the penalty with its memory.
type penalty struct {
	lambda     float64
	labels     int
	centred    []float64 // labels×features: the weights of each label, less their mean
	difference []float64 // features: of two labels' weights
}

// add adds the gradient of the penalty of weights w (features×labels) to g, and returns the penalty.
func (p *penalty) add(g, w []float64) float64 {
	features := len(p.difference)
	for j := range p.labels {
		row, mean := p.centred[j*features:][:features], 0.0
		for i := range row {
			row[i] = w[i*p.labels+j]
			mean += row[i]
		}
		num.AddConstant(row, -mean/float64(features))
	}
	sum := 0.0
	for j := range p.labels {
		for k := range j {
			covariance := num.Dot64(p.centred[j*features:][:features], p.centred[k*features:][:features])
			if covariance == 0 {
				continue
			}
			square := 0.0
			for i := range p.difference {
				by := w[i*p.labels+j] - w[i*p.labels+k]
				p.difference[i] = by
				square += float64(by * by)
			}
			distance := math.Sqrt(square + smoothing)
			weight := math.Copysign(p.lambda, covariance)
			sum += float64(weight * distance)
			weight /= distance
			for i, by := range p.difference {
				g[i*p.labels+j] += float64(weight * by)
				g[i*p.labels+k] -= float64(weight * by)
			}
		}
	}
	return sum
}

// smoothing makes the distance of equal weights smooth.
const smoothing = 1e-6
