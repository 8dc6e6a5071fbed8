package num

// Exps sets dst[i] to Exp(x[i]). The slices have the same length; dst may be x itself.
func Exps(dst, x []float64) {
	checkSame(len(dst), len(x))
	for len(x) > 0 {
		done := exps(dst, x)
		n := min(done+4, len(x)) // by ones where vectors do not go on
		for i := done; i < n; i++ {
			dst[i] = Exp(x[i])
		}
		dst, x = dst[n:], x[n:]
	}
}
