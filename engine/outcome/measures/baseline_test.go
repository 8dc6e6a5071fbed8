package measures_test

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
)

func sumsOf(differences ...float64) []float64 {
	sums := make([]float64, measures.DifferenceWidth)
	for _, d := range differences {
		measures.AddDifference(sums, d)
	}
	return sums
}

// TestCompareWithBaseline: the verdict changes where the mean difference is one standard error. The values are computed
// by hand: the differences -3, -1, 1 and 3 have the sample variance 20/3, so their standard error is √(5/3).
func TestCompareWithBaseline(t *testing.T) {
	least := math.Sqrt(5.0 / 3)
	for _, c := range []struct {
		shift float64
		want  measures.Verdict
	}{
		{0, measures.NotBetter}, {-least + 0.01, measures.NotBetter}, {-least - 0.01, measures.Better},
		{least - 0.01, measures.NotBetter}, {least + 0.01, measures.Worse},
	} {
		a := measures.CompareWithBaseline(4, sumsOf(c.shift-3, c.shift-1, c.shift+1, c.shift+3))
		if a == nil || a.Verdict != c.want || a.Samples != 4 || math.Abs(a.Difference.Mean-c.shift) > 1e-12 ||
			math.Abs(a.StandardError-least) > 1e-12 {
			t.Errorf("shift %v: %+v, want %s with the standard error %v", c.shift, a, c.want, least)
		}
	}
	if a := measures.CompareWithBaseline(3, sumsOf(-1e-8, -1e-8, -1e-8)); a == nil || a.Verdict != measures.NotBetter {
		t.Errorf("differences from rounding: %+v", a)
	}
	if a := measures.CompareWithBaseline(1, sumsOf(0.5)); a == nil || a.Verdict != "" || a.Unbeaten() {
		t.Errorf("a single sample: %+v", a)
	}
	for _, none := range [][]float64{{}, {1, math.Inf(1)}, {1, math.NaN()}} {
		if a := measures.CompareWithBaseline(len(none), sumsOf(none...)); a != nil {
			t.Errorf("differences %v: %+v, want none", none, a)
		}
	}
}

// TestPooledWithBaseline: folds of different sizes give the comparison of all their samples. If repeats test each
// sample twice, the standard error is of one repeat.
func TestPooledWithBaseline(t *testing.T) {
	first, second := []float64{-0.3, 0.1, -0.2}, []float64{-0.25, 0.05}
	folds := []*measures.AgainstBaseline{measures.CompareWithBaseline(3, sumsOf(first...)),
		measures.CompareWithBaseline(2, sumsOf(second...))}
	all := measures.CompareWithBaseline(5, sumsOf(append(first, second...)...))
	for tests, list := range map[int][]*measures.AgainstBaseline{1: folds, 2: append(folds, folds...)} {
		a := measures.PooledWithBaseline(list, 5)
		if a == nil || a.Samples != 5 || a.Verdict != all.Verdict ||
			math.Abs(a.Difference.Mean-all.Difference.Mean) > 1e-12 || math.Abs(a.StandardError-all.StandardError) > 1e-12 {
			t.Errorf("%d tests of each sample: %+v, want %+v", tests, a, all)
		}
	}
	var alone []*measures.AgainstBaseline
	for _, d := range append(first, second...) {
		alone = append(alone, measures.CompareWithBaseline(1, sumsOf(d)))
	}
	if a := measures.PooledWithBaseline(alone, 5); a == nil || a.Verdict != all.Verdict ||
		math.Abs(a.StandardError-all.StandardError) > 1e-12 {
		t.Errorf("one sample in each fold: %+v, want %+v", a, all)
	}
	if a := measures.PooledWithBaseline(append(folds, nil), 5); a != nil {
		t.Errorf("a fold without comparison: %+v", a)
	}
	if a := measures.PooledWithBaseline(nil, 5); a != nil {
		t.Errorf("no folds: %+v", a)
	}
}
