package num

// The assembly runs lanes across outputs, k in order, with fused multiply-adds:
// the same operations as the portable kernels, so the same bits. Build with
// -tags purego to do without. A call of assembly stands behind a condition on Accelerated.

// vector.go

//go:noescape
func add32AVX2(dst, a *float32, n int)

//go:noescape
func addInt32AVX2(dst, a *int32, n int)

//go:noescape
func add64AVX2(dst, a *float64, n int)

//go:noescape
func addConstantAVX2(v *float64, n int, x float64)

//go:noescape
func addScaled64AVX2(dst *float64, a float64, x *float64, n int)

//go:noescape
func addSquaresAVX2(v, y *float64, n int, x float64)

//go:noescape
func mul32AVX2(dst, a *float32, n int)

//go:noescape
func scale32AVX2(v *float32, n int, a float32)

//go:noescape
func standardiseAVX2(dst, x *float32, shift, scale *float64, n int)

//go:noescape
func keepPositiveAVX2(dst, v, by *float32, n int)

//go:noescape
func canonical32AVX2(v *float32, n int) (finite bool)

//go:noescape
func canonical64AVX2(v *float64, n int)

//go:noescape
func dot64AVX2(s, a, b *float64, n int)

//go:noescape
func squaresAVX2(dst, panel, x *float64, n int)

// select.go

//go:noescape
func belowAVX2(dst *float32, at *uint32, v *float32, n int, limit float32, from uint32, order *uint64) int

//go:noescape
func addRows64AVX2(dst *float64, n int, m *float32, index *uint32, rows, limit int) bool

//go:noescape
func squaresAtAVX2(sums, x, scale *float64, a, b, c, d *float32, n int)

// elementary.go

//go:noescape
func expsAVX2(dst, x *float64, n int) int

//go:noescape
func sigmoidPairsAVX2(s, t, f *float32, n int)

//go:noescape
func sigmoidPairsAVX512(s, t, f *float32, n int)

// descent.go

//go:noescape
func momentumAVX2(x, v, grad *float32, n int, rate, momentum, decay float32) bool

//go:noescape
func adamAVX2(x, m, v, grad *float32, n int, a *AdamFactors) bool

//go:noescape
func momentumRowsAVX2(x, v, values *float32, index *uint32, rows, present, width int, factor, rate, momentum,
	decay float32) bool

// rows.go

//go:noescape
func mulAddRowsAVX2(dst *float32, n int, a *float32, rows int, m *float32)

//go:noescape
func mulAddRowsAtAVX2(dst *float32, n int, a *float32, rows int, m *float32, index *uint32, limit int) bool

//go:noescape
func mulAddRowsAtAVX512(dst *float32, n int, a *float32, rows int, m *float32, index *uint32, limit int) bool

//go:noescape
func addOuterAVX2(m *float32, n int, a *float32, rows int, x *float32)

//go:noescape
func addOuterAtAVX2(m *float32, n int, a *float32, rows int, x *float32, index *uint32, limit int) bool

//go:noescape
func addOuterViaAVX2(m *float32, n int, a *float32, rows int, x *float32, index, slot *uint32, slots, limit int) bool

//go:noescape
func addOuterViaAVX512(m *float32, n int, a *float32, rows int, x *float32, index, slot *uint32, slots, limit int) bool

//go:noescape
func addOuter64AVX2(m *float64, n int, a *float32, rows int, x *float32)

// rows.go: sparse rows

//go:noescape
func addSparseProduct64AVX2(dst *float64, n int, spans *Span, rows int, a *float32, index *uint32, m *float64,
	limit int) bool

//go:noescape
func addSparseProductT64AVX2(m *float64, n int, spans *Span, rows int, a *float32, index *uint32, x *float64,
	limit int) bool

// rowblock.go

//go:noescape
func scoreRowsAVX2(dst *float64, x *float32, at *int, groups, k int, packed *float64, n int, offsets *float64,
	vectors int)

//go:noescape
func scoreRowsAVX512(dst *float64, x *float32, at *int, groups, k int, packed *float64, n int, offsets *float64,
	vectors int)

//go:noescape
func addRowOutersAVX2(sums *float64, stride int, x *float32, at *int, rows, k int, p *float64, n int)

//go:noescape
func addRowOutersAVX512(sums *float64, stride int, x *float32, at *int, rows, k int, p *float64, n int)

