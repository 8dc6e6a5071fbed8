package num

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestMomentum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := width(t)
		x, v, g := values(t, n, "x"), values(t, n, "v"), values(t, n, "g")
		rate, momentum, decay := rapid.Float32Range(0, 9).Draw(t, "rate"), rapid.Float32Range(0, 1).Draw(t, "momentum"),
			rapid.Float32Range(0, 1).Draw(t, "decay")
		wantX, wantV := x.clone(), v.clone()
		momentumGo(wantX.v, wantV.v, g.v, rate, momentum, decay)
		if got := Momentum(x.v, v.v, g.v, rate, momentum, decay); got != Finite32(wantX.v) {
			t.Fatalf("finite: %v", got)
		}
		requireSame(t, "x", x, wantX)
		requireSame(t, "v", v, wantV)
	})
}

func TestAdam(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := width(t)
		x, m, v, g := values(t, n, "x"), values(t, n, "m"), values(t, n, "v"), values(t, n, "g")
		a := AdamFactors{Rate: 0.1, Beta1: 0.9, Rest1: 1 - float32(0.9), Beta2: 0.999, Rest2: 1 - float32(0.999),
			Correct1: 0.1, Correct2: 0.001, Epsilon: 1e-8}
		a.Decay = rapid.Float32Range(0, 1).Draw(t, "decay")
		wantX, wantM, wantV := x.clone(), m.clone(), v.clone()
		adamGo(wantX.v, wantM.v, wantV.v, g.v, &a)
		if got := Adam(x.v, m.v, v.v, g.v, &a); got != Finite32(wantX.v) {
			t.Fatalf("finite: %v", got)
		}
		requireSame(t, "x", x, wantX)
		requireSame(t, "m", m, wantM)
		requireSame(t, "v", v, wantV)
	})
}

// BenchmarkDescent is one step on Θ of Movie's shape, in bytes read and written.
func BenchmarkDescent(b *testing.B) {
	const n = 1870 * 64
	x, m, v, g := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
	a := AdamFactors{Rate: 0.1, Beta1: 0.9, Rest1: 0.1, Beta2: 0.999, Rest2: 0.001, Correct1: 0.1, Correct2: 0.001,
		Epsilon: 1e-8}
	for name, f := range map[string]struct {
		bytes int64
		step  func()
	}{
		"Momentum":    {20, func() { Momentum(x, v, g, 0.1, 0.9, 1e-5) }},
		"Momentum/go": {20, func() { momentumGo(x, v, g, 0.1, 0.9, 1e-5) }},
		"Adam":        {28, func() { Adam(x, m, v, g, &a) }},
		"Adam/go":     {28, func() { adamGo(x, m, v, g, &a) }},
	} {
		b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
			b.SetBytes(f.bytes * n)
			for b.Loop() {
				f.step()
			}
		})
	}
}
