//go:build !amd64 || purego

package num

// Accelerated tells whether kernels run as vector instructions here; the bits
// are the same.
func Accelerated() bool { return false }

func mulAddRows(dst, a, m []float32)                             { mulAddRowsGo(dst, a, m) }
func mulAddRowsAt(dst, a []float32, index []uint32, m []float32) { mulAddRowsAtGo(dst, a, index, m) }
func addOuter(m, a, x []float32)                                 { addOuterGo(m, a, x) }
func addOuterAt(m []float32, index []uint32, a, x []float32)     { addOuterAtGo(m, index, a, x) }
func addOuter64(m []float64, a, x []float32)                     { addOuter64Go(m, a, x) }
func addProduct(dst, a, b []float32, m, k, n, ai, at int)        { addProductGo(dst, a, b, m, k, n, ai, at) }
func addProduct64T(dst, a []float64, b []float32, k, stride int, next []float32, tile *Tile) bool {
	return false
}

// sigmoidPairs does the start of SigmoidPairs and returns its length.
func sigmoidPairs(s, t, f []float32) int { return 0 }

// These do the start of their namesakes and return its length.
func add64(dst, a []float64) int                                                   { return 0 }
func keepPositive(dst, v, by []float32) int                                        { return 0 }
func mul32(dst, a []float32) int                                                   { return 0 }
func ratios(r []float32, sum []float64, d, g []float32, weight, floor float32) int { return 0 }
func quotients(r []float64, w, d, g []float32, floor float32) int                  { return 0 }
func transpose64(dst, m []float64, rows, n int) int                                { return 0 }

func descend(node, s, t []float32, phi []uint32, n int) bool    { return false }
func ascend(df, mass, s, t []float32, phi []uint32, n int) bool { return false }
func ratioRows(r []float32, sum []float64, d, g []float32, floor float32, from int) (done, width int) {
	return 0, mostColumns
}
func transposed(dst []float32, to int, src []float32, from, rows, columns int) (r, c int) {
	return 0, 0
}
func add32(dst, src []float32) int                             { return 0 }
func scale32(v []float32, a float32) int                       { return 0 }
func standardise(dst, x []float32, shift, scale []float64) int { return 0 }
func canonical32(v []float32) (int, bool)                      { return 0, true }
func canonical64(v []float64) int                              { return 0 }
func exps(dst, x []float64) int                                { return 0 }
func dot64(s *[4]float64, a, b []float64) int                  { return 0 }
func addScaled64Vectors(dst []float64, a float64, x []float64) int {
	return 0
}

func addOuterVia(m []float32, slot, index []uint32, a, x []float32) bool { return false }
func sumOuters(dst []float32, first []uint32, terms []OuterTerm, x []float32, width int) bool {
	return false
}
func narrowOuters(dst []float32, first []uint32, terms []OuterTerm, x []float32, width int) bool {
	return false
}
func (s *rowSum) sum(dst []float32, lists, width int) bool { return false }
func mulProduct(dst, a, b []float32, m, k, n int) bool     { return false }
func mergeRows(dst []float32, index []uint32, a, b []float32, aIndex, bIndex []uint32, width int) (i, j, n int) {
	return 0, 0, 0
}

func momentumStart(x, v, g []float32, rate, momentum, decay float32) (int, bool) { return 0, true }
func adamStart(x, m, v, g []float32, a *AdamFactors) (int, bool)                 { return 0, true }
func momentumRows(x, v, values []float32, index []uint32, width int, factor, rate, momentum, decay float32) (done, finite bool) {
	return false, false
}
