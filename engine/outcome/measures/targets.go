package measures

import (
	"math"

	"github.com/coppice-ldl/coppice/dataset"
)

// OfTargets are the errors of targets in bounds. Each is a mean over labels, without a standard deviation over samples.
type OfTargets struct {
	MAE  Stat `json:"mae"`
	MSE  Stat `json:"mse"`
	RMSE Stat `json:"rmse"` // the mean over labels of the roots
	R2   Stat `json:"r2"`
	// ScaledMAE and ScaledMSE are of targets scaled to [-1, 1], so that labels in different units count alike.
	ScaledMAE Stat `json:"mae_scaled"`
	ScaledMSE Stat `json:"mse_scaled"`
	// Labels lists the errors of each label; nil: there are more than mostListed.
	Labels []OfTarget `json:"labels,omitempty"`
}

// OfTarget are the errors of the targets of one label, in their unit. Over folds they are means.
type OfTarget struct {
	MAE  Stat `json:"mae"`
	MSE  Stat `json:"mse"`
	RMSE Stat `json:"rmse"`
	R2   Stat `json:"r2"`
}

// stats lists the averages in the order of Others.
func (o *OfTargets) stats() []*Stat {
	return []*Stat{&o.MAE, &o.MSE, &o.RMSE, &o.R2, &o.ScaledMAE, &o.ScaledMSE}
}

// stats lists the errors of a label.
func (o *OfTarget) stats() []*Stat { return []*Stat{&o.MAE, &o.MSE, &o.RMSE, &o.R2} }

// mostListed is the greatest number of labels whose errors are listed.
const mostListed = 100

// targetWidth is the number of sums of a label: |e|, e², and of targets less the middle of the bounds: t and t².
const targetWidth = 4

// addTargets adds a row to the sums of targets.
func addTargets(sums []float64, b *dataset.Bounds, truth, predicted []float32) {
	for c, q := range truth {
		e := math.Abs(float64(predicted[c]) - float64(q))
		t := float64(q) - (b.Low[c] + float64((b.High[c]-b.Low[c])/2))
		of := sums[targetWidth*c:][:targetWidth]
		of[0] += e
		of[1] += float64(e * e)
		of[2] += t
		of[3] += float64(t * t)
	}
}

// targetsFrom reads the sums of n rows.
func targetsFrom(n float64, sums []float64, b *dataset.Bounds) *OfTargets {
	labels := len(sums) / targetWidth
	o, share := new(OfTargets), 1/float64(labels)
	for c := range labels {
		of := sums[targetWidth*c:][:targetWidth]
		one, unit := targetFrom(n, of), 2/(b.High[c]-b.Low[c])
		values := []float64{one.MAE.Mean, one.MSE.Mean, one.RMSE.Mean, one.R2.Mean, unit * one.MAE.Mean,
			float64(unit*unit) * one.MSE.Mean}
		for i, s := range o.stats() {
			s.Mean += float64(share * values[i])
		}
		if labels <= mostListed {
			o.Labels = append(o.Labels, one)
		}
	}
	for _, s := range o.stats() {
		s.Std = math.NaN()
	}
	return o
}

// targetFrom reads the sums of a label. R² is 1 - Σe²/Σ(t - mean)²; for targets that are all equal it is 1 without any
// error, else 0, as in scikit-learn. It is NaN for fewer than two rows.
func targetFrom(n float64, sums []float64) OfTarget {
	around := max(sums[3]-float64(sums[2]*sums[2])/n, 0)
	if around <= 1e-12*sums[3] { // what rounding leaves of equal targets
		around = 0
	}
	r2 := 1 - sums[1]/around
	switch {
	case n == 0, n <= 1 && around == 0: // weights may sum to less than 2
		r2 = math.NaN()
	case around == 0 && sums[1] == 0:
		r2 = 1
	case around == 0:
		r2 = 0
	}
	mse := sums[1] / n
	return OfTarget{
		MAE: StatOf(n, sums[0], sums[1]), MSE: Stat{mse, math.NaN()}, RMSE: Stat{math.Sqrt(mse), math.NaN()},
		R2: Stat{r2, math.NaN()},
	}
}

// asDistributions returns the targets of a row and the predicted ones as distributions, in the memory of space.
func asDistributions(space []float64, truth, predicted []float32) (d, p []float64) {
	n := len(truth)
	if 2*n > len(space) {
		space = make([]float64, 2*n)
	}
	d, p = space[:n], space[n:2*n]
	dataset.TargetsToDistribution(d, truth)
	dataset.TargetsToDistribution(p, predicted)
	return d, p
}

// TargetNames are the measures of the targets of one row, in the order of OfTargetRow.
var TargetNames = [2]string{"mae_target", "mse_target"}

// OfTargetRow returns the mean absolute and the mean squared error over the targets of one row.
func OfTargetRow(truth, predicted []float32) (of [2]float64) {
	share := 1 / float64(len(truth))
	for c, q := range truth {
		e := float64(predicted[c]) - float64(q)
		of[0] += float64(share * math.Abs(e))
		of[1] += float64(share * float64(e*e))
	}
	return of
}

// AsDistribution returns targets as a distribution: see dataset.TargetsToDistribution.
func AsDistribution(targets []float32) []float64 {
	d := make([]float64, len(targets))
	dataset.TargetsToDistribution(d, targets)
	return d
}
