package gradient

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/internal/num"
)

// TestOptimisers holds the optimisers' steps against float64 written from their formulas.
func TestOptimisers(t *testing.T) {
	const n, steps = 50, 200
	const rate, momentum, decay = 0.05, 0.9, 1e-3
	s := num.NewStream(num.NewKey(1, "optimiser"), 0, 0)
	theta, v := make([]float32, n), make([]float32, n)
	thetaA, m, w := make([]float32, n), make([]float32, n), make([]float32, n)
	want, wantV := make([]float64, n), make([]float64, n)
	wantA, wantM, wantW := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range n {
		theta[i] = float32(s.Normal())
		thetaA[i], want[i], wantA[i] = theta[i], float64(theta[i]), float64(theta[i])
	}
	g := make([]float32, n)
	for step := 1; step <= steps; step++ {
		for i := range g {
			g[i] = float32(s.Normal())
		}
		a := (&Rule{Momentum: momentum, Decay: decay}).adamFactors(rate, uint64(step))
		if !num.Momentum(theta, v, g, rate, momentum, decay) || !num.Adam(thetaA, m, w, g, &a) {
			t.Fatal("Θ is said not to be finite")
		}
		for i, x := range g {
			d := float64(x) + decay*want[i]
			wantV[i] = momentum*wantV[i] + d
			want[i] -= rate * wantV[i]

			d = float64(x) + decay*wantA[i]
			wantM[i] = 0.9*wantM[i] + 0.1*d
			wantW[i] = 0.999*wantW[i] + 0.001*d*d
			mHat, wHat := wantM[i]/(1-math.Pow(0.9, float64(step))), wantW[i]/(1-math.Pow(0.999, float64(step)))
			wantA[i] -= rate * mHat / (math.Sqrt(wHat) + 1e-8)
		}
	}
	if e := maxDifference(theta, want); e > 1e-5 {
		t.Errorf("sgd differs by %.2g", e)
	}
	if e := maxDifference(thetaA, wantA); e > 1e-4 {
		t.Errorf("adam differs by %.2g", e)
	}
}

func TestOptimisersSeeInfinity(t *testing.T) {
	inf := float32(math.Inf(1))
	zero := func() []float32 { return make([]float32, 2) }
	if num.Momentum(zero(), zero(), []float32{0, inf}, 1, 0, 0) {
		t.Error("sgd passes an infinite Θ")
	}
	if a := (&Rule{Momentum: 0.9}).adamFactors(1, 1); num.Adam([]float32{0, inf}, zero(), zero(), zero(), &a) {
		t.Error("adam passes an infinite Θ")
	}
}

func TestPower(t *testing.T) {
	for n, want := range map[uint64]float64{0: 1, 1: 0.5, 2: 0.25, 7: 0.0078125, 5000: 0} {
		if got := power(0.5, n); got != want {
			t.Errorf("power(0.5, %d) = %v, want %v", n, got, want)
		}
	}
}

func TestLearningRate(t *testing.T) {
	r := Rule{Rate: 0.1, RateStep: 10_000, RateDecay: 0.5}
	for step, want := range map[uint64]float64{0: 0.1, 9999: 0.1, 10000: 0.05, 20000: 0.025, 24999: 0.025} {
		if got := r.rate(step); got != want {
			t.Errorf("step %d: rate %v, want %v", step, got, want)
		}
	}
	if r.RateStep = 0; r.rate(1e9) != 0.1 {
		t.Error("a rate that never changes does")
	}
}

func maxDifference(a []float32, b []float64) float64 {
	worst := 0.0
	for i := range a {
		worst = max(worst, math.Abs(float64(a[i])-b[i]))
	}
	return worst
}

// TestSchedules: the rate grows evenly in the warm-up, falls as half a cosine, and is divided
// by steps, each on top of the others.
func TestSchedules(t *testing.T) {
	for _, c := range []struct {
		r    Rule
		step uint64
		want float64
	}{
		{Rule{Rate: 3}, 1000, 3},
		{Rule{Rate: 3, Warmup: 10}, 0, 0.3},
		{Rule{Rate: 3, Warmup: 10}, 8, 2.7},
		{Rule{Rate: 3, Warmup: 10}, 9, 3},
		{Rule{Rate: 3, Warmup: 10}, 10, 3},
		{Rule{Rate: 2, Cosine: 100}, 0, 2},
		{Rule{Rate: 2, Cosine: 100}, 50, 1},
		{Rule{Rate: 2, Cosine: 100}, 25, 1 + math.Sqrt(0.5)},
		{Rule{Rate: 2, Cosine: 100}, 100, 0},
		{Rule{Rate: 2, Cosine: 100}, 1000, 0},
		{Rule{Rate: 8, RateStep: 10, RateDecay: 0.5, Cosine: 100, Warmup: 100}, 50, 8 / 32. / 2 * 0.51},
	} {
		if got := c.r.rate(c.step); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v: the rate of step %d is %v, want %v", c.r, c.step, got, c.want)
		}
	}
}
