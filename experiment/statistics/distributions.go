package statistics

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// The distributions of the tests. The package distuv of gonum has them too, but its imports add all of BLAS and LAPACK to
// the binary.

// halfLogTwoPi is log(2π)/2.
const halfLogTwoPi = 0.91893853320467274178

// normalDensity is the density of the standard normal distribution.
func normalDensity(z float64) float64 {
	return math.Exp(-halfLogTwoPi - float64(z*z/2))
}

// normalCDF is the probability that a standard normal value is at most z.
func normalCDF(z float64) float64 { return 0.5 * math.Erfc(-z/math.Sqrt2) }

// chiSquaredTail is the probability that a value of the chi-squared distribution with k degrees of freedom is above x.
func chiSquaredTail(k, x float64) float64 { return mathext.GammaIncRegComp(0.5*k, 0.5*x) }

// studentTail is the probability that a value of Student's distribution with nu degrees of freedom is above |t|.
func studentTail(nu, t float64) float64 {
	if t == 0 {
		return 0.5
	}
	return 0.5 * mathext.RegIncBeta(nu/2, 0.5, nu/(float64(t*t)+nu))
}
