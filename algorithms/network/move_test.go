package network

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/gradient"
	"github.com/coppice-ldl/coppice/algorithms/scaling"
	"github.com/coppice-ldl/coppice/round"
)

// TestSpareBiases: only weights decay where biases are spared, and the penalty is theirs.
func TestSpareBiases(t *testing.T) {
	f := New(Plan{Layers: Hidden(3, 4, 2, ReLUUnits, He)})
	for _, spare := range []bool{false, true} {
		for _, adam := range []bool{false, true} {
			o := gradient.NewOptimizer(gradient.Rule{Adam: adam, Rate: 0.5, Decay: 0.25, SpareBiases: spare}, f)
			theta, sum := make([]float32, gradient.Parameters(f)), new(round.Partial)
			for i := range theta {
				theta[i] = 2
			}
			sum.Reset(f.GradientShape())
			decaying := len(theta)
			if spare {
				decaying -= 4 + 2
			}
			if want := 0.125 * 4 * float64(decaying); o.Penalty(theta) != want {
				t.Errorf("spare %v: penalty %v, want %v", spare, o.Penalty(theta), want)
			}
			o.Move(theta, f, sum, 1, &scaling.Values{}, 0)
			for i, x := range theta {
				bias := i >= 12 && i < 16 || i >= len(theta)-2
				if moved := x != 2; moved != !(bias && spare) {
					t.Errorf("spare %v, Adam %v: parameter %d is %v", spare, adam, i, x)
				}
			}
		}
	}
}
