package statistics

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Golden values are those of SciPy 1.17.1 with NumPy 2.4.6, printed by repr; the call stands at
// each.

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-11*max(1, math.Abs(b)) }

// Measures of two models over ten folds; one pair ties.
var (
	first  = []float64{.0412, .0388, .0455, .0431, .0397, .0440, .0402, .0429, .0418, .0460}
	second = []float64{.0431, .0401, .0452, .0449, .0397, .0467, .0410, .0415, .0437, .0471}
)

func TestT(t *testing.T) {
	d := Differences(first, second)
	for _, c := range []struct {
		what      string
		got, want Test
	}{
		// stats.ttest_rel(first, second)
		{"plain", PairedT(d), Test{-2.508517813192303, 0.03339186542374884}},
		// By hand: t = mean / sqrt(var(ddof=1) * (1/10 + n2/n1)), 2 * stats.t.sf(|t|, 9).
		{"corrected, 9 to 1", CorrectedT(d, 1./9), Test{-1.726480365122667, 0.11833681658973695}},
		{"corrected, Yeast", CorrectedT(d, 247./2218), Test{-1.7254570715103696, 0.11852693168803889}},
		{"no difference", PairedT([]float64{0, 0, 0}), Test{0, 1}},
		{"one and the same difference", CorrectedT([]float64{-.1, -.1, -.1}, .1), Test{math.Inf(-1), 0}},
	} {
		if c.got != c.want && !(near(c.got.Statistic, c.want.Statistic) && near(c.got.P, c.want.P)) {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
	if one := PairedT([]float64{1}); !math.IsNaN(one.P) {
		t.Errorf("one difference: %v", one)
	}
	if got := CohensD(d); !near(got, -0.7932629840792457) { // d.mean() / d.std(ddof=1)
		t.Errorf("d = %v", got)
	}
	if got := CohensD([]float64{0, 0}); got != 0 {
		t.Errorf("no difference: d = %v", got)
	}
}

// long and longTies are np.random.default_rng(3): normal(.3, 1, 60) rounded to thousandths, then
// integers(-4, 6, 60).
var (
	long = []float64{
		2.341, -2.256, .718, -.268, -.153, .084, -1.72, .068, -.565, 3.623, .526, -.053, .019, -.368, -.755, -.091, .782,
		.061, 1.258, .1,
		.324, 1.846, .845, -.205, .117, .841, 2.235, .03, .056, 1.302, -.586, .008, 1.183, .88, .392, .97, -2.528, 1.321,
		-.66, -1.369,
		.576, 1.001, -.145, -.776, .326, .247, 1.706, 1.047, .494, 1.412, .094, -.626, .884, .883, .085, -.483, .529,
		-2.194, .99, .791,
	}
	longTies = []float64{
		-4, 3, -3, 3, -1, 1, 5, 5, 0, -2, -2, 4, 1, -3, 4, 5, 5, 2, 5, 2, 1, 5, 2, 3, -1, 3, 5, -4, 1, -1,
		-4, -4, -2, -3, 3, -2, 2, 4, 0, -3, -4, -2, 0, 0, -1, 4, 1, 5, 5, 3, -4, -2, 3, 1, 5, 3, 4, -4, -2, 2,
	}
)

// TestWilcoxon: stats.wilcoxon(d, method=...) with "auto", "asymptotic" and, for differences
// without zeros and ties, "exact". SciPy's own exact distribution knows no ties; its "auto"
// counts signs where there are at most 13.
func TestWilcoxon(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		what                     string
		d                        []float64
		statistic                float64
		auto, approximate, exact float64 // exact NaN: SciPy has none
	}{
		{"plain", []float64{1.5, -2.25, 3, 4.5, -.75, 6, 7.125, 8, -9.5, 10.25}, 13, 0.16015625, 0.13941397332153205,
			0.16015625},
		{"ties", []float64{1, -1, 2, 2, -2, 3, 3, 3, -3, 4, 5, 5}, 13, 0.04443359375, 0.04014281805589284, 0.04443359375},
		{"zeros", []float64{0, 0, 1, -2, 3, 4, -5, 6, 7, 8, 9}, 7, 0.07421875, 0.0663160312989308, 0.07421875},
		{"both", []float64{0, 0, 0, 1, 1, -1, 2, 2, -3, 3, 4, 4, 5}, 8.5, 0.0625, 0.05171208795573794, 0.0625},
		{"one sign", []float64{1, 2, 3, 4, 5, 6, 7, 8}, 0, 0.0078125, 0.011718685599768628, 0.0078125},
		{"small", []float64{0, -1, 2, -3, -4}, 2, 0.375, 0.27332167829229814, 0.375},
		{"long", long, 579, 0.013379732514095138, 0.013379732514095138, 0.012774927562334337},
		{"long, ties", longTies, 535, 0.031084351334911307, 0.031084351334911307, nan},
		{"nothing", []float64{0, 0}, 0, 1, 1, 1},
	} {
		for _, got := range []struct {
			what string
			test Test
			want float64
		}{{"auto", Wilcoxon(c.d), c.auto}, {"approximate", WilcoxonApproximate(c.d), c.approximate},
			{"exact", WilcoxonExact(c.d), c.exact}} {
			if !near(got.test.Statistic, c.statistic) || !near(got.test.P, got.want) && !math.IsNaN(got.want) {
				t.Errorf("%s, %s: %v, want %v and %v", c.what, got.what, got.test, c.statistic, got.want)
			}
		}
	}
}

// TestWilcoxonChooses: p is exact for at most 50 differences, and where some are 0 or tie for at most 13.
func TestWilcoxonChooses(t *testing.T) {
	distinct := func(n int) (d []float64) {
		for i := range n {
			d = append(d, float64(i+1)*float64(1-2*(i%3%2)))
		}
		return d
	}
	with := func(v float64, d []float64) []float64 { return append(d, v) }
	for what, c := range map[string]struct {
		d     []float64
		exact bool
	}{
		"50 distinct ones":      {distinct(50), true},
		"51 distinct ones":      {distinct(51), false},
		"13, of which two tie":  {with(1, distinct(12)), true},
		"14, of which two tie":  {with(1, distinct(13)), false},
		"13, of which one is 0": {with(0, distinct(12)), true},
		"14, of which one is 0": {with(0, distinct(13)), false},
		"14, of both kinds":     {with(0, with(1, distinct(12))), false},
	} {
		got, exact, approximate := Wilcoxon(c.d), WilcoxonExact(c.d), WilcoxonApproximate(c.d)
		if exact == approximate || (got == exact) != c.exact || (got == approximate) == c.exact {
			t.Errorf("%s: %v; exact %v, approximate %v", what, got, exact, approximate)
		}
	}
}

// TestExactCountsSigns: the exact p against every choice of signs, one by one.
func TestExactCountsSigns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SliceOfN(rapid.Map(rapid.IntRange(-4, 4), func(v int) float64 { return float64(v) }), 1, 9).Draw(t, "d")
		got := WilcoxonExact(d)
		var sizes []float64
		for _, v := range d {
			if v != 0 {
				sizes = append(sizes, math.Abs(v))
			}
		}
		ranks, _ := ranked(sizes)
		low := 0
		for signs := range 1 << len(ranks) {
			sum := 0.0
			for i, r := range ranks {
				if signs>>i&1 != 0 {
					sum += r
				}
			}
			if sum <= got.Statistic {
				low++
			}
		}
		if want := min(1, 2*float64(low)/float64(int(1)<<len(ranks))); !near(got.P, want) {
			t.Fatalf("%v: %v, want %v", d, got, want)
		}
	})
}

