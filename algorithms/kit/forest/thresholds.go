package forest

import (
	"unsafe"

	"github.com/coppice-ldl/coppice/internal/num"
)

// binaryColumn tries the thresholds of a column in ascending order. entries are
// the node's and the first one has the index from. The node has rows rows; those
// without an entry have the value 0.
func (s *search) binaryColumn(entries []uint32, from uint32, rows int) {
	packed := s.binary.packed
	if len(entries) == rows {
		s.binaryScan(entries[1:], packed[entries[0]&RowMask], from+1)
		return
	}
	rest, flags := uint64(0), uint32(0)
	for _, e := range entries[1:] {
		rest += packed[e&RowMask]
		flags |= e
	}
	zeros := s.binary.both - rest - packed[entries[0]&RowMask]
	if entries[0]&Positive != 0 {
		s.zeroLeft = true
		s.binaryTry(zeros, from)
		if flags&NewValue != 0 {
			s.binaryScan(entries[1:], zeros+packed[entries[0]&RowMask], from+1)
		}
		return
	}
	s.binarySignedColumn(entries, from, zeros)
}

// binaryLone is binaryColumn of a single entry, of a value above 0, which has the index from, where
// other rows have none: what is on its side has one class, whose entropy is 0. It reports whether
// the threshold is the best so far.
func (s *search) binaryLone(entry, from uint32) bool {
	s.evaluations++
	sum := s.binaryEntropy(s.binary.both - s.binary.packed[entry&RowMask])
	if sum >= s.best {
		return false
	}
	s.zeroLeft = true
	s.record(sum, from)
	return true
}

// binarySignedColumn is binaryColumn for a column with negative values and implicit
// zeros.
func (s *search) binarySignedColumn(entries []uint32, from uint32, zeros uint64) {
	packed, n := s.binary.packed, CountNegative(entries)
	middle := from + uint32(n)
	passed := s.binaryScan(entries[1:n], packed[entries[0]&RowMask], from+1)
	s.binaryTry(passed, middle)
	if n == len(entries) {
		return
	}
	s.zeroLeft = true
	s.binaryTry(passed+zeros, middle)
	s.binaryScan(entries[n+1:], passed+zeros+packed[entries[n]&RowMask], middle+1)
}

// binaryTry tries the threshold before entry index; passed counts the copies on its left.
func (s *search) binaryTry(passed uint64, index uint32) {
	l := uint32(passed) + uint32(passed>>32)
	if l < s.next {
		return
	}
	s.evaluations++
	sum := s.binaryEntropy(passed) + s.binaryEntropy(s.binary.both-passed)
	if sum < s.best {
		s.record(sum, index)
	}
	if s.adaptive {
		s.advance(index, l, sum)
	}
}

// binaryScan tries the threshold before each new value of entries. The first of them has
// number index, and passed counts the copies before it. It returns the copies before the end.
func (s *search) binaryScan(entries []uint32, passed uint64, index uint32) uint64 {
	t, both := &s.binary.tables, s.binary.both
	if s.adaptive || !t.prepare(len(entries), s.xlogx, uint32(both), uint32(both>>32)) {
		return s.binarySteps(entries, passed, index)
	}
	var found scanResult
	if len(s.binary.narrow) > 0 {
		found = scanNarrow(entries, s.binary.narrow, t, passed, s.best)
	} else {
		found = scanBinary(entries, s.binary.packed, t, passed, s.best)
	}
	s.evaluations += uint64(found.tried)
	if found.at >= 0 {
		s.record(found.least, index+uint32(found.at))
	}
	return found.passed
}

// binarySteps is binaryScan without tables, and with the adaptive step.
func (s *search) binarySteps(entries []uint32, passed uint64, index uint32) uint64 {
	packed, xlogx := s.binary.packed, s.xlogx
	both, best, tried := s.binary.both, s.best, uint64(0)
	n, n0, n1 := s.n, uint32(both), uint32(both>>32)
	for i, e := range entries {
		if e&NewValue != 0 {
			l0, l1 := uint32(passed), uint32(passed>>32)
			if l := l0 + l1; l >= s.next {
				tried++
				sum := xlogx[l] - (xlogx[l0] + xlogx[l1]) + xlogx[n-l] - (xlogx[n0-l0] + xlogx[n1-l1])
				if sum < best {
					best = sum
					s.record(sum, index+uint32(i))
				}
				if s.adaptive {
					s.advance(index+uint32(i), l, sum)
				}
			}
		}
		passed += packed[e&RowMask]
	}
	s.evaluations += tried
	return passed
}

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
	return scanResult{at: at, least: best, passed: passed, tried: tried}
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
	return scanResult{at: at, least: best, passed: passed, tried: tried}
}

