package num

import "math"

const halfPi = 0x1.921fb54442d18p+0

// SinCos2Pi returns sin 2πu and cos 2πu for a finite u, within 2 units in the
// last place. The angle is reduced exactly, so whole turns give exactly 0 and 1.
func SinCos2Pi(u float64) (sin, cos float64) {
	u -= math.Floor(u)
	quadrant := math.Floor(float64(u*4) + 0.5)
	a := float64((float64(u*4) - quadrant) * halfPi) // in [-π/4, π/4]
	z := a * a
	s, c := sinPoly(a, z), cosPoly(z)
	switch int(quadrant) & 3 {
	case 0:
		return s, c
	case 1:
		return c, -s
	case 2:
		return -s, -c
	}
	return -c, s
}

// sinPoly returns sin a for |a| <= π/4, z = a²: Taylor to a¹⁷.
func sinPoly(a, z float64) float64 {
	p := -1.0/1307674368000 + float64(z*(1.0/355687428096000))
	p = 1.0/6227020800 + float64(z*p)
	p = -1.0/39916800 + float64(z*p)
	p = 1.0/362880 + float64(z*p)
	p = -1.0/5040 + float64(z*p)
	p = 1.0/120 + float64(z*p)
	p = -1.0/6 + float64(z*p)
	return a + float64(float64(a*z)*p)
}

// cosPoly returns cos a for |a| <= π/4, z = a²: Taylor to a¹⁸.
func cosPoly(z float64) float64 {
	p := 1.0/20922789888000 - float64(z*(1.0/6402373705728000))
	p = -1.0/87178291200 + float64(z*p)
	p = 1.0/479001600 + float64(z*p)
	p = -1.0/3628800 + float64(z*p)
	p = 1.0/40320 + float64(z*p)
	p = -1.0/720 + float64(z*p)
	p = 1.0/24 + float64(z*p)
	h := float64(0.5 * z)
	w := 1 - h
	return w + (((1 - w) - h) + float64(float64(z*z)*p))
}
