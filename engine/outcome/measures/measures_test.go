package measures

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(1, math.Abs(a)) }

// distribution draws a distribution over n labels; some labels are exactly 0.
func distribution(t *rapid.T, n int, name string) []float64 {
	v := make([]float64, n)
	for floats.Sum(v) == 0 {
		for j := range v {
			v[j] = rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1e-9, 1})).Draw(t, name)
		}
	}
	sum := floats.Sum(v)
	for j := range v {
		v[j] /= sum // 1/sum is infinite for the least sums
	}
	return v
}

// TestByHand has values worked out on paper; the third label is 0 in both rows,
// the last only in d.
func TestByHand(t *testing.T) {
	d, p := []float64{0.5, 0.5, 0, 0}, []float64{0.25, 0.25, 0, 0.5}
	for i, want := range []float64{
		math.Ln2,              // 2 · ½ ln 2
		math.Sqrt(0.375),      // 2/16 + 1/4
		0.5,                   // (¼ + ¼ + ½) / 2
		1.0/12 + 1.0/12 + 0.5, // (1/16)/(3/4) twice, (1/4)/(1/2)
		math.Sqrt(0.5),        // 2 · sqrt(1/8)
		0.5,
		0.5,
		math.Sqrt(1.0/9 + 1.0/9 + 1),
		1.0/3 + 1.0/3 + 1,
		0.25 / math.Sqrt(0.5*0.375),
	} {
		if got := All[i].Func(d, p); !near(got, want) {
			t.Errorf("%s = %v, want %v", All[i].Name, got, want)
		}
	}
	if got, want := KL(p, d), 0.25*math.Log(0.5)*2+0.5*math.Log(0.5/MinPrediction); !near(got, want) {
		t.Errorf("kl with p = 0 is %v, want %v", got, want)
	}
}

func TestZeros(t *testing.T) {
	zero := []float64{0, 0}
	for _, m := range All {
		if got := m.Func(zero, zero); got != 0 {
			t.Errorf("%s of zeros is %v", m.Name, got)
		}
	}
	if got := Cosine(zero, []float64{1, 0}); got != 0 {
		t.Errorf("cosine with zeros is %v", got)
	}
}

func TestTwinsOfGonum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "labels")
		d, p := distribution(t, n, "d"), distribution(t, n, "p")
		clamped := make([]float64, n)
		for j := range p {
			clamped[j] = max(p[j], MinPrediction)
		}
		for name, pair := range map[string][2]float64{
			"kl":        {KL(d, p), stat.KullbackLeibler(d, clamped)},
			"euclidean": {Euclidean(d, p), floats.Distance(d, p, 2)},
			"chebyshev": {Chebyshev(d, p), floats.Distance(d, p, math.Inf(1))},
			"sorensen":  {Sorensen(d, p), floats.Distance(d, p, 1) / 2},
			"fidelity":  {Fidelity(d, p), math.Exp(-stat.Bhattacharyya(d, p))},
			"cosine":    {Cosine(d, p), floats.Dot(d, p) / floats.Norm(d, 2) / floats.Norm(p, 2)},
		} {
			if !near(pair[0], pair[1]) {
				t.Fatalf("%s = %v, gonum has %v", name, pair[0], pair[1])
			}
		}
	})
}

func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "labels")
		d, p := distribution(t, n, "d"), distribution(t, n, "p")
		limit := map[string]float64{
			"kl": -math.Log(MinPrediction), "euclidean": math.Sqrt2, "sorensen": 1, "chi2": 2, "fidelity": 1,
			"intersection": 1, "chebyshev": 1, "clark": math.Sqrt(float64(n)), "canberra": float64(n), "cosine": 1,
		}
		for _, m := range All {
			got, best := m.Func(d, p), m.Func(d, d)
			optimum := 0.0
			if m.HigherIsBetter {
				optimum = 1
			}
			if !near(best, optimum) {
				t.Errorf("%s of a row and itself is %v, want %v", m.Name, best, optimum)
			}
			if got < -1e-10 || got > limit[m.Name]+1e-10 {
				t.Errorf("%s = %v is outside [0, %v]", m.Name, got, limit[m.Name])
			}
			if m.Name != "kl" && !near(got, m.Func(p, d)) {
				t.Errorf("%s is not symmetric: %v, %v", m.Name, got, m.Func(p, d))
			}
		}
		if s, i := Sorensen(d, p), Intersection(d, p); !near(s, 1-i) {
			t.Errorf("Sørensen %v is not 1 - intersection %v", s, i)
		}
	})
}

// TestOrderOfLabels holds that labels can be renamed: no measure here looks at
// their order, up to the rounding of sums.
func TestOrderOfLabels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "labels")
		d, p := distribution(t, n, "d"), distribution(t, n, "p")
		labels := make([]int, n)
		for j := range labels {
			labels[j] = j
		}
		e, q := make([]float64, n), make([]float64, n)
		for i, j := range rapid.Permutation(labels).Draw(t, "order") {
			e[i], q[i] = d[j], p[j]
		}
		for _, m := range All {
			if a, b := m.Func(d, p), m.Func(e, q); !near(a, b) {
				t.Errorf("%s changes with the order of labels: %v, %v", m.Name, a, b)
			}
		}
	})
}

func TestRowsOfDifferentLengthsPanic(t *testing.T) {
	for _, m := range All {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s takes rows of 2 and 1 labels", m.Name)
				}
			}()
			m.Func([]float64{1, 0}, []float64{1})
		}()
	}
}
