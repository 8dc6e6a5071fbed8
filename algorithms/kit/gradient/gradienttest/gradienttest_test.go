package gradienttest

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/engine/round"
)

// broken is a function with a gradient that is wrong in one parameter.
type broken struct{ gradient.Function }

func (b broken) Gradient(g []float32, from int, sum *round.Partial, factor float32, x *scaling.Values) {
	b.Function.Gradient(g, from, sum, factor, x)
	if from <= 8 && 8 < from+len(g) {
		g[8-from] *= 1.01
	}
}

// TestDifferencesCatch: a gradient that is wrong by one in a hundred differs from differences.
func TestDifferencesCatch(t *testing.T) {
	f := &gradient.Linear{Features: 7, Outputs: 5, Bias: true, Normal: true, Deviation: 0.5}
	c := newFunctionCase(broken{f}, Options{Features: 7, Outputs: 5})
	g := c.gradient(c.partial(len(c.samples)), len(c.w.Theta))
	if e := math.Abs(float64(g[8])-2*c.difference(8, 1./64)) / math.Abs(float64(g[8])); e < 5e-3 {
		t.Errorf("they differ by %v", e)
	}
}
