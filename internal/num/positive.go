package num

import "math"

// KeepPositive sets dst to the elements of v where those of by are above 0, and to 0 elsewhere: at
// 0, below, and at what is no number. All have the same length; dst may be v or by.
func KeepPositive(dst, v, by []float32) {
	checkSame(len(dst), len(v))
	checkSame(len(dst), len(by))
	done := keepPositive(dst, v, by)
	keepPositiveGo(dst[done:], v[done:], by[done:])
}

// keepPositiveGo has no branch, which processors would guess wrong half the time.
func keepPositiveGo(dst, v, by []float32) {
	v, by = v[:len(dst)], by[:len(dst)]
	for i, x := range by {
		keep := uint32(0)
		if x > 0 {
			keep = 1
		}
		dst[i] = math.Float32frombits(math.Float32bits(v[i]) & -keep)
	}
}
