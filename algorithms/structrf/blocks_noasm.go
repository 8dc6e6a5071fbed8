//go:build !amd64 || purego

package structrf

func gather(block, labels []float32, rows *[lanes]uint32, width int) {
	gatherGo(block, labels, rows, width)
}

func aboveThreshold(sets []uint8, x []float32, normal []float64, plane float64) {
	aboveThresholdGo(sets, x, normal, plane)
}

func distances(dst []float64, x []float32, centre []float64) { distancesGo(dst, x, centre) }

func addRows(dst, x []int64, index []uint32) { addRowsGo(dst, x, index) }

func addLabels(dst []int64, labels []float32, width int, weight, rows []uint32) {
	addLabelsGo(dst, labels, width, weight, rows)
}
