package ldlf

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/round"
)

// Fold implements round.Trainer.
func (t *trainer) Fold(r *round.Result) error {
	if r.Sum == nil {
		return fmt.Errorf("ldlf: a result without a sum")
	}
	switch t.phase {
	case phaseSums:
		return t.foldSums(r.Sum.F64)
	case phaseSquares:
		return t.foldSquares(r.Sum.F64)
	case phaseExtremes:
		return t.foldExtremes(r.Sum.F64)
	case phaseStep:
		return t.foldStep(r.Sum)
	case phaseLeaves:
		return t.foldLeaves(r.Sum.F64)
	case phaseValidate:
		t.foldValidation(r.Sum.F64)
		return nil
	}
	return fmt.Errorf("ldlf: nothing to fold in phase %d", t.phase)
}

// foldSums sets the shifts to the means of the training rows.
func (t *trainer) foldSums(sum []float64) error {
	if sum[0] == 0 {
		return errNoRows
	}
	shift, _ := t.halves()
	for i, v := range sum[1:] {
		shift[i] = v / sum[0]
	}
	t.phase = phaseSquares
	return nil
}

// constantShare is the deviation, as a share of the mean, up to which a column
// counts as constant: float64 sums err by less, and float32 values that differ at
// all deviate by more.
const constantShare = 1e-9

// foldSquares sets the scales to one over the population deviation; a constant
// column is shifted only.
func (t *trainer) foldSquares(sum []float64) error {
	if sum[0] == 0 {
		return errNoRows
	}
	shift, scale := t.halves()
	for i, v := range sum[1:] {
		deviation := math.Sqrt(v / sum[0])
		scale[i] = 1
		if deviation > constantShare*math.Abs(shift[i]) {
			scale[i] = 1 / deviation
		}
	}
	t.train()
	return nil
}

// foldExtremes sets shifts and scales of a chunk of columns so that training rows
// span 0 to 1; a constant column is shifted only.
func (t *trainer) foldExtremes(sum []float64) error {
	from, to := t.chunk()
	shift, scale := t.halves()
	counts, slots := sum[:t.shards], sum[t.shards:]
	rows := 0.0
	for _, n := range counts {
		rows += n
	}
	if rows == 0 {
		return errNoRows
	}
	for i := range to - from {
		least, greatest := math.Inf(1), math.Inf(-1)
		for u, n := range counts {
			if n > 0 {
				pair := slots[2*((to-from)*u+i):][:2]
				least, greatest = min(least, pair[0]), max(greatest, pair[1])
			}
		}
		shift[from+i], scale[from+i] = least, 1
		if greatest > least {
			scale[from+i] = 1 / (greatest - least)
		}
	}
	if t.column = uint64(to); to == t.size.features {
		t.train()
	}
	return nil
}

// foldStep takes the gradient step: the mean over the rows drawn and over the
// trees of what the units summed (Eq. 13).
func (t *trainer) foldStep(sum *round.Partial) error {
	rows := sum.F64[0]
	if rows == 0 {
		return errNoRows
	}
	share := 1 / (rows * float64(t.size.trees))
	t.updates++
	if !t.move(sum, float32(share)) {
		return fmt.Errorf("ldlf: Θ is no longer finite after step %d: try a lower learning_rate than %v", t.step+1, t.cfg.LearningRate)
	}
	t.step++
	t.thetaVersion++
	t.loss = sum.F64[1] * share
	t.samples += uint64(rows)
	t.stepped()
	return nil
}

// move applies the optimiser to Θ, with share times the gradient of sum: a part of Θ
// after the other, so that the gradient of each stays in the processor's cache.
func (t *trainer) move(sum *round.Partial, share float32) bool {
	input, step := newScaling(t.input), t.optimizer()
	from, finite := t.moveRows(sum, share, input, &step)
	for from < len(t.theta) {
		to := min(from+len(t.g), len(t.theta))
		g := t.g[:to-from]
		t.f.gradient(g, from, sum, share, input)
		if !step.move(t.theta[from:to], t.first[from:to], part(t.second, from, to), g) {
			finite = false
		}
		from = to
	}
	return finite
}

// moveRows is move of the first n parameters, of whose gradient few rows are there.
func (t *trainer) moveRows(sum *round.Partial, share float32, input scaling, o *optimizer) (n int, finite bool) {
	if t.second != nil {
		return 0, true
	}
	values, index, n := t.f.gradientRows(sum, input)
	if n == 0 {
		return 0, true
	}
	return n, num.MomentumRows(t.theta[:n], t.first[:n], values, index, t.size.outputs, share, o.rate, o.momentum, o.decay)
}

// part returns v[from:to], of nil nil.
func part(v []float32, from, to int) []float32 {
	if v == nil {
		return nil
	}
	return v[from:to]
}

// foldLeaves takes one iteration of Eq. 12.
func (t *trainer) foldLeaves(sum []float64) error {
	if sum[0] == 0 {
		return errNoRows
	}
	updateLeaves(t.q, sum[leafAt:], t.size.labels)
	t.qVersion++
	if t.tellsLoss() {
		t.loss = sum[2] / (sum[1] * float64(t.size.trees))
	}
	t.samples += uint64(sum[0])
	if t.iteration++; t.iteration == uint64(t.cfg.LeafIterations) {
		t.iteration = 0
		t.leafUpdates++
		t.updated()
	}
	return nil
}

// foldValidation keeps the state of the least loss. A split without validation rows
// decides nothing.
func (t *trainer) foldValidation(sum []float64) {
	if rows := sum[0]; rows > 0 {
		loss := sum[1] / rows
		t.validation, t.validatedAt = loss, t.step
		resets := t.resets(loss, sum)
		if loss < t.best.loss {
			t.keep(&t.best, loss)
		}
		if resets {
			t.resetPatience(loss)
		} else {
			t.stale++
		}
	}
	t.validated()
}

// resets reports whether a validation resets the patience: where its loss is the
// least so far, or, with a margin, where it beats the reference by more than so many
// standard errors of the mean difference.
func (t *trainer) resets(loss float64, sum []float64) bool {
	if !t.compares() {
		return loss < t.best.loss
	}
	rows := sum[0]
	gain := sum[2] / rows
	variance := max(0, sum[3]/rows-float64(gain*gain))
	return gain > t.cfg.ValidationMargin*math.Sqrt(variance/rows)
}

func (t *trainer) resetPatience(loss float64) {
	t.stale = 0
	if t.cfg.ValidationMargin > 0 {
		t.keep(&t.reference, loss)
	}
}
