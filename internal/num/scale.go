package num

// Standardise sets dst to (x - shift)·scale, computed in float64 and rounded once more,
// element by element. All have the same length.
func Standardise(dst, x []float32, shift, scale []float64) {
	checkSame(len(x), len(dst))
	checkSame(len(shift), len(dst))
	checkSame(len(scale), len(dst))
	done := standardise(dst, x, shift, scale)
	standardiseGo(dst[done:], x[done:], shift[done:], scale[done:])
}

func standardiseGo(dst, x []float32, shift, scale []float64) {
	x, shift, scale = x[:len(dst)], shift[:len(dst)], scale[:len(dst)]
	for i, v := range x {
		dst[i] = float32((float64(v) - shift[i]) * scale[i])
	}
}
