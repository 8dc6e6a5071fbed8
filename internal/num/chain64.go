package num

// Dot64 returns Σ a·b: four sums of every fourth product, of which the last takes no more than
// whole fours; the first takes what is left, and (s0 + s1) + (s2 + s3) is the result. Each product
// is rounded. The slices have the same length.
func Dot64(a, b []float64) float64 {
	checkSame(len(a), len(b))
	var s [4]float64
	done := dot64(&s, a, b)
	dot64Go(&s, a[done:], b[done:])
	return (s[0] + s[1]) + (s[2] + s[3])
}

// dot64Go adds every fourth product of whole fours to s, and the rest to its first.
func dot64Go(s *[4]float64, a, b []float64) {
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s[0] += float64(x[0] * y[0])
		s[1] += float64(x[1] * y[1])
		s[2] += float64(x[2] * y[2])
		s[3] += float64(x[3] * y[3])
	}
	for ; i < len(a); i++ {
		s[0] += float64(a[i] * b[i])
	}
}

// AddScaled64 adds a·x to dst, each product rounded before it is added. The slices have the
// same length.
func AddScaled64(dst []float64, a float64, x []float64) {
	checkSame(len(dst), len(x))
	done := addScaled64Vectors(dst, a, x)
	addScaled64(dst[done:], a, x[done:])
}
