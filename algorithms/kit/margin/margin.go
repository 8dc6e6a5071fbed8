// Package margin has what algorithms of classification by distributions share. They train the maximum-entropy model
// of package maxent so that its greatest probability is at the label t with the greatest degree; of equal degrees, t
// is the lowest label. The objective is the mean over samples of a loss of the prediction p, and the weight decay.
// Early stopping, if there is any, validates by the K-L divergence, as in all algorithms.
//
// The losses have kinks, where the derivative by |x| at 0 is 0 and the derivative of a hinge is 0. L-BFGS treats a
// step across a kink as it treats any other.
package margin

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Loss returns the loss of a sample with label distribution d and prediction p, and adds its derivatives by p to
// slopes. All have a value for each label. Top is the label of the greatest degree.
type Loss func(slopes, p, d []float64, top int) float64

// Define makes the algorithm of a definition, whose Config has a Fit, and of the loss of a job.
func Define[C any](d learner.Definition[C], fit func(*C) *maxent.Fit, loss func(*C) Loss) algorithms.Algorithm {
	return maxent.Define(d, fit, maxent.Added[C]{Alone: true, Sums: 1, Terms: func(j *learner.Job[C]) maxent.Terms {
		n := j.Manifest.Labels
		return &terms{loss: loss(j.Config), degrees: make([]float64, n), slopes: make([]float64, n)}
	}})
}

// Table lists the settings: own has the algorithm's. The papers choose the decay from a grid.
func Table[C any](fit func(*C) *maxent.Fit, own ...param.Setting[C]) param.Table[C] {
	return maxent.Table(fit, "raw features, and runs all iterations", maxent.Decayed(fit).Preset(param.Paper, 1e-6).
		Says("auto: 0 with decay path or at least 5,000 samples per feature, else 0.01 if features are scaled, else "+
			"3e-4; paper: 1e-6"), own...)
}

// The decays of preset auto without validation.
const (
	scaledDecay = 0.3
	rawDecay    = 3e-3
)

// Unvalidated returns the table for an algorithm that Fill fills: preset auto has no validation. On SJAFFE, Yeast_spo5
// and Movie, the zero-one loss of LDL-HR and LDLM is lower without early stopping, and their K-L divergence is higher.
func Unvalidated[C any](table param.Table[C]) param.Table[C] {
	for _, x := range [][2]string{
		{"l2", "auto: 0 with decay path or at least 5,000 samples per feature and validation_fraction above 0, else 0.3 if " +
			"features are scaled, else 3e-3; paper: 1e-6"},
		{"validation_fraction", "auto: 0, or with decay path 0.1, and with fewer than 1,000 samples up to 0.2; paper: 0"},
		{"iterations", "auto: 300, or 1000 if validation_fraction is above 0; paper: 300"},
		{"decay", "auto: path if validation_fraction is above 0 and l2 is not given, but fixed with at least 5,000 samples " +
			"per feature; else fixed"},
	} {
		for _, s := range table {
			if p := s.Param(); p.Name == x[0] {
				p.Default = x[1]
			}
		}
	}
	return table
}

// Fill is Fit.Fill for an algorithm with such a table.
func Fill(f *maxent.Fit, given param.Values, m *dataset.Manifest) {
	auto := f.Preset == param.Auto
	if auto && given["decay"] != maxent.DecayPath {
		param.StandIn(given, "validation_fraction", &f.ValidationFraction, 0)
	}
	f.Fill(given, m)
	if !auto || f.ValidationFraction > 0 {
		return
	}
	param.StandIn(given, "iterations", &f.Iterations, 300)
	decay := rawDecay
	if f.Scaling != scaling.None {
		decay = scaledDecay
	}
	param.StandIn(given, "l2", &f.L2, decay)
}

// terms are the losses of rows: see maxent.Terms.
type terms struct {
	loss            Loss
	degrees, slopes []float64 // labels
}

// Sums implements maxent.Terms.
func (t *terms) Sums() int { return 1 }

// Begin implements maxent.Terms.
func (t *terms) Begin(round.Vars) {}

// Add implements maxent.Terms. With slopes b by the prediction, the derivative by score c is p_c·(b_c - pᵀb).
func (t *terms) Add(r, sums, p []float64, d []float32) {
	maxent.Degrees(t.degrees, d)
	clear(t.slopes)
	sums[0] += t.loss(t.slopes, p, t.degrees, Greatest(t.degrees, -1))
	mean := num.Dot64(p, t.slopes)
	for c, b := range t.slopes {
		r[c] += float64(p[c] * (b - mean))
	}
}

// Greatest returns the label of the greatest value but for the label except, of equal values the lowest; -1 if there
// is no other label.
func Greatest(v []float64, except int) int {
	best := -1
	for c, x := range v {
		if c != except && (best < 0 || x > v[best]) {
			best = c
		}
	}
	return best
}

// Distance returns Σ |p_c - d_c| over all labels but for except, which may be -1.
func Distance(p, d []float64, except int) (sum float64) {
	for c, x := range p {
		if c != except {
			sum += math.Abs(x - d[c])
		}
	}
	return sum
}

// AddDistance adds the derivatives of weight·Distance to slopes.
func AddDistance(slopes []float64, weight float64, p, d []float64, except int) {
	for c, x := range p {
		if c != except {
			slopes[c] += float64(weight * sign(x-d[c]))
		}
	}
}

// FromTop returns ‖p - e‖₁, where e has 1 at top and 0 elsewhere.
func FromTop(p []float64, top int) (sum float64) {
	for c, x := range p {
		if c == top {
			x = 1 - x
		}
		sum += math.Abs(x)
	}
	return sum
}

// AddFromTop adds the derivatives of FromTop to slopes.
func AddFromTop(slopes, p []float64, top int) {
	for c, x := range p {
		if c == top {
			x--
		}
		slopes[c] += sign(x)
	}
}

// Hinges returns Σ max(0, margin - p_top + p_c) over all labels but top, and adds the derivatives of weight times this
// to slopes.
func Hinges(slopes []float64, weight, margin float64, p []float64, top int) (sum float64) {
	for c, x := range p {
		if by := margin - p[top] + x; c != top && by > 0 {
			sum += by
			slopes[c] += weight
			slopes[top] -= weight
		}
	}
	return sum
}

// sign is -1, 0 or 1.
func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}