// over has four models on six datasets, with ties.
var over = [][]float64{
	{.0412, .0388, .0455, .0431}, {.2397, .2440, .2402, .2429}, {.0418, .0460, .0418, .0470},
	{1.2, 1.1, 1.3, 1.25}, {.77, .71, .75, .80}, {.3, .3, .3, .35},
}

func TestFriedman(t *testing.T) {
	// stats.friedmanchisquare(*numpy.tile(over, (3, 1)).T)
	var more [][]float64 // too many for an exact P
	for range 3 {
		more = append(more, over...)
	}
	got, err := Friedman(more)
	if want := (Test{18.81818181818182, 0.0002981138005575838}); err != nil || got.Exact ||
		!near(got.Statistic, want.Statistic) || !near(got.P, want.P) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if got, err := Friedman([][]float64{{1, 1}, {2, 2}}); err != nil || got.P != 1 {
		t.Errorf("all tie: %v, %v", got, err)
	}
	for _, bad := range [][][]float64{nil, {{1, 2}}, {{1}, {2}}, {{1, 2}, {1}}, {{1, 2}, {1, math.NaN()}}} {
		if _, err := Friedman(bad); err != ErrShape {
			t.Errorf("%v: error %v", bad, err)
		}
	}
	// np.mean of stats.rankdata over datasets, of the values and of their negatives
	for higher, want := range map[bool][]float64{
		false: {1.9166666666666667, 2, 2.5833333333333335, 3.5}, true: {3.0833333333333335, 3, 2.4166666666666665, 1.5},
	} {
		if got := AverageRanks(over, higher); !slices.EqualFunc(got, want, near) {
			t.Errorf("ranks %v, want %v", got, want)
		}
	}
}

