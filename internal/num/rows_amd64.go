//go:build !purego

package num

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// The assembly runs lanes across outputs, k in order, with fused multiply-adds:
// the same operations as the portable kernels, so the same bits. Build with
// -tags purego to do without.

var accelerated = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI2 && cpu.X86.HasPOPCNT

// Accelerated tells whether kernels run as vector instructions here; the bits
// are the same.
func Accelerated() bool { return accelerated }

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
func addOuter64AVX2(m *float64, n int, a *float32, rows int, x *float32)

//go:noescape
func sigmoidPairsAVX2(s, t, f *float32, n int)

//go:noescape
func sigmoidPairsAVX512(s, t, f *float32, n int)

func mulAddRows(dst, a, m []float32) {
	if !accelerated {
		mulAddRowsGo(dst, a, m)
		return
	}
	mulAddRowsAVX2(unsafe.SliceData(dst), len(dst), unsafe.SliceData(a), len(a), unsafe.SliceData(m))
}

func mulAddRowsAt(dst, a []float32, index []uint32, m []float32) {
	n := len(dst)
	if !accelerated || n == 0 {
		mulAddRowsAtGo(dst, a, index, m)
		return
	}
	run := mulAddRowsAtAVX2
	if wide && n%64 == 0 && len(a) > 0 {
		run = mulAddRowsAtAVX512
	}
	if !run(unsafe.SliceData(dst), n, unsafe.SliceData(a), len(a), unsafe.SliceData(m),
		unsafe.SliceData(index), len(m)/n) {
		panicIndex()
	}
}

func addOuter(m, a, x []float32) {
	if !accelerated {
		addOuterGo(m, a, x)
		return
	}
	addOuterAVX2(unsafe.SliceData(m), len(x), unsafe.SliceData(a), len(a), unsafe.SliceData(x))
}

func addOuterAt(m []float32, index []uint32, a, x []float32) {
	n := len(x)
	if !accelerated || n == 0 {
		addOuterAtGo(m, index, a, x)
		return
	}
	if !addOuterAtAVX2(unsafe.SliceData(m), n, unsafe.SliceData(a), len(a), unsafe.SliceData(x),
		unsafe.SliceData(index), len(m)/n) {
		panicIndex()
	}
}

func addOuter64(m []float64, a, x []float32) {
	if !accelerated {
		addOuter64Go(m, a, x)
		return
	}
	addOuter64AVX2(unsafe.SliceData(m), len(x), unsafe.SliceData(a), len(a), unsafe.SliceData(x))
}

// sigmoidPairs does the start of SigmoidPairs and returns its length.
func sigmoidPairs(s, t, f []float32) int {
	if !accelerated {
		return 0
	}
	if wide {
		n := len(f) &^ 7
		sigmoidPairsAVX512(unsafe.SliceData(s), unsafe.SliceData(t), unsafe.SliceData(f), n)
		return n
	}
	n := len(f) &^ 3
	sigmoidPairsAVX2(unsafe.SliceData(s), unsafe.SliceData(t), unsafe.SliceData(f), n)
	return n
}
