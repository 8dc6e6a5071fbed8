package predict

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestCalibrationBins: equal counts, equal predictions in one bin, and an error that a slow reference has too. The
// order of samples does not matter.
func TestCalibrationBins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, bins := rapid.IntRange(1, 80).Draw(t, "n"), rapid.IntRange(1, 20).Draw(t, "bins")
		steps := rapid.SampledFrom([]int{2, 7, 1 << 20}).Draw(t, "values")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		pairs := make([]pair, n)
		for i := range pairs {
			pairs[i] = pair{float32(r.IntN(steps)) / float32(steps), r.Float32()}
			if steps > 1000 { // all differ
				pairs[i].predicted = float32(i) / 128
			}
		}
		shuffled := slices.Clone(pairs)
		r.Shuffle(n, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		c := calibrationOf("a", pairs, bins)
		if diff := cmp.Diff(c, calibrationOf("a", shuffled, bins)); diff != "" {
			t.Fatal(diff)
		}
		if len(c.Bins) > bins {
			t.Fatalf("%d bins of at most %d", len(c.Bins), bins)
		}
		total, last, want := 0, math.Inf(-1), 0.0
		for _, b := range c.Bins {
			if b.Low <= last || b.High < b.Low || b.Predicted < b.Low-1e-6 || b.Predicted > b.High+1e-6 {
				t.Fatalf("bin %+v follows %v", b, last)
			}
			last, total = b.High, total+b.Count
			if steps > 1000 && bins <= n && (b.Count < n/bins || b.Count > n/bins+1) {
				t.Fatalf("a bin has %d of %d pairs in %d bins", b.Count, n, bins)
			}
			predicted, observed, count := 0.0, 0.0, 0.0
			for _, one := range shuffled { // every pair in its range
				if p := float64(one.predicted); p >= b.Low && p <= b.High {
					predicted, observed, count = predicted+p, observed+float64(one.observed), count+1
				}
			}
			if int(count) != b.Count || math.Abs(predicted/count-b.Predicted) > 1e-12 ||
				math.Abs(observed/count-b.Observed) > 1e-12 {
				t.Fatalf("bin %+v: %v pairs, predicted %v, observed %v", b, count, predicted/count, observed/count)
			}
			want += math.Abs(predicted-observed) / float64(n)
		}
		if total != n || math.Abs(c.Error-want) > 1e-12 {
			t.Fatalf("%d of %d pairs, error %v, want %v", total, n, c.Error, want)
		}
	})
}

// TestCalibrationByHand: four pairs in two bins.
func TestCalibrationByHand(t *testing.T) {
	c := calibrationOf("a", []pair{{.75, 1}, {.25, 0}, {.5, 1}, {.25, .5}}, 2)
	want := Calibration{Label: "a", Count: 4, Error: .1875, Bins: []CalibrationBin{
		{Count: 2, Low: .25, High: .25, Predicted: .25, Observed: .25},
		{Count: 2, Low: .5, High: .75, Predicted: .625, Observed: 1},
	}}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
	if c := calibrationOf("", nil, 10); len(c.Bins) != 0 || c.Error != 0 {
		t.Errorf("of nothing: %+v", c)
	}
}
