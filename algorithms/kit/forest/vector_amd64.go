//go:build !purego

package forest

import (
	"unsafe"

	"github.com/coppice-ldl/coppice/internal/num"
)

// accelerated says whether this package uses vector instructions. The results are the
// same bits either way. -tags purego turns them off.
var accelerated = num.Accelerated

//go:noescape
func scanBinaryAsm(entries *uint32, n int, packed *uint64, whole, first, second *int64, passed uint64, best int64) (at int, least int64, after uint64, tried int)

//go:noescape
func scanNarrowAsm(entries *uint32, n int, narrow *uint8, unpacked *[256]uint64, whole, first, second *int64, passed uint64, best int64) (at int, least int64, after uint64, tried int)

//go:noescape
func partitionAVX2(entries *uint32, n int, spare *uint32, side *uint8, order *[256]uint64) (left int, newLeft, newRight uint32)

//go:noescape
func partitionRankedAVX2(entries *uint32, n int, spare *uint32, ranks *uint64, order *[256]uint64) (left int, newLeft, newRight uint32)

//go:noescape
func filterSideAVX2(entries *uint32, n int, side *uint8, flip uint32, order *[256]uint64) (kept int, isNew uint32)

//go:noescape
func selectDrawnAVX2(dst, column *uint32, n int, local *uint32, order *[256]uint64) (kept int, isNew uint32)

// scanBinary is scanBinaryGo.
func scanBinary(entries []uint32, packed []uint64, t *entropyTables, passed uint64, best int64) scanResult {
	if !accelerated || len(entries) == 0 {
		return scanBinaryGo(entries, packed, t, passed, best)
	}
	var s scanResult
	s.at, s.least, s.passed, s.tried = scanBinaryAsm(unsafe.SliceData(entries), len(entries), unsafe.SliceData(packed),
		unsafe.SliceData(t.whole), unsafe.SliceData(t.first), unsafe.SliceData(t.second), passed, best)
	return s
}

// scanNarrow is scanNarrowGo.
func scanNarrow(entries []uint32, narrow []uint8, t *entropyTables, passed uint64, best int64) scanResult {
	if !accelerated || len(entries) == 0 {
		return scanNarrowGo(entries, narrow, t, passed, best)
	}
	var s scanResult
	s.at, s.least, s.passed, s.tried = scanNarrowAsm(unsafe.SliceData(entries), len(entries), unsafe.SliceData(narrow), &unpacked,
		unsafe.SliceData(t.whole), unsafe.SliceData(t.first), unsafe.SliceData(t.second), passed, best)
	return s
}

// startPartition does the first entries of Partition, as many as fill whole vectors.
func startPartition(entries, spare []uint32, side []uint8) (done, left int, newLeft, newRight uint32) {
	done = wholeVectors(len(entries))
	if done > 0 {
		left, newLeft, newRight = partitionAVX2(unsafe.SliceData(entries), done, unsafe.SliceData(spare),
			unsafe.SliceData(side), &leftPacked)
	}
	return done, left, newLeft << 31, newRight << 31
}

// startPartitionRanked does the first entries of partitionRanked, as many as fill whole vectors.
func startPartitionRanked(entries, spare []uint32, ranks []uint64) (done, left int, newLeft, newRight uint32) {
	done = wholeVectors(len(entries))
	if done > 0 {
		left, newLeft, newRight = partitionRankedAVX2(unsafe.SliceData(entries), done, unsafe.SliceData(spare),
			unsafe.SliceData(ranks), &leftPacked)
	}
	return done, left, newLeft << 31, newRight << 31
}

// startFilterSide does the first entries of FilterSide, as many as fill whole vectors.
func startFilterSide(entries []uint32, side []uint8, want uint8) (done, kept int, isNew uint32) {
	done = wholeVectors(len(entries))
	if done > 0 {
		kept, isNew = filterSideAVX2(unsafe.SliceData(entries), done, unsafe.SliceData(side), uint32(want-1)&0xff, &leftPacked)
	}
	return done, kept, isNew << 31
}

// startSelectDrawn does the first entries of selectDrawn, as many as fill whole vectors.
func startSelectDrawn(dst, column, local []uint32) (done, kept int, isNew uint32) {
	done = wholeVectors(len(column))
	if done > 0 {
		kept, isNew = selectDrawnAVX2(unsafe.SliceData(dst), unsafe.SliceData(column), done, unsafe.SliceData(local), &leftPacked)
	}
	return done, kept, isNew << 31
}

// wholeVectors returns how many of n entries fill whole vectors of eight.
func wholeVectors(n int) int {
	if !accelerated {
		return 0
	}
	return n &^ 7
}

// leftPacked lists, for each set of a vector's eight lanes, the lanes of the set in
// ascending order, a byte for each. The bytes after them are not used.
var leftPacked = packLeft()

func packLeft() (order [256]uint64) {
	for set := range order {
		n := 0
		for lane := range 8 {
			if set>>lane&1 == 1 {
				order[set] |= uint64(lane) << (8 * n)
				n++
			}
		}
	}
	return order
}
