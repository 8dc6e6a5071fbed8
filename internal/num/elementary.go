package num

import (
	"math"
	"unsafe"
)

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
	switch {
	case x > expMax:
		return math.Inf(1)
	case x < expMin:
		return 0
	case x != x: // NaN
		return x
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

// Exps sets dst[i] to Exp(x[i]). The slices have the same length; dst may be x itself.
func Exps(dst, x []float64) {
	checkSame(len(dst), len(x))
	for len(x) > 0 {
		done := 0
		if Accelerated && len(x) >= 4 {
			done = expsAVX2(&dst[0], &x[0], len(x)&^3)
		}
		n := min(done+4, len(x)) // by ones where vectors do not go on
		for i := done; i < n; i++ {
			dst[i] = Exp(x[i])
		}
		dst, x = dst[n:], x[n:]
	}
}

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
	// x = 2^k · m with m = 1+f in [1/√2, √2).
	k := int64(-1023)
	if x < 0x1p-1022 {
		x *= 0x1p52
		k -= 52
	}
	b := math.Float64bits(x)
	k += int64(b >> 52)
	m := math.Float64frombits(b&(1<<52-1) | 1023<<52)
	if m > math.Sqrt2 {
		m /= 2
		k++
	}
	f, e := m-1, float64(k)
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
	return float64(e*ln2Hi) - ((half - (float64(s*(half+r)) + float64(e*ln2Lo))) - f)
}

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
	y, i := expParts(x)
	e := float64(y * math.Float64frombits(uint64(i>>6+1023)<<52)) // the bits of Exp, without its limits
	d := 1 + e
	s, t = float32(1/d), float32(e/d)
	if f < 0 {
		s, t = t, s
	}
	return s, t
}

// SigmoidPairs sets s[i], t[i] to SigmoidPair(f[i]). The slices have the same
// length; s or t may be f itself.
func SigmoidPairs(s, t, f []float32) {
	if len(s) != len(f) || len(t) != len(f) {
		panic("num: SigmoidPairs of slices of different lengths")
	}
	n := 0
	if wide {
		n = len(f) &^ 7
		sigmoidPairsAVX512(unsafe.SliceData(s), unsafe.SliceData(t), unsafe.SliceData(f), n)
	} else if Accelerated {
		n = len(f) &^ 3
		sigmoidPairsAVX2(unsafe.SliceData(s), unsafe.SliceData(t), unsafe.SliceData(f), n)
	}
	f = f[n:]
	s, t = s[n:][:len(f)], t[n:][:len(f)]
	for i, x := range f {
		s[i], t[i] = SigmoidPair(x)
	}
}

// exp2Hi[i] + exp2Lo[i] is 2^(i/64) to about 107 bits: the nearest float64 and the
// nearest float64 to what it leaves. TestExpTable computes it again.
var exp2Hi = [64]float64{
	0x1.0000000000000p+0, 0x1.02c9a3e778061p+0, 0x1.059b0d3158574p+0, 0x1.0874518759bc8p+0,
	0x1.0b5586cf9890fp+0, 0x1.0e3ec32d3d1a2p+0, 0x1.11301d0125b51p+0, 0x1.1429aaea92de0p+0,
	0x1.172b83c7d517bp+0, 0x1.1a35beb6fcb75p+0, 0x1.1d4873168b9aap+0, 0x1.2063b88628cd6p+0,
	0x1.2387a6e756238p+0, 0x1.26b4565e27cddp+0, 0x1.29e9df51fdee1p+0, 0x1.2d285a6e4030bp+0,
	0x1.306fe0a31b715p+0, 0x1.33c08b26416ffp+0, 0x1.371a7373aa9cbp+0, 0x1.3a7db34e59ff7p+0,
	0x1.3dea64c123422p+0, 0x1.4160a21f72e2ap+0, 0x1.44e086061892dp+0, 0x1.486a2b5c13cd0p+0,
	0x1.4bfdad5362a27p+0, 0x1.4f9b2769d2ca7p+0, 0x1.5342b569d4f82p+0, 0x1.56f4736b527dap+0,
	0x1.5ab07dd485429p+0, 0x1.5e76f15ad2148p+0, 0x1.6247eb03a5585p+0, 0x1.6623882552225p+0,
	0x1.6a09e667f3bcdp+0, 0x1.6dfb23c651a2fp+0, 0x1.71f75e8ec5f74p+0, 0x1.75feb564267c9p+0,
	0x1.7a11473eb0187p+0, 0x1.7e2f336cf4e62p+0, 0x1.82589994cce13p+0, 0x1.868d99b4492edp+0,
	0x1.8ace5422aa0dbp+0, 0x1.8f1ae99157736p+0, 0x1.93737b0cdc5e5p+0, 0x1.97d829fde4e50p+0,
	0x1.9c49182a3f090p+0, 0x1.a0c667b5de565p+0, 0x1.a5503b23e255dp+0, 0x1.a9e6b5579fdbfp+0,
	0x1.ae89f995ad3adp+0, 0x1.b33a2b84f15fbp+0, 0x1.b7f76f2fb5e47p+0, 0x1.bcc1e904bc1d2p+0,
	0x1.c199bdd85529cp+0, 0x1.c67f12e57d14bp+0, 0x1.cb720dcef9069p+0, 0x1.d072d4a07897cp+0,
	0x1.d5818dcfba487p+0, 0x1.da9e603db3285p+0, 0x1.dfc97337b9b5fp+0, 0x1.e502ee78b3ff6p+0,
	0x1.ea4afa2a490dap+0, 0x1.efa1bee615a27p+0, 0x1.f50765b6e4540p+0, 0x1.fa7c1819e90d8p+0,
}

