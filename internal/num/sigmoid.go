package num

import "math"

// sigmoidFloor is where SigmoidPair stops looking further: e^-200 rounds to 0 in
// float32, and 1 + e^-200 to 1.
const sigmoidFloor = -200

// SigmoidPair returns σ(f) = 1/(1 + e^-f) and σ(-f) from one exponential of
// -|f|, each rounded once from float64: the smaller side keeps full relative
// precision down to float32's smallest number, so that a branch does not die
// where the other side rounds to 1 (1 - σ(f) would be 0 from f = 17 on). NaN
// gives NaN twice.
func SigmoidPair(f float32) (s, t float32) {
	x := -math.Abs(float64(f))
	if x < sigmoidFloor {
		x = sigmoidFloor
	}
	e := expNear(x)
	d := 1 + e
	s, t = float32(1/d), float32(e/d)
	if f < 0 {
		s, t = t, s
	}
	return s, t
}

// expNear is Exp, to the same bits, for |x| <= 700 and NaN.
func expNear(x float64) float64 {
	y, i := expParts(x)
	return y * math.Float64frombits(uint64(i>>6+1023)<<52)
}

// SigmoidPairs sets s[i], t[i] to SigmoidPair(f[i]). The slices have the same
// length; s or t may be f itself.
func SigmoidPairs(s, t, f []float32) {
	if len(s) != len(f) || len(t) != len(f) {
		panic("num: SigmoidPairs of slices of different lengths")
	}
	done := sigmoidPairs(s, t, f)
	sigmoidPairsGo(s[done:], t[done:], f[done:])
}

// sigmoidPairsGo is the portable SigmoidPairs.
func sigmoidPairsGo(s, t, f []float32) {
	s, t = s[:len(f)], t[:len(f)]
	for i, x := range f {
		s[i], t[i] = SigmoidPair(x)
	}
}
