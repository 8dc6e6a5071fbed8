package gradient_test

import (
	"fmt"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient/gradienttest"
)

// TestLinear holds the linear function against what Function promises, on dense and sparse rows,
// scaled and not, with a bias and without.
func TestLinear(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		for _, scaled := range []bool{false, true} {
			for _, bias := range []bool{false, true} {
				t.Run(fmt.Sprintf("sparse=%v/scaled=%v/bias=%v", sparse, scaled, bias), func(t *testing.T) {
					f := gradient.Linear{Features: 7, Outputs: 5, Bias: bias, Sparse: sparse, Scaled: scaled, Normal: true,
						Deviation: 0.5}
					gradienttest.Check(t, &f, gradienttest.Options{Features: 7, Outputs: 5, Sparse: sparse, Scaled: scaled},
						func([]algorithms.Tensor) gradient.Function {
							return &gradient.Linear{Features: 7, Outputs: 5, Bias: bias}
						})
				})
			}
		}
	}
}
