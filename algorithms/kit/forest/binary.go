package forest

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
