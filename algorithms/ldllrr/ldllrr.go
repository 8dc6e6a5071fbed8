// Package ldllrr is LDL-LRR of Jia et al. 2023: the maximum-entropy model of package maxent, whose loss gains
// a ranking loss, which keeps the order of the labels.
//
// Minimised is the mean over samples of
//
//	K-L(d, p) + (λ/2) Σ_j Σ_k w_jk · l_jk,  w_jk = (d_j - d_k)²
//	l_jk = -t ln q - (1 - t) ln(1 - q),  q = σ(s · (p_j - p_k)),  t = 1 if d_j > d_k, else 0
//
// and the weight decay. The paper's text was not at hand: its abstract and PyLDL 0.1.2, a public program, give the
// weights, the pairs, the cross-entropy, λ = 0.001 and the sharpness s = 100.
//
// The ranking loss is a sum over samples, and follows from the label distribution and the prediction of each. So a
// shard needs no state, and an evaluation sums one number more than sa-bfgs does. The loss of a sample takes
// ½·labels² exponentials and logarithms: up to about 100 labels this is little.
//
// Early stopping validates by K-L alone, as in all algorithms. Preset auto has λ = 0.1 and s = 1: on ten folds of seed
// 77 of SJAFFE, Yeast_spo5 and Yeast_heat these are as good as λ = 0. The paper's s gives a higher K-L there, and λ = 1
// does so on data with little noise. Validation chooses the weight decay.
package ldllrr

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Name is the word that selects the algorithm in a spec.
const Name = "ldl-lrr"

// New returns the algorithm.
func New() algorithms.Algorithm {
	return maxent.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "LDLLRR",
			Summary: "maximum-entropy model with a ranking loss",
			When:    "Use it if the order of the labels matters, or to compare with its paper.",
			Paper:   `Jia et al. 2023, "Label Distribution Learning by Maintaining Label Ranking Relation"`,
		},
		Doc: "LDL-LRR of Jia et al. 2023: a maximum-entropy model whose loss has a ranking loss for each pair of " +
			"labels",
		Settings:     settings,
		StateVersion: 1,
	}, fit, maxent.Added[Config]{Sums: 1, Terms: newTerms})
}

// Config holds the settings of a job, which settings describes.
type Config struct {
	maxent.Fit
	Lambda    float64
	Sharpness float64
}

func fit(c *Config) *maxent.Fit { return &c.Fit }

// settings lists what a spec may say, in the order of help texts.
var settings = maxent.Table(fit, "raw features and no weight decay, and runs all iterations", maxent.Decayed(fit),
	param.Float("lambda", "weight of the ranking loss", 0, 1e6, 0.1, func(c *Config) *float64 {
		return &c.Lambda
	}).Preset(param.Paper, 1e-3),
	param.Float("sharpness", "factor of the difference of two predictions in the ranking loss: with a great one, only "+
		"pairs in the wrong order have a loss", 1e-3, 1e4, 1, func(c *Config) *float64 {
		return &c.Sharpness
	}).Preset(param.Paper, 100))

// terms are the ranking losses of a row: see maxent.Terms. As l_jk = l_kj, each pair is computed once.
type terms struct {
	lambda, sharpness float64
	degrees           []float64 // of the row, which sum to 1
	slopes            []float64 // labels: derivatives of the row's loss by its prediction
}

func newTerms(j *learner.Job[Config]) maxent.Terms {
	n := j.Manifest.Labels
	return &terms{lambda: j.Config.Lambda, sharpness: j.Config.Sharpness, degrees: make([]float64, n),
		slopes: make([]float64, n)}
}

// Sums implements maxent.Terms.
func (t *terms) Sums() int { return 1 }

// Begin implements maxent.Terms.
func (t *terms) Begin(round.Vars) {}

// Add implements maxent.Terms. With slopes b by the prediction, the derivative by score c is p_c·(b_c - pᵀb).
func (t *terms) Add(r, sums, p []float64, d []float32) {
	clear(t.slopes)
	maxent.Degrees(t.degrees, d)
	for j, dj := range t.degrees {
		for k, dk := range t.degrees[:j] {
			high, low, by := j, k, dj-dk
			switch {
			case by == 0:
				continue
			case by < 0:
				high, low = k, j
			}
			weight := float64(t.lambda * float64(by*by))
			loss, slope := softplus(float64(t.sharpness * (p[low] - p[high])))
			sums[0] += float64(weight * loss)
			change := float64(slope * float64(weight*t.sharpness))
			t.slopes[low] += change
			t.slopes[high] -= change
		}
	}
	mean := num.Dot64(p, t.slopes)
	for c, b := range t.slopes {
		r[c] += float64(p[c] * (b - mean))
	}
}

// softplus returns ln(1 + exp(x)), which is -ln σ(-x), and its derivative σ(x).
func softplus(x float64) (value, slope float64) {
	e := num.Exp(-math.Abs(x))
	value = num.Log(1 + e)
	if x < 0 {
		return value, e / (1 + e)
	}
	return value + x, 1 / (1 + e)
}
