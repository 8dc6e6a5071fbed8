//go:build !purego

package forest

import "unsafe"

// noteRowAsm is noteRowGo for n values. word is that of the row in the answers to the first
// question.
//
//go:noescape
func noteRowAsm(word *uint64, bit uint64, columns *uint32, values *float32, n int, first, limits *uint32)

// divideSetsAVX2 is divideSetsGo for n borders and all blockHalves, for cleared planes.
//
//go:noescape
func divideSetsAVX2(s *setSpace, answers *[blockHalves]rowSet, borders *border, n int)

// divideHalfAVX2 is divideSetsAVX2 for the first half.
//
//go:noescape
func divideHalfAVX2(s *setSpace, answers *[blockHalves]rowSet, borders *border, n int)

// numberLeavesAVX2 is numberLeavesGo for codes of count bits.
//
//go:noescape
func numberLeavesAVX2(leaves *uint32, planes *rowSet, count int, numbers *uint16)

// noteRow is noteRowGo.
func (f *setForest) noteRow(answers [][blockHalves]rowSet, row int, columns []uint32, values []float32) {
	if !accelerated || len(columns) == 0 || len(answers) == 0 {
		f.noteRowGo(answers, row, columns, values)
		return
	}
	noteRowAsm(&answers[0][row/setRows][row%setRows/64], 1<<(row%64), unsafe.SliceData(columns), unsafe.SliceData(values), len(columns),
		unsafe.SliceData(f.first), unsafe.SliceData(f.limits))
}

// divideSets is divideSetsGo.
func divideSets(s *setSpace, used int, answers [][blockHalves]rowSet, borders []border) {
	if !accelerated || len(borders) == 0 {
		divideSetsGo(s, used, answers, borders)
		return
	}
	s.planes = [len(s.planes)][maxPlanes]rowSet{}
	if used == 1 {
		divideHalfAVX2(s, unsafe.SliceData(answers), unsafe.SliceData(borders), len(borders))
		return
	}
	divideSetsAVX2(s, unsafe.SliceData(answers), unsafe.SliceData(borders), len(borders))
}

// numberLeaves is numberLeavesGo.
func numberLeaves(leaves *[setRows]uint32, planes []rowSet, numbers []uint16) {
	if !accelerated {
		numberLeavesGo(leaves, planes, numbers)
		return
	}
	numberLeavesAVX2(&leaves[0], unsafe.SliceData(planes), len(planes), unsafe.SliceData(numbers))
}
