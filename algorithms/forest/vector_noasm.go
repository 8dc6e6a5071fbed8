//go:build !amd64 || purego

package forest

// scanBinary is scanBinaryGo.
func scanBinary(entries []uint32, packed []uint64, t *entropyTables, passed uint64, best int64) scanResult {
	return scanBinaryGo(entries, packed, t, passed, best)
}

// The functions below process whole vectors: nothing without vector instructions.
func startPartition(entries, spare []uint32, side []uint8) (done, left int, newLeft, newRight uint32) {
	return 0, 0, 0, 0
}
func startFilterSide(entries []uint32, side []uint8, want uint8) (done, kept int, pending uint32) {
	return 0, 0, 0
}
func startSelectDrawn(dst, column, local []uint32) (done, kept int, pending uint32) { return 0, 0, 0 }

// walkRows is walkRowsGo for a tree of some depth.
func walkRows(leaves []uint32, f *walkNodes, x []uint32, width int, root uint32, _ int) {
	walkRowsGo(leaves, f, x, width, root)
}

func walkTrees(roots []uint32, f *walkNodes, x []uint32) { walkTreesGo(roots, f, x) }

func addLeaves(sums []float64, leaves []float32, at []uint32, labels int) {
	addLeavesGo(sums, leaves, at, labels)
}
