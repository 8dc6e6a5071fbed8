package num

import (
	"math"
	"math/big"
)

// The slow twins: exact or 200-bit arithmetic of math/big.

const oraclePrec = 200

func bigf(x float64) *big.Float { return new(big.Float).SetPrec(oraclePrec).SetFloat64(x) }

// bigExp returns e^x by halving x 20 times, Taylor, and squaring back.
func bigExp(x *big.Float) *big.Float {
	r := new(big.Float).SetPrec(oraclePrec).SetMantExp(x, -20)
	sum, term := bigf(1), bigf(1)
	for i := 1; i < 40; i++ {
		term.Mul(term, r)
		term.Quo(term, bigf(float64(i)))
		sum.Add(sum, term)
	}
	for range 20 {
		sum.Mul(sum, sum)
	}
	return sum
}

// bigLog returns ln x by Newton steps from a float64 guess.
func bigLog(x float64) *big.Float {
	y := bigf(math.Log(x))
	for range 3 {
		e := bigExp(y)
		d := new(big.Float).SetPrec(oraclePrec).Sub(bigf(x), e)
		y.Add(y, d.Quo(d, e))
	}
	return y
}

// bigSinCos2Pi returns sin 2πu and cos 2πu by Taylor.
func bigSinCos2Pi(u float64) (sin, cos *big.Float) {
	pi, _, _ := big.ParseFloat("3.14159265358979323846264338327950288419716939937510582097494459", 10, oraclePrec,
		big.ToNearestEven)
	a := new(big.Float).SetPrec(oraclePrec).Mul(pi, bigf(2*u))
	term := bigf(1)
	sums := [4]*big.Float{bigf(0), bigf(0), bigf(0), bigf(0)}
	for i := range 80 {
		sums[i%4].Add(sums[i%4], term)
		term.Mul(term, a)
		term.Quo(term, bigf(float64(i+1)))
	}
	return sums[1].Sub(sums[1], sums[3]), sums[0].Sub(sums[0], sums[2])
}

// ulps returns how far got is from want, in units of the last place of want.
func ulps(got float64, want *big.Float) float64 {
	w, _ := want.Float64()
	d := new(big.Float).SetPrec(oraclePrec).Sub(bigf(got), want)
	unit := math.Nextafter(math.Abs(w), math.Inf(1)) - math.Abs(w)
	u, _ := d.Quo(d, bigf(unit)).Float64()
	return math.Abs(u)
}

// bigFMA32 is FMA32 in exact arithmetic.
func bigFMA32(a, b, c float32) float32 {
	p := float64(a) * float64(b)
	if s := p + float64(c); s == 0 || s-s != 0 {
		return float32(s) // zero with its sign, infinite or NaN: nothing to round
	}
	x := new(big.Float).SetPrec(700).SetFloat64(p)
	x.Add(x, new(big.Float).SetPrec(700).SetFloat64(float64(c)))
	r, _ := x.Float32()
	return r
}
