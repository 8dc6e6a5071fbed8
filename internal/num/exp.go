package num

import "math"

const (
	expInvStep = 0x1.71547652b82fep+6  // 64 / ln 2
	expStepHi  = 0x1.62e42fef80000p-7  // ln 2 / 64, its leading 35 bits
	expStepLo  = 0x1.1cf79abc9e3b4p-42 // ln 2 / 64 - expStepHi
	expShift   = 0x1.8p52              // adding it rounds to an integer, in the low bits
	expMax     = 0x1.62e42fefa39efp+9  // above it e^x is not finite
	expMin     = -0x1.74910d52d3052p+9 // below it e^x rounds to 0
)

// Exp returns e^x, within 0.6 units in the last place (1 where the result is
// subnormal). Exp(+Inf) = +Inf, Exp(-Inf) = 0, Exp(NaN) = NaN; results too large
// are +Inf and results too small are 0.
func Exp(x float64) float64 {
	if !(x <= expMax && x >= expMin) {
		return expOutside(x)
	}
	y, i := expParts(x)
	return scale2(y, i>>6)
}

// expParts returns y in [0.99, 2) and i such that e^x = y·2^⌊i/64⌋.
func expParts(x float64) (y float64, i int64) {
	// x = i·ln2/64 + r with |r| <= ln2/128, and e^x = 2^(i/64) · e^r.
	shifted := float64(x*expInvStep) + expShift
	k := shifted - expShift
	r := (x - float64(k*expStepHi)) - float64(k*expStepLo)
	i = int64(math.Float64bits(shifted)&(1<<52-1)) - 1<<51
	p := 1.0/120 + float64(r*(1.0/720))
	p = 1.0/24 + float64(r*p)
	p = 1.0/6 + float64(r*p)
	p = 0.5 + float64(r*p)
	p = r + float64(float64(r*r)*p)
	hi := exp2Hi[i&63]
	return hi + (exp2Lo[i&63] + float64(hi*p)), i
}

// expOutside is Exp where the result is NaN, 0 or infinite.
func expOutside(x float64) float64 {
	switch {
	case x > expMax:
		return math.Inf(1)
	case x < expMin:
		return 0
	}
	return x // NaN
}

// scale2 returns y·2^e for y in [0.5, 2) and e in [-1076, 1024].
func scale2(y float64, e int64) float64 {
	switch {
	case e > 1023:
		return y * 2 * 0x1p1023
	case e < -1021:
		return y * math.Float64frombits(uint64(e+1023+128)<<52) * 0x1p-128
	}
	return y * math.Float64frombits(uint64(e+1023)<<52)
}
