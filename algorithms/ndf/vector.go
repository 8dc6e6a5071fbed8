package ndf

import (
	"math"
	"unsafe"

	"github.com/coppice-ldl/coppice/internal/num"
)

// The portable kernels: what the assembly must equal bit for bit. Sums are kept in four lanes,
// element i in lane i mod 4, which are added in pairs at the end.

// sumLanes is the number of lanes of a sum.
const sumLanes = 4

// leastRatio is the least π_L·f_L + π_R·f_R that is divided by.
const leastRatio = 1e-300

// joined returns the sum of lanes.
func joined(s *[sumLanes]float64) float64 { return (s[0] + s[1]) + (s[2] + s[3]) }

// routedMass returns Σ w·fl and Σ w·fr.
func routedMass(fl, fr []float64, w []float32) (left, right float64) {
	fl, fr = fl[:len(w)], fr[:len(w)]
	var l, r [sumLanes]float64
	for i := routedMassStart(fl, fr, w, &l, &r); i < len(w); i++ {
		l[i%sumLanes] += float64(float64(w[i]) * fl[i])
		r[i%sumLanes] += float64(float64(w[i]) * fr[i])
	}
	return joined(&l), joined(&r)
}

// ratioSums returns Σ fl·w/(pl·fl + pr·fr) and Σ fr·w/(pl·fl + pr·fr).
func ratioSums(fl, fr []float64, w []float32, pl, pr float64) (left, right float64) {
	fl, fr = fl[:len(w)], fr[:len(w)]
	var l, r [sumLanes]float64
	for i := ratioSumsStart(fl, fr, w, pl, pr, &l, &r); i < len(w); i++ {
		q := ratio(fl[i], fr[i], w[i], pl, pr)
		l[i%sumLanes] += float64(q * fl[i])
		r[i%sumLanes] += float64(q * fr[i])
	}
	return joined(&l), joined(&r)
}

func ratio(fl, fr float64, w float32, pl, pr float64) float64 {
	q := float64(pl*fl) + float64(pr*fr)
	return float64(w) / max(q, leastRatio)
}

// addRatios adds (pl - pr)·w/(pl·fl + pr·fr) to g.
func addRatios(g, fl, fr []float64, w []float32, pl, pr float64) {
	g, fl, fr = g[:len(w)], fl[:len(w)], fr[:len(w)]
	d := pl - pr
	for i := addRatiosStart(g, fl, fr, w, pl, pr); i < len(w); i++ {
		g[i] += float64(d * ratio(fl[i], fr[i], w[i], pl, pr))
	}
}

// The constants of tanh32: tanhMost is above where tanh rounds to 1.
const (
	tanhMost  = 12
	tanhLog2e = -2 * 0x1.715476p+0 // of 2^k in e^-2x
	tanhShift = 0x1.8p23           // adding it rounds to an integer, in the low bits
	tanhLn2Hi = 0x1.62e4p-1        // ln 2, its leading 15 bits: times k it is exact
	tanhLn2Lo = 0x1.7f7d1cp-20     // ln 2 - tanhLn2Hi
)

// tanhs sets each x to tanh x, within 1.5e-7.
func tanhs(x []float32) {
	for i := tanhsStart(x); i < len(x); i++ {
		x[i] = tanh32(x[i])
	}
}

// tanh32 is (1 - e)/(1 + e) with e = e^(-2|x|) = 2^k·e^r, |r| <= ln2/2, and the sign of x.
func tanh32(x float32) float32 {
	a := math.Float32frombits(math.Float32bits(x) &^ (1 << 31))
	if !(a < tanhMost) {
		a = tanhMost
	}
	shifted := float32(a*tanhLog2e) + tanhShift
	k := shifted - tanhShift
	r := (float32(a*-2) - float32(k*tanhLn2Hi)) - float32(k*tanhLn2Lo)
	p := 1.0/120 + float32(r*(1.0/720))
	p = 1.0/24 + float32(r*p)
	p = 1.0/6 + float32(r*p)
	p = 0.5 + float32(r*p)
	p = 1 + float32(r*p)
	p = 1 + float32(r*p)
	e := float32(p * math.Float32frombits((math.Float32bits(shifted)+127)<<23))
	t := (1 - e) / (1 + e)
	return math.Float32frombits(math.Float32bits(t) | math.Float32bits(x)&(1<<31))
}

// tanhSlopes replaces each t = tanh a by the slope of a loss along a: (1 - t²)·w·d, where d is
// the slope along the unit that t enters with weight w.
func tanhSlopes(t, d []float32, w float32) {
	d = d[:len(t)]
	for i := tanhSlopesStart(t, d, w); i < len(t); i++ {
		t[i] = (1 - float32(t[i]*t[i])) * float32(w*d[i])
	}
}

//go:noescape
func routedMassAVX2(fl, fr *float64, w *float32, n int, l, r *[sumLanes]float64)

//go:noescape
func ratioSumsAVX2(fl, fr *float64, w *float32, n int, pl, pr, least float64, l, r *[sumLanes]float64)

//go:noescape
func addRatiosAVX2(slopes, fl, fr *float64, w *float32, n int, pl, pr, least, d float64)

//go:noescape
func tanhsAVX2(x *float32, n int)

//go:noescape
func tanhSlopesAVX2(t, d *float32, n int, w float32)

// whole returns how many of n elements fill vectors of so many lanes.
func whole(n, lanes int) int {
	if !num.Accelerated {
		return 0
	}
	return n / lanes * lanes
}

// routedMassStart does the first elements of routedMass and returns how many.
func routedMassStart(fl, fr []float64, w []float32, l, r *[sumLanes]float64) int {
	n := whole(len(w), sumLanes)
	if num.Accelerated && n > 0 {
		routedMassAVX2(unsafe.SliceData(fl), unsafe.SliceData(fr), unsafe.SliceData(w), n, l, r)
	}
	return n
}

// ratioSumsStart does the first elements of ratioSums and returns how many.
func ratioSumsStart(fl, fr []float64, w []float32, pl, pr float64, l, r *[sumLanes]float64) int {
	n := whole(len(w), sumLanes)
	if num.Accelerated && n > 0 {
		ratioSumsAVX2(unsafe.SliceData(fl), unsafe.SliceData(fr), unsafe.SliceData(w), n, pl, pr, leastRatio, l, r)
	}
	return n
}

// addRatiosStart does the first elements of addRatios and returns how many.
func addRatiosStart(g, fl, fr []float64, w []float32, pl, pr float64) int {
	n := whole(len(w), sumLanes)
	if num.Accelerated && n > 0 {
		addRatiosAVX2(unsafe.SliceData(g), unsafe.SliceData(fl), unsafe.SliceData(fr), unsafe.SliceData(w), n, pl, pr,
			leastRatio, pl-pr)
	}
	return n
}

// floatLanes is the number of float32 in a vector.
const floatLanes = 8

// tanhsStart does the first elements of tanhs and returns how many.
func tanhsStart(x []float32) int {
	n := whole(len(x), floatLanes)
	if num.Accelerated && n > 0 {
		tanhsAVX2(unsafe.SliceData(x), n)
	}
	return n
}

// tanhSlopesStart does the first elements of tanhSlopes and returns how many.
func tanhSlopesStart(t, d []float32, w float32) int {
	n := whole(len(t), floatLanes)
	if num.Accelerated && n > 0 {
		tanhSlopesAVX2(unsafe.SliceData(t), unsafe.SliceData(d), n, w)
	}
	return n
}
