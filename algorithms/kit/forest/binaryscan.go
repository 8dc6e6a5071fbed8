package forest

// entropyTables are lookup tables for the gains at one node of two classes. Element k is
// xlogx(k) + xlogx(n-k) for n copies: of both classes (whole), of class 0 (first) and of
// class 1 (second). With l0 and l1 copies on the left, the sum over both sides of entropy
// times copies is whole[l0+l1] - first[l0] - second[l1].
type entropyTables struct {
	made                 bool
	passed               int // entries that were scanned without the tables
	whole, first, second []int64
}

// reset prepares for another node.
func (t *entropyTables) reset() { t.made, t.passed = false, 0 }

// prepare makes the tables of a node with n0 and n1 copies of the classes, once half as
// many entries were scanned as the node has copies: for fewer entries the tables cost more
// than they save. It reports whether the tables are made.
func (t *entropyTables) prepare(entries int, xlogx []int64, n0, n1 uint32) bool {
	if t.made {
		return true
	}
	t.passed += entries
	if 2*t.passed <= int(n0+n1) {
		return false
	}
	t.made = true
	bothSides(&t.whole, xlogx[:n0+n1+1])
	bothSides(&t.first, xlogx[:n0+1])
	bothSides(&t.second, xlogx[:n1+1])
	return true
}

// bothSides sets (*v)[k] to x[k] + x[n-k], where x has n+1 numbers.
func bothSides(v *[]int64, x []int64) {
	dst, n := Resized(v, len(x)), len(x)-1
	for k, y := range x {
		dst[k] = y + x[n-k]
	}
}

// scanResult is the result of scanBinary.
type scanResult struct {
	at     int    // the first entry of the least sum; -1 if no sum is below best
	least  int64  // that sum, or best
	passed uint64 // copies before the end, by class
	tried  int    // thresholds
}

// scanBinaryGo tries the threshold before each entry of a new value; passed counts the
// copies before the first entry. The assembly must give the same results.
func scanBinaryGo(entries []uint32, packed []uint64, t *entropyTables, passed uint64, best int64) scanResult {
	at, tried := -1, 0
	whole, first, second := t.whole, t.first, t.second
	for i, e := range entries {
		if e&NewValue != 0 {
			tried++
			l0, l1 := uint32(passed), uint32(passed>>32)
			if sum := whole[l0+l1] - first[l0] - second[l1]; sum < best {
				best, at = sum, i
			}
		}
		passed += packed[e&RowMask]
	}
	return scanResult{at, best, passed, tried}
}

const (
	// leastNarrow is the number of rows from which on the copies of rows are packed in bytes: as words, so
	// many do not fit the cache.
	leastNarrow = 1 << 14
	// mostNarrow is how many copies of a row fit a byte. Its highest bit is the row's class.
	mostNarrow = 1<<classBit - 1
	classBit   = 7
)

// unpacked has, for each byte, the copies in the half of their class of a word.
var unpacked = unpackNarrow()

func unpackNarrow() (words [256]uint64) {
	for i := range words {
		words[i] = uint64(i&mostNarrow) << (32 * (i >> classBit))
	}
	return words
}

// scanNarrowGo is scanBinaryGo for copies packed in bytes.
func scanNarrowGo(entries []uint32, narrow []uint8, t *entropyTables, passed uint64, best int64) scanResult {
	at, tried := -1, 0
	whole, first, second := t.whole, t.first, t.second
	for i, e := range entries {
		if e&NewValue != 0 {
			tried++
			l0, l1 := uint32(passed), uint32(passed>>32)
			if sum := whole[l0+l1] - first[l0] - second[l1]; sum < best {
				best, at = sum, i
			}
		}
		passed += unpacked[narrow[e&RowMask]]
	}
	return scanResult{at, best, passed, tried}
}
