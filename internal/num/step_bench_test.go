package num

import "testing"

// The shapes of a gradient step of one unit: 32 samples, trees of 63 split nodes over 64 units, 18 labels.
const (
	benchColumns = 32
	benchSplits  = 63
	benchUnits   = 64
	benchLabels  = 18
)

func benchValues(n int) []float32 {
	s := NewStream(NewKey(1, "bench/step"), 0, 0)
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(s.Float64()) + 0.01
	}
	return v
}

func BenchmarkDescend(b *testing.B) {
	node, s, t := make([]float32, (2*benchSplits+1)*benchColumns), benchValues(benchUnits*benchColumns),
		benchValues(benchUnits*benchColumns)
	for b.Loop() {
		Descend(node, s, t, benchPhi(), benchColumns)
	}
}

func BenchmarkAscend(b *testing.B) {
	df, mass := make([]float32, benchUnits*benchColumns), benchValues((2*benchSplits+1)*benchColumns)
	s, t := benchValues(benchUnits*benchColumns), benchValues(benchUnits*benchColumns)
	for b.Loop() {
		Ascend(df, mass, s, t, benchPhi(), benchColumns)
	}
}

var phiOfBenchmarks [benchSplits]uint32

func benchPhi() []uint32 {
	for i := range phiOfBenchmarks {
		phiOfBenchmarks[i] = uint32(i * 37 % benchUnits)
	}
	return phiOfBenchmarks[:]
}

func BenchmarkRatioRows(b *testing.B) {
	n := benchLabels * benchColumns
	r, d, g, sum := make([]float32, n), benchValues(n), benchValues(n), make([]float64, benchColumns)
	for b.Loop() {
		RatioRows(r, sum, d, g, 1e-20)
	}
}

func BenchmarkSigmoidPairs(b *testing.B) {
	f := benchValues(benchUnits * benchColumns)
	s, t := make([]float32, len(f)), make([]float32, len(f))
	for b.Loop() {
		SigmoidPairs(s, t, f)
	}
}

func BenchmarkTranspose32(b *testing.B) {
	f := benchValues(benchUnits * benchColumns)
	t := make([]float32, len(f))
	for b.Loop() {
		Transpose32(t, benchColumns, f, benchUnits, benchColumns, benchUnits)
	}
}

// BenchmarkAddProductLeaves are the products of a tree, leaves to labels and back.
func BenchmarkAddProductLeaves(b *testing.B) {
	leaves := benchSplits + 1
	q, p, g := benchValues(leaves*benchLabels), benchValues(leaves*benchColumns), benchValues(benchLabels*benchColumns)
	b.Run("predict", func(b *testing.B) {
		for b.Loop() {
			AddProductT(g, q, p, leaves, benchColumns)
		}
	})
	b.Run("mass", func(b *testing.B) {
		for b.Loop() {
			MulProduct(p, q, g, benchLabels, benchColumns)
			p[0] = 1 // else all become 0
		}
	})
}

// benchRows are every tenth row of 1,869, and every eleventh.
func benchRows(every int) (values []float32, index []uint32) {
	for row := 0; row < 1869; row += every {
		index = append(index, uint32(row))
	}
	return benchValues(len(index) * benchUnits), index
}

func BenchmarkMergeRows(b *testing.B) {
	x, xIndex := benchRows(10)
	y, yIndex := benchRows(11)
	dst, index := make([]float32, len(x)+len(y)), make([]uint32, len(xIndex)+len(yIndex))
	for b.Loop() {
		MergeRows(dst, index, x, y, xIndex, yIndex, benchUnits)
	}
}

func BenchmarkMomentumRows(b *testing.B) {
	g, index := benchRows(10)
	x, v := benchValues(1869*benchUnits), make([]float32, 1869*benchUnits)
	for b.Loop() {
		MomentumRows(x, v, g, index, benchUnits, 0.01, 1, 0.9, 1e-5)
	}
}

func BenchmarkAddOuterVia(b *testing.B) {
	m, index := benchRows(20)
	a, x, slot := benchValues(len(index)), benchValues(benchUnits), make([]uint32, 1869)
	for i, row := range index {
		slot[row] = uint32(i)
	}
	for b.Loop() {
		AddOuterVia(m, slot, index, a, x)
	}
}

func BenchmarkVectorLoops(b *testing.B) {
	v, w := benchValues(1600), benchValues(1600)
	shift, scale := make([]float64, len(v)), make([]float64, len(v))
	for name, run := range map[string]func(){
		"Add32":       func() { Add32(v, w) },
		"Scale32":     func() { Scale32(v, 1) },
		"Canonical32": func() { Canonical32(v) },
		"Standardise": func() { Standardise(v, w, shift, scale) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				run()
			}
		})
	}
}

func BenchmarkPermutationAppend(b *testing.B) {
	p := NewPermutation(NewKey(1, "bench"), 0, 0, 154)
	var dst []uint32
	for b.Loop() {
		dst = p.Append(dst[:0], 64, benchColumns)
	}
}

// benchOuters are the rows of a gradient that one unit's samples touch: 21 of 1,869 each.
func benchOuters(unit int) (index []uint32, o *Outers) {
	const rows, each = 1869, 21
	o = &Outers{X: benchValues(benchColumns * benchUnits), Terms: make([]OuterTerm, benchColumns*each), Width: benchUnits}
	touched, head := make([]uint64, (rows+63)/64), make([]uint32, rows)
	s := NewStream(NewKey(1, "bench/outers"), 0, uint32(unit))
	for i := range o.Terms {
		row := s.Uint32() % rows
		o.Terms[i] = OuterTerm{A: 0.5, X: uint32(i / each), Next: head[row]}
		head[row] = uint32(i + 1)
		touched[row/64] |= 1 << (row % 64)
	}
	index, o.First = make([]uint32, CountBits(touched)), make([]uint32, CountBits(touched))
	ListRows(index, o.First, touched, head)
	return index, o
}

// BenchmarkSumOuters reads a row for each term and writes one for each sum.
func BenchmarkSumOuters(b *testing.B) {
	index, o := benchOuters(0)
	dst := make([]float32, len(index)*benchUnits)
	for b.Loop() {
		o.Compute(dst, 0)
	}
	b.ReportMetric(float64((len(index)+len(o.Terms))*benchUnits*4*b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
}

// BenchmarkSumRows are the partials of 16 units. It reads their rows, or the rows of their
// terms, and writes their sum.
func BenchmarkSumRows(b *testing.B) {
	for _, later := range []bool{false, true} {
		name := map[bool]string{false: "there", true: "later"}[later]
		b.Run(name, func(b *testing.B) {
			lists, all := make([]Rows, MostRows), 0
			for i := range lists {
				index, o := benchOuters(i)
				lists[i] = Rows{Index: index, Later: o}
				all += len(o.Terms)
				if !later {
					lists[i] = Rows{Index: index, Values: benchValues(len(index) * benchUnits)}
					all += len(index) - len(o.Terms)
				}
			}
			dst, index, n := make([]float32, 1869*benchUnits), make([]uint32, 1869), 0
			var work []float32
			for b.Loop() {
				n, work = SumRows(dst, index, lists, benchUnits, work)
			}
			b.ReportMetric(float64((n+all)*benchUnits*4*b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
		})
	}
}