var exp2Lo = [64]float64{
	0, -0x1.19083535b085dp-56, 0x1.d73e2a475b465p-55, 0x1.186be4bb284ffp-57,
	0x1.8a62e4adc610bp-54, 0x1.03a1727c57b53p-59, -0x1.6c51039449b3ap-54, -0x1.32fbf9af1369ep-54,
	-0x1.19041b9d78a76p-55, 0x1.e5b4c7b4968e4p-55, 0x1.e016e00a2643cp-54, 0x1.dc775814a8495p-55,
	0x1.9b07eb6c70573p-54, 0x1.2bd339940e9d9p-55, 0x1.612e8afad1255p-55, 0x1.0024754db41d5p-54,
	0x1.6f46ad23182e4p-55, 0x1.32721843659a6p-54, -0x1.63aeabf42eae2p-54, -0x1.5e436d661f5e3p-56,
	0x1.ada0911f09ebcp-55, -0x1.ef3691c309278p-58, 0x1.89b7a04ef80d0p-59, 0x1.3c1a3b69062f0p-56,
	0x1.d4397afec42e2p-56, -0x1.4b309d25957e3p-54, -0x1.07abe1db13cadp-55, 0x1.9bb2c011d93adp-54,
	0x1.6324c054647adp-54, 0x1.ba6f93080e65ep-54, -0x1.383c17e40b497p-54, -0x1.bb60987591c34p-54,
	-0x1.bdd3413b26456p-54, -0x1.bbe3a683c88abp-57, -0x1.16e4786887a99p-55, -0x1.0245957316dd3p-54,
	-0x1.41577ee04992fp-55, 0x1.05d02ba15797ep-56, -0x1.d4c1dd41532d8p-54, -0x1.fc6f89bd4f6bap-54,
	0x1.6e9f156864b27p-54, 0x1.5cc13a2e3976cp-55, -0x1.75fc781b57ebcp-57, -0x1.d185b7c1b85d1p-54,
	0x1.c7c46b071f2bep-56, -0x1.359495d1cd533p-54, -0x1.d2f6edb8d41e1p-54, 0x1.0fac90ef7fd31p-54,
	0x1.7a1cd345dcc81p-54, -0x1.2805e3084d708p-57, -0x1.5584f7e54ac3bp-56, 0x1.23dd07a2d9e84p-55,
	0x1.11065895048ddp-55, 0x1.2884dff483cadp-54, 0x1.503cbd1e949dbp-56, -0x1.cbc3743797a9cp-54,
	0x1.2ed02d75b3707p-55, 0x1.c2300696db532p-54, -0x1.1a5cd4f184b5cp-54, 0x1.39e8980a9cc8fp-55,
	-0x1.e9c23179c2893p-54, 0x1.dc7f486a4b6b0p-54, 0x1.9d3e12dd8a18bp-54, 0x1.74853f3a5931ep-55,
}

// exp2Pairs are the pairs exp2Hi[i], exp2Lo[i], which sigmoid_amd64.s reads.
var exp2Pairs = func() (pairs [64][2]float64) {
	for i := range pairs {
		pairs[i] = [2]float64{exp2Hi[i], exp2Lo[i]}
	}
	return pairs
}()

var _ = &exp2Pairs
