// Package maxent is the maximum-entropy model p(c|x) = exp(w_c·x + b_c) / Σ_c' exp(w_c'·x + b_c')
// (Geng 2016) and what its fits share: the model file, predictions, the kernel of an evaluation and
// of a validation, the objective of a fullbatch.Training, and the path of decays (path.go). Validation
// chooses a decay along the path.
//
// Weights are float64, (features+1)×labels: a row for each feature, then the offsets. They are
// effective weights, which read features as the rows have them: a trainer that scales features
// folds the scaling into the weights.
//
// An evaluation reads each row once, in blocks that stay in a processor's cache. Features and degrees are
// float32 in the shards; weights, scores, exponentials, residuals and all sums are float64. So the optimum
// loses nothing by the blocks.
package maxent

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Objective is the mean over rows of the K-L divergence and of the terms, ½·L2·‖W‖² without the
// offsets, L2 being Least where that is greater, and the penalty. It implements fullbatch.Objective. A point is W
// of scaled features, (features+1)×labels with a bias, else features×labels.
type Objective struct {
	Features, Labels int
	Bias             bool
	L2               float64
	Summed           bool    // L2 is a weight of the sum over rows, not of the mean
	Least            float64 // the decay of the mean is this at least
	Fit              *scaling.Fit
	// TermSums is Terms.Sums of the kernel's terms. The first of them is the sum of the rows'
	// terms; 0: none.
	TermSums int
	// Alone is true if the K-L divergences are summed, as the training loss, but are not a part of the objective.
	Alone bool
	// Values, if set, are those that the terms read.
	Values []round.Var
	// Penalty, if set, returns a penalty of W (features×labels), which the mean gains, and adds its gradient to g.
	Penalty func(g, w []float64) float64

	weights []float64 // effective ones of the last point
}

// Point returns the number of values of a point.
func (o *Objective) Point() int {
	if o.Bias {
		return (o.Features + 1) * o.Labels
	}
	return o.Features * o.Labels
}

// Sums implements fullbatch.Objective.
func (o *Objective) Sums() int { return Evaluation(o.Features, o.Labels) + o.TermSums }

// AppendVars implements fullbatch.Objective.
func (o *Objective) AppendVars(vars []round.Var, x []float64, version uint64) []round.Var {
	o.weights = o.Effective(o.weights, x)
	vars = append(vars, round.Var{ID: varWeights, Version: version, Data: num.Bytes64(o.weights)})
	return append(vars, o.Values...)
}

// Effective sets dst to the weights, offsets last, that read features as the rows have them: with
// features (x_k - shift_k)·scale_k, w_kc·scale_k, and b_c less the sum of shift_k times these.
func (o *Objective) Effective(dst, x []float64) []float64 {
	n := o.Features * o.Labels
	if dst == nil {
		dst = make([]float64, n+o.Labels)
	}
	offsets := dst[n:]
	clear(offsets)
	copy(dst, x) // with a bias, the offsets too
	input := o.Fit.Values()
	for k, scale := range input.Scale {
		row, shift := dst[k*o.Labels:][:o.Labels], input.Shift[k]
		for c := range row {
			row[c] *= scale
			offsets[c] -= float64(shift * row[c])
		}
	}
	return dst
}

// Fold implements fullbatch.Objective.
func (o *Objective) Fold(g, x []float64, rows, losses float64, sums []float64) float64 {
	n := o.Features * o.Labels
	share := 1 / rows
	residuals := sums[n:][:o.Labels]
	copy(g, sums[:n])
	input := o.Fit.Values()
	for k, scale := range input.Scale {
		row, shift := g[k*o.Labels:][:o.Labels], input.Shift[k]
		for c := range row {
			row[c] = scale * (row[c] - float64(shift*residuals[c]))
		}
	}
	copy(g[n:], residuals)
	for i := range g {
		g[i] *= share
	}
	f := float64(losses * share)
	if o.Alone {
		f = 0
	}
	if o.TermSums > 0 {
		f += float64(sums[n+o.Labels] * share)
	}
	f += o.decay(g, x[:n], share)
	if o.Penalty != nil {
		f += o.Penalty(g[:n], x[:n])
	}
	return f
}

// decay adds L2·W to the gradient and returns ½·L2·‖W‖².
func (o *Objective) decay(g, w []float64, share float64) float64 {
	l2 := o.L2
	if o.Summed {
		l2 *= share
	}
	l2 = max(l2, o.Least)
	if l2 == 0 {
		return 0
	}
	num.AddScaled64(g[:len(w)], l2, w)
	return float64(0.5 * l2 * num.Dot64(w, w))
}
