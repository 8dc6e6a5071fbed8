package predict

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/dataset"
)

// TestRank: the rank is the integer ceil((n + 1) c), and least is the first n that has such a score.
func TestRank(t *testing.T) {
	for thousandths := 1; thousandths < 1000; thousandths++ {
		coverage := float64(thousandths) / 1000
		first := 0
		for n := range 1100 {
			want := ((n+1)*thousandths + 999) / 1000
			rank, least := Rank(n, coverage)
			if first == 0 && want <= n {
				first = n
			}
			if rank != want || first > 0 && least != first {
				t.Fatalf("n=%d, coverage %v: rank %d, least %d; want %d, %d", n, coverage, rank, least, want, first)
			}
		}
	}
	for _, bad := range []float64{0, 1, -.5, 90, math.NaN(), math.Inf(1)} {
		if CheckCoverage(bad) == nil {
			t.Errorf("the coverage %v is accepted", bad)
		}
	}
}

// conformalOf returns a Conformal with one label in bounds, and pairs as calibration samples.
func conformalOf(low, high float64, truths, predictions []float32) *Conformal {
	c := &Conformal{names: []string{"a"}, low: []float64{low}, high: []float64{high}, scores: make([][]float64, 1)}
	rows := &dataset.Rows{N: len(truths), Labels: 1, D: truths, Row: make([]uint32, len(truths))}
	b := &Block{Rows: rows, values: predictions, width: 1}
	for i := range truths {
		if err := c.Add(b, i); err != nil {
			panic(err)
		}
	}
	return c
}

// TestCoverageExactly: of n + 1 samples whose residuals differ, the intervals from n of them contain the truth of the
// other one in exactly rank cases.
func TestCoverageExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(9, 60).Draw(t, "n")
		coverage := rapid.SampledFrom([]float64{.5, .55, .7, .8, .9}).Draw(t, "coverage")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		truths, predictions := make([]float32, n+1), make([]float32, n+1)
		for i := range truths {
			truths[i], predictions[i] = r.Float32(), r.Float32()
		}
		covered := 0
		for out := range truths {
			without := func(x []float32) []float32 { return slices.Delete(slices.Clone(x), out, out+1) }
			v, err := conformalOf(0, 1, without(truths), without(predictions)).Intervals(coverage)
			if err != nil {
				t.Fatal(err)
			}
			ends := v.Of(nil, predictions[out:out+1])
			if ends[0] < 0 || ends[1] > 1 || ends[0] > predictions[out] || ends[1] < predictions[out] {
				t.Fatalf("the interval of %v is %v", predictions[out], ends)
			}
			if ends[0] <= truths[out] && truths[out] <= ends[1] {
				covered++
			}
		}
		if rank, _ := Rank(n, coverage); covered != rank {
			t.Fatalf("%d of %d samples are covered, want %d", covered, n+1, rank)
		}
	})
}

// TestTooFewSamples: the error has the least number that is enough, which is enough.
func TestTooFewSamples(t *testing.T) {
	for coverage, least := range map[float64]int{.5: 1, .9: 9, .95: 19, .99: 99} {
		few := make([]float32, least)
		_, err := conformalOf(0, 1, few[1:], few[1:]).Intervals(coverage)
		if err == nil || !strings.Contains(err.Error(), "at least "+map[int]string{1: "1 ", 9: "9 ", 19: "19 ",
			99: "99 "}[least]) {
			t.Errorf("coverage %v: %v", coverage, err)
		}
		if _, err := conformalOf(0, 1, few, few).Intervals(coverage); err != nil {
			t.Errorf("coverage %v of %d samples: %v", coverage, least, err)
		}
	}
}

// TestOutsideTheBounds: a truth outside of the bounds is in no clipped interval, so it counts as a miss.
func TestOutsideTheBounds(t *testing.T) {
	truths, predictions := make([]float32, 19), make([]float32, 19)
	for i := range truths {
		truths[i], predictions[i] = .5, .5-float32(i)/100
	}
	truths[0] = 9
	v, err := conformalOf(0, 1, truths, predictions).Intervals(.9)
	if err != nil {
		t.Fatal(err)
	}
	if half := v.Values[0].HalfWidth; v.Values[0].Rank != 18 || math.Abs(half-.18) > 1e-6 {
		t.Errorf("%+v", v.Values)
	}
	truths[1], truths[2] = -3, 2
	if _, err = conformalOf(0, 1, truths, predictions).Intervals(.9); err == nil || !strings.Contains(err.Error(),
		"a: the truth of 3 of 19 calibration samples is outside the bounds 0 to 1") {
		t.Error(err)
	}
}

// TestMissingDegreesHaveNoScore: a label has its own number of scores.
func TestMissingDegreesHaveNoScore(t *testing.T) {
	truths := make([]float32, 30)
	for i := range 20 {
		truths[i] = dataset.MissingDegree
	}
	c := conformalOf(0, 1, truths, make([]float32, 30))
	if v, err := c.Intervals(.9); err != nil || v.Samples != 30 || v.Values[0].Samples != 10 || v.Values[0].Rank != 10 {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := c.Intervals(.95); err == nil || !strings.Contains(err.Error(),
		"at least 19 calibration samples with a known degree of a, but there are 10") {
		t.Error(err)
	}
}

// TestEndsAreRoundedOutwards: an interval of float32 contains the interval of float64.
func TestEndsAreRoundedOutwards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		half, p := rapid.Float64Range(0, 2).Draw(t, "half"), rapid.Float32Range(-1, 1).Draw(t, "prediction")
		v := &Intervals{Values: []Interval{{HalfWidth: half}}, low: []float64{-5}, high: []float64{5}}
		ends := v.Of(nil, []float32{p})
		if float64(ends[0]) > float64(p)-half || float64(ends[1]) < float64(p)+half ||
			float64(math.Nextafter32(ends[0], 9)) <= float64(p)-half && ends[0] != 0 ||
			float64(math.Nextafter32(ends[1], -9)) >= float64(p)+half && ends[1] != 0 {
			t.Fatalf("%v ± %v: %v", p, half, ends)
		}
	})
}

// TestIntervalColumns: no two columns have the same name, whatever labels are called.
func TestIntervalColumns(t *testing.T) {
	v := &Intervals{}
	for _, c := range []struct{ names, others, want []string }{
		{[]string{"a", "b"}, []string{"row", "a", "b"}, []string{"a_low", "a_high", "b_low", "b_high"}},
		{[]string{"a", "a_low"}, []string{"row", "a", "a_low"},
			[]string{"interval_a_low", "interval_a_high", "interval_a_low_low", "interval_a_low_high"}},
	} {
		if diff := cmp.Diff(c.want, v.columns(c.names, c.others)); diff != "" {
			t.Error(diff)
		}
	}
	v.expected = true
	if diff := cmp.Diff([]string{"1_low", "1_high", "expected_low", "expected_high"},
		v.columns([]string{"1"}, []string{"row", "1", "expected"})); diff != "" {
		t.Error(diff)
	}
}