//go:noescape
func softmaxAVX2(v *float64, n, rows int, totals, most, sum *float64)

//go:noescape
func softmaxAVX512(v *float64, n, rows int, totals, most, sum *float64)

//go:noescape
func scoreEntriesAVX2(dst *float64, spans *Span, rows int, a *float32, index *uint32, m *float64, limit, n, width int,
	offsets *float64) bool

//go:noescape
func addEntryOutersAVX2(m *float64, spans *Span, rows int, a *float32, index *uint32, p *float64, limit, n,
	width int) bool

// product.go

//go:noescape
func addProductAVX2(dst, a, b *float32, m, k, n, ai, at, columns int)

//go:noescape
func addProductAVX512(dst, a, b *float32, m, k, n, ai, at, columns int)

//go:noescape
func widenFourAVX2(tile *float64, b *float32, k, stride int)

//go:noescape
func addTileAVX2(dst, a, tile *float64, m, k, n, columns, stride int, ahead *float32, step int)

//go:noescape
func addTurnedAVX512(dst, a *float64, turned *float32, m, k, n, stride int, ahead *float32, step int)

//go:noescape
func addTurnedAVX2(dst, a *float64, turned *float32, m, k, n, stride int, ahead *float32, skip, step int)

//go:noescape
func turnAVX512(turned, b *float32, k, columns, stride int)

//go:noescape
func turnAVX2(turned, b *float32, k, columns, stride int)

//go:noescape
func widenAVX2(wide *float64, v *float32, n int)

//go:noescape
func transpose64AVX2(dst, m *float64, rows, n int)

//go:noescape
func quotientsAVX512(r *float64, w, d, below *float32, rows, n int, floor float32)

//go:noescape
func quotientsAVX2(r *float64, w, d, below *float32, rows, n int, floor float32)

//go:noescape
func addProductHalfAVX512(dst, a, b *float32, m, k, n, ai, at int)

//go:noescape
func mulProductHalfAVX512(dst, a, b *float32, m, k, n, ai, at int)

//go:noescape
func mulProductAVX2(dst, a, b *float32, m, k, n, ai, at, columns int)

//go:noescape
func transposeAVX2(dst *float32, to int, src *float32, from, rows, columns int)

// ratios.go

//go:noescape
func ratiosAVX2(r *float32, sum *float64, d, below *float32, n int, weight, floor float32) int

//go:noescape
func ratioRowsAVX2(r *float32, sum *float64, d, below *float32, rows, n, columns int, floor float32,
	work *ratioWork) int

//go:noescape
func ratioRowsAVX512(r *float32, sum *float64, d, below *float32, rows, n, columns int, floor float32) int

// sumrows.go

//go:noescape
func sumRowsAVX2(dst *float32, there uint64, has *uint16, place *[MostRows]uint32, lists *[MostRows]*float32, groups,
	width int, zeros *float32)

//go:noescape
func sumRowsAVX512(dst *float32, there uint64, has *uint16, place *[MostRows]uint32, lists *[MostRows]*float32, groups,
	width int, zeros *float32)

//go:noescape
func mergeRowsAVX2(dst *float32, index *uint32, a, b *float32, aIndex, bIndex *uint32, aRows, bRows, width,
	room int) (i, j, n int)

//go:noescape
func mergeRowsAVX512(dst *float32, index *uint32, a, b *float32, aIndex, bIndex *uint32, aRows, bRows, width,
	room int) (i, j, n int)

//go:noescape
func sumOutersAVX2(dst *float32, first *uint32, rows int, terms *OuterTerm, count int, x *float32, of, width int) bool

//go:noescape
func narrowOutersAVX2(dst *float32, first *uint32, rows int, terms *OuterTerm, count int, x *float32, of, width,
	columns int) bool

// ratios.go: walks

//go:noescape
func descendAVX2(node, s, t *float32, phi *uint32, splits, n, units int) bool

//go:noescape
func descendFourAVX2(node, s, t *float32, phi *uint32, splits, n, units int) bool

//go:noescape
func descendAVX512(node, s, t *float32, phi *uint32, splits, n, units int) bool

//go:noescape
func ascendAVX2(df, mass, s, t *float32, phi *uint32, splits, n, units int) bool

//go:noescape
func ascendFourAVX2(df, mass, s, t *float32, phi *uint32, splits, n, units int) bool

//go:noescape
func ascendAVX512(df, mass, s, t *float32, phi *uint32, splits, n, units int) bool
