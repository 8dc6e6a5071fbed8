//go:build !amd64 || purego

package forest

// scanTwo is scanTwoGo.
func scanTwo(entries []uint32, packed []uint64, t *tables, passed uint64, best int64) scanned {
	return scanTwoGo(entries, packed, t, passed, best)
}

// These do the start of their namesakes: nothing without vectors.
func startPartition(entries, spare []uint32, side []uint8) (done, left int, newLeft, newRight uint32) {
	return 0, 0, 0, 0
}
func startKeep(entries []uint32, side []uint8, want uint8) (done, kept int, pending uint32) {
	return 0, 0, 0
}
func startReduce(dst, column, local []uint32) (done, kept int, pending uint32) { return 0, 0, 0 }
