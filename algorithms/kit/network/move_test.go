package network

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/engine/round"
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

// TestFactors: tensors of factor 0 keep their bytes and moments, those of another one move by so
// much, with sparse and dense gradients.
func TestFactors(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		for _, adam := range []bool{false, true} {
			f := New(Plan{Sparse: sparse, Layers: Hidden(3, 4, 2, ReLUUnits, He)})
			move := func(factors map[string]float64) (theta, first []float32) {
				o := gradient.NewOptimizer(gradient.Rule{Adam: adam, Rate: 0.5, Decay: 0.25, Factors: factors}, f)
				theta = make([]float32, gradient.Parameters(f))
				fill(theta, 2)
				sum := new(round.Partial)
				shape := f.GradientShape()
				shape.F64 += gradient.GradientAt
				sum.Reset(shape)
				fill(sum.F32, 1)
				o.Move(theta, f, sum, 1, &scaling.Values{}, 0)
				return theta, o.First
			}
			all, _ := move(nil)
			some, first := move(map[string]float64{"hidden.relu": 0, "output": 0.5})
			for i, x := range some {
				factor := float32(1)
				if i < 12 {
					factor = 0
				} else if i >= 16 && i < 24 {
					factor = 0.5
				}
				if want := 2 + factor*(all[i]-2); x-want > 1e-6 || want-x > 1e-6 || factor == 0 && (x != 2 || first[i] != 0) {
					t.Errorf("sparse %v, Adam %v: parameter %d is %v, want %v", sparse, adam, i, x, want)
				}
			}
		}
	}
}
