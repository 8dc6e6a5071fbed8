package measures

// Epsilon is the least degree after clipping: 2^-52, float64's distance from 1 to the next number.
const Epsilon = 0x1p-52

// A Clip says whether degrees are clipped before they are compared.
type Clip string

// The ways to clip.
const (
	NoClip Clip = ""
	// PyLDL clips both distributions to [Epsilon, 1] for the six measures for which PyLDL 0.1
	// does so: K-L, Sørensen, squared χ², Clark, Canberra and Jensen-Shannon. K-L has no other
	// clamp then. The other measures are as they are without.
	PyLDL Clip = "pyldl"
)

// comparison holds a row as two distributions, and as clipped ones, which are the same slices
// where nothing is clipped.
type comparison struct{ d, p, clippedD, clippedP []float64 }

// compare returns a row of float32 degrees; d and p are divided by their sums as in OfRow. space has room for
// four numbers a label.
func compare(space []float64, d, p []float32, how Clip) comparison {
	n := len(d)
	c := comparison{d: space[:n], p: space[n : 2*n]}
	widen(c.d, d)
	widen(c.p, p)
	normalize(c.d)
	normalize(c.p)
	c.clippedD, c.clippedP = c.d, c.p
	if how == PyLDL {
		c.clippedD, c.clippedP = space[2*n:3*n], space[3*n:4*n]
		clip(c.clippedD, c.d)
		clip(c.clippedP, c.p)
	}
	return c
}

// clip sets dst to v, each value within [Epsilon, 1].
func clip(dst, v []float64) {
	for i, x := range v {
		dst[i] = min(max(x, Epsilon), 1)
	}
}

// shortComparison is the space of a comparison of shortRow labels.
const shortComparison = 4 * shortRow

// spaceFor returns space for a comparison of so many labels: buf where that is enough.
func spaceFor(buf []float64, labels int) []float64 {
	if 4*labels <= len(buf) {
		return buf
	}
	return make([]float64, 4*labels)
}

// ClippedRow returns what OfRow does, of degrees that are clipped as how says.
func ClippedRow(d, p []float32, how Clip) Row {
	if how == NoClip {
		return OfRow(d, p)
	}
	var buf [shortComparison]float64
	c := compare(spaceFor(buf[:], len(d)), d, p, how)
	x, y := c.clippedD, c.clippedP
	return Row{
		divergence(x, y, Epsilon), Euclidean(c.d, c.p), Sorensen(x, y), Chi2(x, y), Fidelity(c.d, c.p),
		Intersection(c.d, c.p), Chebyshev(c.d, c.p), Clark(x, y), Canberra(x, y), Cosine(c.d, c.p),
	}
}