//go:noescape
func scanBinaryAsm(entries *uint32, n int, packed *uint64, whole, first, second *int64, passed uint64,
	best int64) (at int, least int64, after uint64, tried int)

//go:noescape
func scanNarrowAsm(entries *uint32, n int, narrow *uint8, unpacked *[256]uint64, whole, first, second *int64,
	passed uint64, best int64) (at int, least int64, after uint64, tried int)

// scanBinary is scanBinaryGo.
func scanBinary(entries []uint32, packed []uint64, t *entropyTables, passed uint64, best int64) scanResult {
	if !num.Accelerated || len(entries) == 0 {
		return scanBinaryGo(entries, packed, t, passed, best)
	}
	var s scanResult
	s.at, s.least, s.passed, s.tried = scanBinaryAsm(unsafe.SliceData(entries), len(entries), unsafe.SliceData(packed),
		unsafe.SliceData(t.whole), unsafe.SliceData(t.first), unsafe.SliceData(t.second), passed, best)
	return s
}

// scanNarrow is scanNarrowGo.
func scanNarrow(entries []uint32, narrow []uint8, t *entropyTables, passed uint64, best int64) scanResult {
	if !num.Accelerated || len(entries) == 0 {
		return scanNarrowGo(entries, narrow, t, passed, best)
	}
	var s scanResult
	s.at, s.least, s.passed, s.tried = scanNarrowAsm(unsafe.SliceData(entries), len(entries),
		unsafe.SliceData(narrow), &unpacked,
		unsafe.SliceData(t.whole), unsafe.SliceData(t.first), unsafe.SliceData(t.second), passed, best)
	return s
}

func (m *multiclassCounts) shape(classes int) {
	m.classes = classes
	Resized(&m.all, classes)
	Resized(&m.left, classes)
	Resized(&m.right, classes)
}

// multiclassColumn is binaryColumn for more than two classes.
func (s *search) multiclassColumn(entries []uint32, from uint32, rows int) {
	m := &s.multiclass
	clear(m.left)
	copy(m.right, m.all)
	m.sum, m.passed = m.allSum, 0
	if len(entries) == rows {
		s.multiclassPass(entries[0])
		s.multiclassScan(entries[1:], from+1)
		return
	}
	n := CountNegative(entries)
	middle := from + uint32(n)
	if n > 0 {
		s.multiclassPass(entries[0])
		s.multiclassScan(entries[1:n], from+1)
		s.multiclassTry(middle)
	}
	if n == len(entries) {
		return
	}
	several := s.passZeros(entries[n:])
	s.zeroLeft = true
	s.multiclassTry(middle)
	if several {
		s.multiclassPass(entries[n])
		s.multiclassScan(entries[n+1:], middle+1)
	}
}

// passZeros moves the rows with implicit zeros to the left: all on the right that are not
// in rest. It reports whether rest has several values.
func (s *search) passZeros(rest []uint32) (several bool) {
	m, flags := &s.multiclass, uint32(0)
	for c := range m.all {
		m.left[c] += m.right[c]
		m.right[c] = 0
	}
	for i, e := range rest {
		row := e & RowMask
		m.right[m.class[row]] += m.weight[row]
		if i > 0 {
			flags |= e
		}
	}
	m.sum, m.passed = 0, 0
	for c, n := range m.right {
		m.left[c] -= n
		m.passed += m.left[c]
		m.sum += s.xlogx[m.left[c]] + s.xlogx[n]
	}
	return flags&NewValue != 0
}

// multiclassPass moves an entry to the left.
func (s *search) multiclassPass(e uint32) {
	m, row := &s.multiclass, e&RowMask
	c, w := m.class[row], m.weight[row]
	l, r := m.left[c], m.right[c]
	m.sum += s.xlogx[l+w] - s.xlogx[l] + s.xlogx[r-w] - s.xlogx[r]
	m.left[c], m.right[c] = l+w, r-w
	m.passed += w
}

// multiclassTry tries the threshold before entry index.
func (s *search) multiclassTry(index uint32) {
	m := &s.multiclass
	if m.passed < s.next {
		return
	}
	s.evaluations++
	sum := s.xlogx[m.passed] + s.xlogx[s.n-m.passed] - m.sum
	if sum < s.best {
		s.record(sum, index)
	}
	if s.adaptive {
		s.advance(index, m.passed, sum)
	}
}

// multiclassScan is binaryScan for more than two classes.
func (s *search) multiclassScan(entries []uint32, index uint32) {
	for i, e := range entries {
		if e&NewValue != 0 {
			s.multiclassTry(index + uint32(i))
		}
		s.multiclassPass(e)
	}
}
