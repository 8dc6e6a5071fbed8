package num

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// atPageEnd returns memory of n values behind which nothing may be read or written.
func atPageEnd[T any](t *testing.T, n int) []T {
	var one T
	page, size := unix.Getpagesize(), n*int(unsafe.Sizeof(one))
	whole := (size + page - 1) / page * page
	b, err := unix.Mmap(-1, 0, whole+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Skip("no memory can be mapped:", err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	if err := unix.Mprotect(b[whole:], unix.PROT_NONE); err != nil {
		t.Skip("no page can be guarded:", err)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b[whole-size:]))), n)
}

// TestPageEnd runs kernels on slices of their exact lengths at the end of what may be read.
func TestPageEnd(t *testing.T) {
	for _, m := range []int{1, 3, 4, 5} {
		for _, n := range []int{1, 4, 7, 8, 20, 33, 64, 65, 96} {
			for _, k := range []int{1, 8, 11, 65} {
				a, b, dst := atPageEnd[float32](t, m*k), atPageEnd[float32](t, k*n), atPageEnd[float32](t, m*n)
				AddProduct(dst, a, b, k, n)
				AddProductT(dst, a, b, k, n)
				stride := (k + 7) / 8 * 8
				wide, narrow := atPageEnd[float64](t, m*stride), atPageEnd[float32](t, n*stride)
				AddProduct64T(atPageEnd[float64](t, m*n), wide, narrow, k, stride, narrow, new(Tile))
				packed, at := atPageEnd[float64](t, PackedLen(k, n)), []int{0, (m - 1) * k}
				ScoreRows(atPageEnd[float64](t, ScoreValues(n)), a, at, k, packed, n)
				AddRowOuters(atPageEnd[float64](t, n*stride), stride, a, at, k, atPageEnd[float64](t, n*BlockRows), n)
				Softmax(atPageEnd[float64](t, n*BlockRows), n, k%BlockRows, atPageEnd[float64](t, n*TotalLanes), new(SoftmaxRows))
				Transpose64(atPageEnd[float64](t, m*n), atPageEnd[float64](t, m*n), n)
			}
			x, y, z := atPageEnd[float32](t, n), atPageEnd[float32](t, n), atPageEnd[float32](t, n)
			v := atPageEnd[float32](t, n)
			Momentum(x, y, z, 1, 1, 1)
			Adam(x, y, z, v, &AdamFactors{Correct1: 1, Correct2: 1, Epsilon: 1})
			rows := atPageEnd[float32](t, m*n)
			entries, columns := atPageEnd[float32](t, 2), atPageEnd[uint32](t, 2)
			two := atPageEnd[Span](t, 2)
			two[0].To, two[1] = 1, Span{1, 2}
			columns[1] = uint32(m - 1)
			AddSparseProduct64(atPageEnd[float64](t, 2*n), two, entries, columns, atPageEnd[float64](t, m*n), n)
			AddSparseProductT64(atPageEnd[float64](t, m*n), two, entries, columns, atPageEnd[float64](t, 2*n), n)
			AddRows64(atPageEnd[float64](t, n), rows, columns)
			SquaresAt(atPageEnd[float64](t, 2), atPageEnd[float64](t, n), atPageEnd[float64](t, n), rows, columns)
			Below(atPageEnd[float32](t, n), atPageEnd[uint32](t, n), v, 0, 0)
			AddEntryOuters(atPageEnd[float64](t, m*n), two, entries, columns, atPageEnd[float64](t, n*BlockRows), n)
			ScoreEntries(atPageEnd[float64](t, n*BlockRows), two, entries, columns, atPageEnd[float64](t, m*n),
				atPageEnd[float64](t, n), n)
			Quotients(atPageEnd[float64](t, m*n), v, rows, rows, 1)
		}
	}
}
