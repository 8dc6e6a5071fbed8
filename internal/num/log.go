package num

import "math"

const (
	ln2Hi = 0x1.62e42fef00000p-1  // ln 2, its leading 33 bits
	ln2Lo = 0x1.473de6af278edp-34 // ln 2 - ln2Hi
)

// Log returns the natural logarithm of x, within 1 unit in the last place.
// Log(0) = -Inf, Log(+Inf) = +Inf, Log(x < 0) = NaN, Log(NaN) = NaN.
func Log(x float64) float64 {
	switch {
	case !(x > 0):
		if x == 0 {
			return math.Inf(-1)
		}
		return math.NaN()
	case x > math.MaxFloat64:
		return x
	}
	// x = 2^k · (1+f) with 1+f in [1/√2, √2].
	m, k := split2(x)
	f := m - 1
	// log(1+f) = 2·artanh(s), s = f/(2+f), is f - f²/2 + s·(f²/2 + R), where
	// R = 2(s²/3 + s⁴/5 + ...); |s| < 0.1716, so that ten terms reach 2^-58.
	s := f / (2 + f)
	z := s * s
	w := z * z
	odd := 2.0/15 + float64(w*(2.0/19))
	odd = 2.0/11 + float64(w*odd)
	odd = 2.0/7 + float64(w*odd)
	odd = 2.0/3 + float64(w*odd)
	even := 2.0/17 + float64(w*(2.0/21))
	even = 2.0/13 + float64(w*even)
	even = 2.0/9 + float64(w*even)
	even = 2.0/5 + float64(w*even)
	r := float64(z*odd) + float64(w*even)
	half := float64(float64(0.5*f) * f)
	return float64(k*ln2Hi) - ((half - (float64(s*(half+r)) + float64(k*ln2Lo))) - f)
}

// split2 writes x > 0, finite, as m·2^k with m in [1/√2, √2).
func split2(x float64) (m, k float64) {
	e := int64(-1023)
	if x < 0x1p-1022 {
		x *= 0x1p52
		e -= 52
	}
	b := math.Float64bits(x)
	e += int64(b >> 52)
	m = math.Float64frombits(b&(1<<52-1) | 1023<<52)
	if m > math.Sqrt2 {
		m /= 2
		e++
	}
	return m, float64(e)
}
