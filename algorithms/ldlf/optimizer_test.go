package ldlf

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
		a := newAdamFactors(rate, momentum, decay, uint64(step))
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
	if a := newAdamFactors(1, 0.9, 0, 1); num.Adam([]float32{0, inf}, zero(), zero(), zero(), &a) {
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

// TestInitialTheta: Xavier's bound, the normal's deviation, the bias at 0.
func TestInitialTheta(t *testing.T) {
	f := &linear{features: 300, outputs: 64, bias: true, deviation: 0.5}
	theta := make([]float32, f.parameters())
	f.initialise(theta, num.NewKey(1, "ldlf/theta"))
	bound := math.Sqrt(3.0 / 300)
	rows, bias := f.split(theta)
	_, deviation := moments(widened(rows))
	if largest(widened(rows)) > bound || abs(deviation-bound/math.Sqrt(3)) > 0.01*bound || largest(widened(bias)) > 1e-9 {
		t.Errorf("Xavier: bound %v, deviation %v", largest(widened(rows)), deviation)
	}
	f.normal = true
	f.initialise(theta, num.NewKey(1, "ldlf/theta"))
	if mean, deviation := moments(widened(rows)); abs(deviation-0.5) > 0.01 || abs(mean) > 0.02 {
		t.Errorf("normal: mean %v, deviation %v", mean, deviation)
	}
}

// TestPhi: every tree reads distinct units, and trees differ.
func TestPhi(t *testing.T) {
	z := newSizes(&Config{Trees: 5, Depth: 7, Outputs: 64}, 3, 2)
	m := newModel(z, scalingNone, nil, drawPhi(z, 1), nil, nil)
	if err := m.checkPhi(); err != nil {
		t.Error(err)
	}
	if z.treePhi(m.phi, 0)[0] == z.treePhi(m.phi, 1)[0] && z.treePhi(m.phi, 0)[1] == z.treePhi(m.phi, 1)[1] {
		t.Error("two trees begin with the same units")
	}
}
