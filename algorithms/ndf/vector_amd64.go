//go:build !purego

package ndf

import (
	"unsafe"

	"github.com/coppice-ldl/coppice/internal/num"
)

// accelerated says whether this package uses vector instructions. The results are the
// same bits either way. -tags purego turns them off.
var accelerated = num.Accelerated

//go:noescape
func routedMassAVX2(fl, fr *float64, w *float32, n int, l, r *[sumLanes]float64)

//go:noescape
func ratioSumsAVX2(fl, fr *float64, w *float32, n int, pl, pr, least float64, l, r *[sumLanes]float64)

//go:noescape
func addRatiosAVX2(slopes, fl, fr *float64, w *float32, n int, pl, pr, least, d float64)

//go:noescape
func tanhsAVX2(x *float32, n int)

//go:noescape
func tanhSlopesAVX2(t, d *float32, n int, w float32)

// whole returns how many of n elements fill vectors of so many lanes.
func whole(n, lanes int) int {
	if !accelerated {
		return 0
	}
	return n / lanes * lanes
}

// routedMassStart does the first elements of routedMass and returns how many.
func routedMassStart(fl, fr []float64, w []float32, l, r *[sumLanes]float64) int {
	n := whole(len(w), sumLanes)
	if n > 0 {
		routedMassAVX2(unsafe.SliceData(fl), unsafe.SliceData(fr), unsafe.SliceData(w), n, l, r)
	}
	return n
}

// ratioSumsStart does the first elements of ratioSums and returns how many.
func ratioSumsStart(fl, fr []float64, w []float32, pl, pr float64, l, r *[sumLanes]float64) int {
	n := whole(len(w), sumLanes)
	if n > 0 {
		ratioSumsAVX2(unsafe.SliceData(fl), unsafe.SliceData(fr), unsafe.SliceData(w), n, pl, pr, leastRatio, l, r)
	}
	return n
}

// addRatiosStart does the first elements of addRatios and returns how many.
func addRatiosStart(g, fl, fr []float64, w []float32, pl, pr float64) int {
	n := whole(len(w), sumLanes)
	if n > 0 {
		addRatiosAVX2(unsafe.SliceData(g), unsafe.SliceData(fl), unsafe.SliceData(fr), unsafe.SliceData(w), n, pl, pr, leastRatio, pl-pr)
	}
	return n
}

// floatLanes is the number of float32 in a vector.
const floatLanes = 8

// tanhsStart does the first elements of tanhs and returns how many.
func tanhsStart(x []float32) int {
	n := whole(len(x), floatLanes)
	if n > 0 {
		tanhsAVX2(unsafe.SliceData(x), n)
	}
	return n
}

// tanhSlopesStart does the first elements of tanhSlopes and returns how many.
func tanhSlopesStart(t, d []float32, w float32) int {
	n := whole(len(t), floatLanes)
	if n > 0 {
		tanhSlopesAVX2(unsafe.SliceData(t), unsafe.SliceData(d), n, w)
	}
	return n
}
