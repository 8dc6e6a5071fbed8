//go:build !purego

package structrf

import (
	"unsafe"

	"github.com/coppice-ldl/coppice/internal/num"
)

// accelerated tells whether the kernels of this package run as vector instructions:
// the bits are the same. Build with -tags purego to do without.
var accelerated = num.Accelerated

//go:noescape
func gatherAVX2(block, labels *float32, rows *uint32, width int)

//go:noescape
func aboveThresholdAVX2(sets *uint8, blocks int, x *float32, normal *float64, width int, plane float64)

//go:noescape
func distancesAVX2(dst *float64, blocks int, x *float32, centre *float64, width int)

//go:noescape
func addRowsAVX2(dst *int64, width int, x *int64, index *uint32, n int)

//go:noescape
func addLabelsAVX2(dst *int64, labels *float32, width int, weight, rows *uint32, n int)

func gather(block, labels []float32, rows *[lanes]uint32, width int) {
	if !accelerated {
		gatherGo(block, labels, rows, width)
		return
	}
	gatherAVX2(unsafe.SliceData(block), unsafe.SliceData(labels), &rows[0], width)
}

func aboveThreshold(sets []uint8, x []float32, normal []float64, plane float64) {
	if !accelerated || len(sets) == 0 {
		aboveThresholdGo(sets, x, normal, plane)
		return
	}
	aboveThresholdAVX2(unsafe.SliceData(sets), len(sets), unsafe.SliceData(x), unsafe.SliceData(normal), len(normal), plane)
}

func distances(dst []float64, x []float32, centre []float64) {
	if !accelerated || len(dst) == 0 {
		distancesGo(dst, x, centre)
		return
	}
	distancesAVX2(unsafe.SliceData(dst), len(dst)/lanes, unsafe.SliceData(x), unsafe.SliceData(centre), len(centre))
}

// addRows is addRowsGo; the length of dst is a multiple of four.
func addRows(dst, x []int64, index []uint32) {
	if !accelerated || len(index) == 0 {
		addRowsGo(dst, x, index)
		return
	}
	addRowsAVX2(unsafe.SliceData(dst), len(dst), unsafe.SliceData(x), unsafe.SliceData(index), len(index))
}

// addLabels is addLabelsGo; the length of dst is a multiple of four, and no weight of rows is above mostWeight.
func addLabels(dst []int64, labels []float32, width int, weight, rows []uint32) {
	if !accelerated || len(rows) == 0 {
		addLabelsGo(dst, labels, width, weight, rows)
		return
	}
	addLabelsAVX2(unsafe.SliceData(dst), unsafe.SliceData(labels), width, unsafe.SliceData(weight), unsafe.SliceData(rows), len(rows))
}
