package forest

// tables hold what a threshold's gain is made of, for one node of two classes. With
// k copies on one side of n in all, xlogx(k) + xlogx(n-k): of all copies (whole), and
// of those of class 0 and 1 alone (first, second). The entropy times samples of both
// sides, summed, is whole[l] - first[l0] - second[l1].
type entropyTables struct {
	made                 bool
	passed               int // entries that have been scanned without
	whole, first, second []int64
}

// start tells that another node begins.
func (t *entropyTables) reset() { t.made, t.passed = false, 0 }

// pay makes the tables of a node with n0 and n1 copies of both classes, once half as
// many entries have come by as there are copies: few columns do not pay for them. It
// reports whether they are there.
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
	dst, n := resized(v, len(x)), len(x)-1
	for k, y := range x {
		dst[k] = y + x[n-k]
	}
}

// scanned is what a scan found.
type scanResult struct {
	at     int    // of the first entry of those with the least sum, -1 where none is below best
	least  int64  // that sum, or best
	passed uint64 // copies before the end, by class
	tried  int    // thresholds
}

// scanTwoGo tries the threshold before each entry of a new value: what has passed
// is on its left. It is what the assembly must equal.
func scanBinaryGo(entries []uint32, packed []uint64, t *entropyTables, passed uint64, best int64) scanResult {
	at, tried := -1, 0
	whole, first, second := t.whole, t.first, t.second
	for i, e := range entries {
		if e&newValue != 0 {
			tried++
			l0, l1 := uint32(passed), uint32(passed>>32)
			if sum := whole[l0+l1] - first[l0] - second[l1]; sum < best {
				best, at = sum, i
			}
		}
		passed += packed[e&rowMask]
	}
	return scanResult{at, best, passed, tried}
}
