package structrf

import (
	"unsafe"

	"github.com/coppice-ldl/coppice/internal/num"
)

// Rows are stored in blocks of eight: label j of row i of block b is x[(b·width+j)·8+i].
// A vector has one label of eight rows, so each row's sum over labels is added in order.

// lanes is the number of rows of a block.
const lanes = 8

// gatherGo writes the label distributions of eight rows to a block.
func gatherGo(block, labels []float32, rows *[lanes]uint32, width int) {
	for i, row := range rows {
		for j, v := range labels[int(row)*width : (int(row)+1)*width] {
			block[j*lanes+i] = v
		}
	}
}

// aboveThresholdGo writes, for each block, the set of its rows for which Σ x·normal, over
// labels in order, is above plane.
func aboveThresholdGo(sets []uint8, x []float32, normal []float64, plane float64) {
	width := len(normal)
	for b := range sets {
		var sum [lanes]float64
		for j, v := range normal {
			at := (b*width + j) * lanes
			for i, a := range x[at : at+lanes] {
				sum[i] += float64(float64(a) * v)
			}
		}
		set := uint8(0)
		for i, v := range sum {
			if v > plane {
				set |= 1 << i
			}
		}
		sets[b] = set
	}
}

// distancesGo writes the squared distance of each row of all blocks from centre, added
// over labels in order.
func distancesGo(dst []float64, x []float32, centre []float64) {
	width := len(centre)
	for b := 0; b < len(dst)/lanes; b++ {
		sum := dst[b*lanes : (b+1)*lanes]
		clear(sum)
		for j, c := range centre {
			at := (b*width + j) * lanes
			for i, a := range x[at : at+lanes] {
				d := float64(a) - c
				sum[i] += float64(d * d)
			}
		}
	}
}

// addRowsGo adds to dst the rows of x that index lists; a row is as long as dst.
func addRowsGo(dst, x []int64, index []uint32) {
	width := len(dst)
	for _, row := range index {
		for j, v := range x[int(row)*width : (int(row)+1)*width] {
			dst[j] += v
		}
	}
}

// fixedOne is 1 in the fixed-point sums of degrees: the sum over the largest sample
// is below 2^63.
const fixedOne = 1 << 36

// mostWeight is how many copies of a row addLabels supports: products are below 2^51.
const mostWeight = 1 << 14

// toFixed returns a degree in units of 2^-36, rounded.
func toFixed(x float64) int64 { return int64(float64(x*fixedOne) + 0.5) }

// addLabelsGo adds to dst the products of weight and label of rows, fixed-point. A row has width labels; dst is as long
// or longer, and elements after these are not used.
func addLabelsGo(dst []int64, labels []float32, width int, weight, rows []uint32) {
	for _, row := range rows {
		w := int64(weight[row])
		for j, v := range labels[int(row)*width : (int(row)+1)*width] {
			dst[j] += w * toFixed(float64(v))
		}
	}
}

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
	if !num.Accelerated {
		gatherGo(block, labels, rows, width)
		return
	}
	gatherAVX2(unsafe.SliceData(block), unsafe.SliceData(labels), &rows[0], width)
}

func aboveThreshold(sets []uint8, x []float32, normal []float64, plane float64) {
	if !num.Accelerated || len(sets) == 0 {
		aboveThresholdGo(sets, x, normal, plane)
		return
	}
	aboveThresholdAVX2(unsafe.SliceData(sets), len(sets), unsafe.SliceData(x), unsafe.SliceData(normal),
		len(normal), plane)
}

func distances(dst []float64, x []float32, centre []float64) {
	if !num.Accelerated || len(dst) == 0 {
		distancesGo(dst, x, centre)
		return
	}
	distancesAVX2(unsafe.SliceData(dst), len(dst)/lanes, unsafe.SliceData(x), unsafe.SliceData(centre), len(centre))
}

// addRows is addRowsGo; the length of dst is a multiple of four.
func addRows(dst, x []int64, index []uint32) {
	if !num.Accelerated || len(index) == 0 {
		addRowsGo(dst, x, index)
		return
	}
	addRowsAVX2(unsafe.SliceData(dst), len(dst), unsafe.SliceData(x), unsafe.SliceData(index), len(index))
}

// addLabels is addLabelsGo; the length of dst is a multiple of four, and no weight of rows is above mostWeight.
func addLabels(dst []int64, labels []float32, width int, weight, rows []uint32) {
	if !num.Accelerated || len(rows) == 0 {
		addLabelsGo(dst, labels, width, weight, rows)
		return
	}
	addLabelsAVX2(unsafe.SliceData(dst), unsafe.SliceData(labels), width, unsafe.SliceData(weight),
		unsafe.SliceData(rows), len(rows))
}
