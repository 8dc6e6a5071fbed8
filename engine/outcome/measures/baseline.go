package measures

import "math"

// DifferenceWidth is the number of sums that describe the differences of K-L divergences of a set of samples: their
// sum, then the sum of their squares.
const DifferenceWidth = 2

// AddDifference adds the difference of a sample to the sums (DifferenceWidth values).
func AddDifference(sums []float64, difference float64) {
	sums[0] += difference
	sums[1] += float64(difference * difference)
}

// A Verdict says how a model compares with the mean baseline.
type Verdict string

// The verdicts. The mean difference of K-L divergences is compared with its standard error.
const (
	Better    Verdict = "better"     // the model's K-L is lower by more than one standard error
	NotBetter Verdict = "not better" // the two differ by at most one standard error
	Worse     Verdict = "worse"      // the model's K-L is higher by more than one standard error
)

// AgainstBaseline compares a model with the mean baseline by the K-L divergences of the same samples.
type AgainstBaseline struct {
	Samples int `json:"samples"`
	// Difference is the K-L divergence of the model minus the mean baseline's, over samples.
	Difference Stat `json:"kl_difference"`
	// StandardError is the standard error of the mean difference; 0 for a single sample, which has no verdict.
	StandardError float64 `json:"standard_error"`
	Verdict       Verdict `json:"verdict,omitempty"`
}

// Unbeaten reports whether the comparison has a verdict, and the model is not better. A nil comparison has none.
func (a *AgainstBaseline) Unbeaten() bool { return a != nil && a.Verdict != "" && a.Verdict != Better }

// rounding bounds differences of K-L divergences that come from rounding predictions to float32.
const rounding = 1e-6

// CompareWithBaseline returns the comparison of n samples from the sums of their differences (DifferenceWidth values);
// nil if there are none, or if a divergence is not finite. The standard error is s/√n, with the sample standard
// deviation s of the differences.
func CompareWithBaseline(n int, sums []float64) *AgainstBaseline {
	return against(StatOf(float64(n), sums[0], sums[1]), n)
}

// PooledWithBaseline returns the comparison of the tested samples of all folds of a dataset, which has so many samples.
// A sample may be tested in several folds. Such samples count once in the standard error. nil: a fold has no
// comparison, or there are no folds.
func PooledWithBaseline(folds []*AgainstBaseline, samples int) *AgainstBaseline {
	n, sum, squares := 0, 0.0, 0.0
	for _, f := range folds {
		if f == nil {
			return nil
		}
		count, d := float64(f.Samples), f.Difference
		n += f.Samples
		sum += float64(count * d.Mean)
		squares += float64(count * float64(float64(d.Mean*d.Mean)+float64(d.Std*d.Std)))
	}
	return against(StatOf(float64(n), sum, squares), min(n, samples))
}

func against(difference Stat, samples int) *AgainstBaseline {
	if samples < 1 || difference.Mean-difference.Mean != 0 || difference.Std-difference.Std != 0 {
		return nil
	}
	a := &AgainstBaseline{Samples: samples, Difference: difference}
	if samples == 1 {
		return a
	}
	a.StandardError, a.Verdict = difference.Std/math.Sqrt(float64(samples-1)), NotBetter
	switch least := max(a.StandardError, rounding); {
	case difference.Mean < -least:
		a.Verdict = Better
	case difference.Mean > least:
		a.Verdict = Worse
	}
	return a
}
