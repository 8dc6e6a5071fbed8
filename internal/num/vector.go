package num

// Sum64 returns the sum of v in float64, in order.
func Sum64(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x)
	}
	return sum
}

// Add32 adds src to dst, element by element. Both have the same length.
func Add32(dst, src []float32) {
	checkSame(len(dst), len(src))
	done := add32(dst, src)
	add32Go(dst[done:], src[done:])
}

func add32Go(dst, src []float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] += x
	}
}

// Add64 adds src to dst, element by element. Both have the same length.
func Add64(dst, src []float64) {
	checkSame(len(dst), len(src))
	done := add64(dst, src)
	add64Go(dst[done:], src[done:])
}

func add64Go(dst, src []float64) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] += x
	}
}

// Scale32 multiplies v by a.
func Scale32(v []float32, a float32) {
	scale32Go(v[scale32(v, a):], a)
}

func scale32Go(v []float32, a float32) {
	for i := range v {
		v[i] *= a
	}
}

// Canonical32 turns each -0 of v into +0, as partials are written (design
// section 8.4); then an absent row and a row of zeros are the same bytes. It reports whether v has neither an
// infinity nor a NaN.
func Canonical32(v []float32) (finite bool) {
	done, finite := canonical32(v)
	return canonical32Go(v[done:]) && finite
}

func canonical32Go(v []float32) (finite bool) {
	finite = true
	for i, x := range v {
		if x == 0 {
			v[i] = 0
		}
		finite = finite && x-x == 0
	}
	return finite
}

// Canonical64 is Canonical32 for float64.
func Canonical64(v []float64) {
	canonical64Go(v[canonical64(v):])
}

func canonical64Go(v []float64) {
	for i, x := range v {
		if x == 0 {
			v[i] = 0
		}
	}
}

// Finite32 reports whether v has neither an infinity nor a NaN.
func Finite32(v []float32) bool {
	for _, x := range v {
		if x-x != 0 {
			return false
		}
	}
	return true
}

// Finite64 is Finite32 for float64.
func Finite64(v []float64) bool {
	for _, x := range v {
		if x-x != 0 {
			return false
		}
	}
	return true
}

func checkSame(a, b int) {
	if a != b {
		panic("num: vectors of different lengths")
	}
}
