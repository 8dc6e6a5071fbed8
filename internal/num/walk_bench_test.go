package num

import "testing"

// A step's shapes: 32 samples, trees of 63 split nodes over 64 units, 18 labels.
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
	node, s, t := make([]float32, (2*benchSplits+1)*benchColumns), benchValues(benchUnits*benchColumns), benchValues(benchUnits*benchColumns)
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
			AddProduct(p, q, g, benchLabels, benchColumns)
		}
	})
}
