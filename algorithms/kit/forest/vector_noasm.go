//go:build !amd64 || purego

package forest

// This build has no vector instructions: each function below is its twin in Go, or leaves
// all entries to the caller.

// scanBinary is scanBinaryGo.
func scanBinary(entries []uint32, packed []uint64, t *entropyTables, passed uint64, best int64) scanResult {
	return scanBinaryGo(entries, packed, t, passed, best)
}

// scanNarrow is scanNarrowGo.
func scanNarrow(entries []uint32, narrow []uint8, t *entropyTables, passed uint64, best int64) scanResult {
	return scanNarrowGo(entries, narrow, t, passed, best)
}

// startPartition processes no entries: Partition processes all of them.
func startPartition(entries, spare []uint32, side []uint8) (done, left int, newLeft, newRight uint32) {
	return 0, 0, 0, 0
}

// startPartitionRanked processes no entries: partitionRanked processes all of them.
func startPartitionRanked(entries, spare []uint32, ranks []uint64) (done, left int, newLeft, newRight uint32) {
	return 0, 0, 0, 0
}

// startFilterSide processes no entries: FilterSide processes all of them.
func startFilterSide(entries []uint32, side []uint8, want uint8) (done, kept int, isNew uint32) {
	return 0, 0, 0
}

// startSelectDrawn processes no entries: selectDrawn processes all of them.
func startSelectDrawn(dst, column, local []uint32) (done, kept int, isNew uint32) { return 0, 0, 0 }

// walkRows is walkRowsGo. The last parameter, the depth of the tree, is for the assembly.
func walkRows(leaves []uint32, f *walkNodes, x []uint32, width int, root uint32, _ int) {
	walkRowsGo(leaves, f, x, width, root)
}

// walkTrees is walkTreesGo.
func walkTrees(roots []uint32, f *walkNodes, x []uint32) { walkTreesGo(roots, f, x) }

// addLeaves is addLeavesGo.
func addLeaves(sums []float64, leaves []float32, reached []uint32, labels int) {
	addLeavesGo(sums, leaves, reached, labels)
}

// noteRow is noteRowGo.
func (f *setForest) noteRow(answers [][blockHalves]rowSet, row int, columns []uint32, values []float32) {
	f.noteRowGo(answers, row, columns, values)
}

// divideSets is divideSetsGo.
func divideSets(s *setSpace, used int, answers [][blockHalves]rowSet, borders []border) {
	divideSetsGo(s, used, answers, borders)
}

// numberLeaves is numberLeavesGo.
func numberLeaves(leaves *[setRows]uint32, planes []rowSet, numbers []uint16) {
	numberLeavesGo(leaves, planes, numbers)
}
