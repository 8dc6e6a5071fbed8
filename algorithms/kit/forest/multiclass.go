package forest

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
