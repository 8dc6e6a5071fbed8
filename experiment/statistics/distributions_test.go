package statistics

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// TestDistributions compares the distributions with gonum's package distuv.
func TestDistributions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		z := 20*random.Float64() - 10
		if i == 0 {
			z = 0
		}
		df := float64(1 + random.IntN(40))
		for _, c := range []struct {
			what      string
			got, want float64
		}{
			{"normal density", normalDensity(z), distuv.UnitNormal.Prob(z)},
			{"normal probability", normalCDF(z), distuv.UnitNormal.CDF(z)},
			{"chi-squared tail", chiSquaredTail(df, math.Abs(z)), distuv.ChiSquared{K: df}.Survival(math.Abs(z))},
			{"Student's tail", studentTail(df, z), distuv.StudentsT{Sigma: 1, Nu: df}.CDF(-math.Abs(z))},
		} {
			if math.Abs(c.got-c.want) > 1e-14*c.want {
				t.Errorf("%s at %v with %v degrees of freedom: %v, want %v", c.what, z, df, c.got, c.want)
			}
		}
	}
}
