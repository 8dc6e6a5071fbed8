//go:build !amd64 || purego

package num

// Without vectors the portable loops do everything, and nothing calls the assembly.
const (
	accelerated = false
	wide        = false
	noVectors   = "num: this build has no vectors"
)

func add32AVX2(dst, a *float32, n int)                              { panic(noVectors) }
func add64AVX2(dst, a *float64, n int)                              { panic(noVectors) }
func addConstantAVX2(v *float64, n int, x float64)                  { panic(noVectors) }
func addScaled64AVX2(dst *float64, a float64, x *float64, n int)    { panic(noVectors) }
func addSquaresAVX2(v, y *float64, n int, x float64)                { panic(noVectors) }
func mul32AVX2(dst, a *float32, n int)                              { panic(noVectors) }
func scale32AVX2(v *float32, n int, a float32)                      { panic(noVectors) }
func standardiseAVX2(dst, x *float32, shift, scale *float64, n int) { panic(noVectors) }
func keepPositiveAVX2(dst, v, by *float32, n int)                   { panic(noVectors) }
func canonical32AVX2(v *float32, n int) (finite bool)               { panic(noVectors) }
func canonical64AVX2(v *float64, n int)                             { panic(noVectors) }
func dot64AVX2(s, a, b *float64, n int)                             { panic(noVectors) }
func squaresAVX2(dst, panel, x *float64, n int)                     { panic(noVectors) }

func belowAVX2(dst *float32, at *uint32, v *float32, n int, limit float32, from uint32, order *uint64) int {
	panic(noVectors)
}
func addRows64AVX2(dst *float64, n int, m *float32, index *uint32, rows, limit int) bool {
	panic(noVectors)
}
func squaresAtAVX2(sums, x, scale *float64, a, b, c, d *float32, n int) { panic(noVectors) }

func expsAVX2(dst, x *float64, n int) int        { panic(noVectors) }
func sigmoidPairsAVX2(s, t, f *float32, n int)   { panic(noVectors) }
func sigmoidPairsAVX512(s, t, f *float32, n int) { panic(noVectors) }

func momentumAVX2(x, v, grad *float32, n int, rate, momentum, decay float32) bool { panic(noVectors) }
func adamAVX2(x, m, v, grad *float32, n int, a *AdamFactors) bool                 { panic(noVectors) }
func momentumRowsAVX2(x, v, values *float32, index *uint32, rows, present, width int, factor, rate, momentum, decay float32) bool {
	panic(noVectors)
}

func mulAddRowsAVX2(dst *float32, n int, a *float32, rows int, m *float32) { panic(noVectors) }
func mulAddRowsAtAVX2(dst *float32, n int, a *float32, rows int, m *float32, index *uint32, limit int) bool {
	panic(noVectors)
}
func mulAddRowsAtAVX512(dst *float32, n int, a *float32, rows int, m *float32, index *uint32, limit int) bool {
	panic(noVectors)
}
func addOuterAVX2(m *float32, n int, a *float32, rows int, x *float32) { panic(noVectors) }
func addOuterAtAVX2(m *float32, n int, a *float32, rows int, x *float32, index *uint32, limit int) bool {
	panic(noVectors)
}
func addOuterViaAVX2(m *float32, n int, a *float32, rows int, x *float32, index, slot *uint32, slots, limit int) bool {
	panic(noVectors)
}
func addOuterViaAVX512(m *float32, n int, a *float32, rows int, x *float32, index, slot *uint32, slots, limit int) bool {
	panic(noVectors)
}
func addOuter64AVX2(m *float64, n int, a *float32, rows int, x *float32) { panic(noVectors) }

func addSparseProduct64AVX2(dst *float64, n int, spans *Span, rows int, a *float32, index *uint32, m *float64, limit int) bool {
	panic(noVectors)
}
func addSparseProductT64AVX2(m *float64, n int, spans *Span, rows int, a *float32, index *uint32, x *float64, limit int) bool {
	panic(noVectors)
}

func scoreRowsAVX2(dst *float64, x *float32, at *int, groups, k int, packed *float64, n int, offsets *float64, vectors int) {
	panic(noVectors)
}
func scoreRowsAVX512(dst *float64, x *float32, at *int, groups, k int, packed *float64, n int, offsets *float64, vectors int) {
	panic(noVectors)
}
func addRowOutersAVX2(sums *float64, stride int, x *float32, at *int, rows, k int, p *float64, n int) {
	panic(noVectors)
}
func addRowOutersAVX512(sums *float64, stride int, x *float32, at *int, rows, k int, p *float64, n int) {
	panic(noVectors)
}
func scoreEntriesAVX2(dst *float64, spans *Span, rows int, a *float32, index *uint32, m *float64, limit, n, width int, offsets *float64) bool {
	panic(noVectors)
}
func addEntryOutersAVX2(m *float64, spans *Span, rows int, a *float32, index *uint32, p *float64, limit, n, width int) bool {
	panic(noVectors)
}
func softmaxAVX2(v *float64, n, rows int, totals, most, sum *float64)   { panic(noVectors) }
func softmaxAVX512(v *float64, n, rows int, totals, most, sum *float64) { panic(noVectors) }

// addProduct takes the portable loops for all. The others do nothing, and say so.

func addProduct(dst, a, b []float32, m, k, n, ai, at int) { addProductGo(dst, a, b, m, k, n, ai, at) }

func addProduct64T(dst, a []float64, b []float32, k, stride int, next []float32, tile *Tile) bool {
	return false
}
func mulProduct(dst, a, b []float32, m, k, n int) bool { return false }
func transpose64(dst, m []float64, rows, n int) int    { return 0 }
func transposed(dst []float32, to int, src []float32, from, rows, columns int) (r, c int) {
	return 0, 0
}

func quotients(r []float64, w, d, g []float32, floor float32) int                  { return 0 }
func ratios(r []float32, sum []float64, d, g []float32, weight, floor float32) int { return 0 }
func ratioRows(r []float32, sum []float64, d, g []float32, floor float32, from int) (done, width int) {
	return 0, mostColumns
}

func descend(node, s, t []float32, phi []uint32, n int) bool    { return false }
func ascend(df, mass, s, t []float32, phi []uint32, n int) bool { return false }

func (s *rowSum) sum(dst []float32, lists, width int) bool { return false }
func mergeRows(dst []float32, index []uint32, a, b []float32, aIndex, bIndex []uint32, width int) (i, j, n int) {
	return 0, 0, 0
}
func sumOuters(dst []float32, first []uint32, terms []OuterTerm, x []float32, width int) bool {
	return false
}
