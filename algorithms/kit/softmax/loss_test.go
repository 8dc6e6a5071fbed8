package softmax

import (
	"math"
	"testing"
)

// TestSpread: predictions are finite and sum to 1 whatever the outputs are.
func TestSpread(t *testing.T) {
	inf, p := float32(math.Inf(1)), make([]float64, 3)
	for _, f := range [][]float32{{0, 1, 2}, {3e38, -3e38, 0}, {inf, 0, -inf}, {inf, inf, inf}, {-inf, -inf, -inf},
		{float32(math.NaN()), 1, 2}} {
		Spread(p, f)
		if sum := p[0] + p[1] + p[2]; !(math.Abs(sum-1) < 1e-12) {
			t.Errorf("%v: %v", f, p)
		}
	}
}
