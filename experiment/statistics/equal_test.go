package statistics

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// of20 are accuracies: counts of 20 rows.
func of20(counts ...int) (list []float64) {
	for _, n := range counts {
		list = append(list, float64(n)/20)
	}
	return list
}

// TestRoundedDifferences: differences of accuracies that are equal as whole numbers tie, and those that are 0 are
// left out. P is stats.wilcoxon of the differences of the whole numbers.
func TestRoundedDifferences(t *testing.T) {
	a, b := of20(14, 14, 10, 14, 12, 10, 9, 10, 15, 17), of20(16, 15, 11, 13, 11, 13, 10, 11, 16, 16)
	d := Differences(a, b)
	if got := Wilcoxon(d); !near(got.P, 0.201171875) {
		t.Errorf("%v, want p = 0.201171875", got)
	}
	for i := range d {
		for k := range d {
			whole := func(v float64) int { return int(math.Round(20 * v)) }
			if (whole(d[i]) == whole(d[k])) != (d[i] == d[k]) {
				t.Errorf("differences %v and %v of 20ths", d[i], d[k])
			}
		}
	}
	// One and the same difference of 1/20 is no spread, in whatever bits it is.
	if got := PairedT(Differences(of20(7, 8, 9, 15), of20(6, 7, 8, 14))); got.P != 0 || !math.IsInf(got.Statistic, 1) {
		t.Errorf("one and the same difference: %v", got)
	}
	if got := CorrectedT(Differences([]float64{.1 + .2, .7}, []float64{.3, .1 + .6}), .1); got != (Test{0, 1}) {
		t.Errorf("differences of rounding alone: %v", got)
	}
}

// TestEqual: what is equal is a matter of the size of the values, and of nothing else.
func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b float64
		want bool
	}{
		{.1 + .2, .3, true}, {4.3e-14, 1.2e-13, false}, {4.3e-14, 4.3e-14 * (1 + 1e-14), true}, {0, 1e-300, false},
		{0, math.Copysign(0, -1), true},
		{1, 1 + 1e-9, false}, {math.Inf(1), math.Inf(1), true}, {math.Inf(1), 1, false}, {math.NaN(), math.NaN(), false},
		{-1, 1, false},
	} {
		if Equal(c.a, c.b) != c.want || Equal(c.b, c.a) != c.want {
			t.Errorf("%v and %v: equal is %v", c.a, c.b, !c.want)
		}
	}
}

// TestPlaces: values that are equal but for rounding share their place.
func TestPlaces(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		values []float64
		higher bool
		want   []int
	}{
		{[]float64{.6699999999999999, .67, .5, nan}, true, []int{1, 1, 2, 0}},
		{[]float64{.67, .6699999999999999, .5, .4}, false, []int{0, 0, 2, 1}},
		{[]float64{nan, nan}, true, []int{0, 0}},
		{[]float64{3}, true, []int{1}},
		{nil, true, []int{}},
	} {
		if got := Places(c.values, c.higher); !slices.Equal(got, c.want) {
			t.Errorf("%v, higher %v: %v, want %v", c.values, c.higher, got, c.want)
		}
	}
}

// TestOrderOfValues: sums, means, deviations and ranks do not depend on the order of values, and a sum is the nearest
// number to the exact one.
func TestOrderOfValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 30).Draw(t, "values")
		exact := new(big.Float).SetPrec(2000)
		for _, v := range values {
			exact.Add(exact, new(big.Float).SetFloat64(v))
		}
		want, _ := exact.Float64()
		sum, moments := Sum(values), MomentsOf(values)
		if sum != want {
			t.Fatalf("sum %v, want %v", sum, want)
		}
		other := slices.Clone(values)
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
		if m := MomentsOf(other); m.Mean != moments.Mean || len(values) > 1 && m.Deviation != moments.Deviation {
			t.Fatalf("%v and %v", moments, m)
		}
	})
	if got := MomentsOf([]float64{.1, .1, .1, .1, .1, .1}); got != (Moments{.1, 0}) {
		t.Errorf("equal values: %v", got)
	}
}

// TestExactFriedman: P counts all ways to rank the models of each dataset.
func TestExactFriedman(t *testing.T) {
	wins := func(n int) (values [][]float64) {
		for range n {
			values = append(values, []float64{1, 2})
		}
		return values
	}
	for n, want := range map[int]float64{2: .5, 4: .125, 5: .0625, 10: 1. / 512} {
		got, err := Friedman(wins(n))
		if err != nil || !got.Exact || !near(got.P, want) || !near(got.Least, want) || !near(got.Statistic, float64(n)) {
			t.Errorf("two models, one wins on %d datasets: %+v, %v; want p = %v", n, got, err, want)
		}
	}
	// stats.binomtest(1, 5).pvalue: a tie is left out.
	got, err := Friedman(append(wins(4), []float64{2, 1}, []float64{3, 3}))
	if err != nil || !near(got.P, .375) || !near(got.Least, .0625) {
		t.Errorf("with a tie: %+v, %v", got, err)
	}
	// Three models on three datasets in one order: 6 of the 6³ ways, as which model is which does not matter.
	got, err = Friedman([][]float64{{1, 2, 3}, {1, 2, 3}, {1, 2, 3}})
	if err != nil || !got.Exact || !near(got.P, 1./36) || !near(got.Least, 1./36) {
		t.Errorf("three models: %+v, %v", got, err)
	}
	// All 216 and 576 ways, one by one.
	for _, c := range []struct {
		values  [][]float64
		chi2, p float64
	}{
		{[][]float64{{1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {2, 3, 1}}, 3.5, 59. / 216},
		{[][]float64{{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 3, 4, 2}}, 6.6, 43. / 576},
	} {
		got, err := Friedman(c.values)
		if err != nil || !near(got.Statistic, c.chi2) || !near(got.P, c.p) {
			t.Errorf("%v: %+v, %v; want χ² %v and p %v", c.values, got, err, c.chi2, c.p)
		}
	}
	// Ties that rounding hides are ties: no model is better.
	got, err = Friedman([][]float64{{.1 + .2, .3}, {.3, .1 + .2}, {.6699999999999999, .67}, {.7, .1 + .6}})
	if err != nil || got.P != 1 || got.Statistic != 0 {
		t.Errorf("ties: %+v, %v", got, err)
	}
}

// TestExactFriedmanOfMany: the greatest numbers of models and datasets for which P is exact take little time.
func TestExactFriedmanOfMany(t *testing.T) {
	for k, n := range exactUpTo {
		var values [][]float64
		for d := range n {
			var row []float64
			for m := range k {
				row = append(row, float64((m*(d+1)+d)%k))
			}
			values = append(values, row)
		}
		if got, err := Friedman(values); err != nil || !got.Exact || !(got.P > 0 && got.P <= 1) ||
			got.Least > got.P*(1+1e-9) {
			t.Errorf("%d models on %d datasets: %+v, %v", k, n, got, err)
		}
	}
	if got, err := Friedman([][]float64{{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 2, 3, 4, 5, 6, 7, 8, 9}}); err != nil ||
		got.Exact || got.Least != 0 {
		t.Errorf("nine models: %+v, %v", got, err)
	}
}