// TestRange: stats.studentized_range.ppf and sf with df = inf, whose own error is about 1e-10.
func TestRange(t *testing.T) {
	for k, want := range map[int][3]float64{
		2:  {2.3261743073533476, 2.771807648699355, 3.642772735436894},
		3:  {2.9023802134282515, 3.314493155398122, 4.12030320646012},
		4:  {3.240446220927359, 3.6331595749026278, 4.402800861448699},
		10: {4.129346398236873, 4.474124221725907, 5.156634960089622},
		56: {5.433550647324788, 5.7198660513184985, 6.2967216763393},
	} {
		for i, p := range []float64{.9, .95, .99} {
			if got := RangeQuantile(p, k); math.Abs(got-want[i]) > 1e-8 {
				t.Errorf("quantile %v of %d: %v, want %v", p, k, got, want[i])
			}
		}
	}
	for _, c := range []struct {
		q    float64
		k    int
		want float64
	}{{1, 3, 0.7592873587706612}, {3.5, 4, 0.06387633385690328}, {5, 10, 0.014857437887783598},
		{.2, 5, 0.9999102168567932}} {
		if got := 1 - RangeCDF(c.q, c.k); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("beyond %v of %d: %v, want %v", c.q, c.k, got, c.want)
		}
	}
	// The range of two is |N(0, 2)|.
	if got, want := RangeCDF(1.3, 2), math.Erf(1.3/2); !near(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestNemenyi: the critical differences of Demšar 2006, section 3.2.2: q.05 is 2.343 and q.10
// 2.052 for three models, printed to three digits, here for four models over 14 datasets:
// 2.569 sqrt(4 · 5 / (6 · 14)) = 1.25.
func TestNemenyi(t *testing.T) {
	if got := CriticalDifference(4, 14, .05); math.Abs(got-1.25) > .005 {
		t.Errorf("critical difference %v", got)
	}
	if got := 1 - RangeCDF(CriticalDifference(5, 8, .05)/rankError(5, 8), 5); math.Abs(got-.05) > 1e-9 {
		t.Errorf("p at the critical difference: %v", got)
	}
}

func TestCliques(t *testing.T) {
	for _, c := range []struct {
		sorted []float64
		want   []Clique
	}{
		{[]float64{1, 2, 3, 4}, []Clique{{0, 1}, {1, 2}, {2, 3}}},
		{[]float64{1, 1.5, 2, 2.4, 6}, []Clique{{0, 2}, {1, 3}}},
		{[]float64{1, 3, 5}, nil},
		{nil, nil},
	} {
		if got := Cliques(c.sorted, 1); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.sorted, got, c.want)
		}
	}
}

func TestHolm(t *testing.T) {
	nan := math.NaN()
	got := Holm([]float64{.01, .04, .03, .005, nan, .04, .9})
	want := []float64{.05, .12, .12, .03, nan, .12, .9}
	if !slices.EqualFunc(got, want, func(a, b float64) bool { return near(a, b) || math.IsNaN(a) && math.IsNaN(b) }) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestMoments(t *testing.T) {
	if got := MomentsOf([]float64{.1, .1, .1}); got != (Moments{.1, 0}) {
		t.Errorf("%v", got)
	}
	if got := MomentsOf([]float64{1, 2, 6}); got.Mean != 3 || !near(got.Deviation, math.Sqrt(7)) {
		t.Errorf("%v", got)
	}
	if got := MomentsOf(nil); !math.IsNaN(got.Mean) {
		t.Errorf("no values: %v", got)
	}
	// Their sums are 0, but for the rounding of .15, .05 and .1.
	for _, values := range [][]float64{{.15, -.05, -.1}, {-.1, .3, -.2}, {.7, -.1, -.6}} {
		if got := MomentsOf(values); got.Mean != 0 || !(got.Deviation > .1) {
			t.Errorf("%v: %v", values, got)
		}
	}
	if got := MomentsOf([]float64{1e-13, -1e-14}); !near(got.Mean, 4.5e-14) {
		t.Errorf("small values: %v", got)
	}
}

// TestRankOfTheBest: a model that is best everywhere has rank 1, and one that is worst has the
// last, without a rounding error, whatever the number of datasets.
func TestRankOfTheBest(t *testing.T) {
	var values [][]float64
	for n := range 50 {
		values = append(values, []float64{1, 2, 3})
		if got := AverageRanks(values, true); !slices.Equal(got, []float64{3, 2, 1}) {
			t.Errorf("%d datasets: ranks %v", n+1, got)
		}
	}
}
