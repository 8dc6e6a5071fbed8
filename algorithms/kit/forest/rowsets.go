package forest

import (
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/coppice-ldl/coppice/internal/num"
)

const (
	setWords    = 4             // words of a rowSet
	setRows     = 64 * setWords // rows that it can have
	blockHalves = 2             // rowSets of a block
)

// rowSet is a set of rows of half a block: bit i mod 64 of word i/64 stands for row i.
type rowSet [setWords]uint64

// setForest is a forest in the form that takes the rows of a block down a tree together. It is
// derived from the trees and never stored.
//
// A question is a feature and a limit of some splits. A row's value is near where it is on the
// same side of the limit as 0, else far. The leaves of a tree are in an order in which those on
// the near side of a split come before those on the far side. So each split is the border
// between two leaves that follow one another.
type setForest struct {
	limits  []uint32 // by question: the bits of the least value that is far, without the sign
	first   []uint32 // the first question, by 2·feature, + 1 for values below 0; ascending limits follow
	several []span   // the questions of one feature and direction, where they are more than one
	trees   []setTree
}

// span is a range of questions.
type span struct{ from, to uint32 }

// setTree is a tree of a setForest.
type setTree struct {
	borders []border
	planes  int      // bits of a leaf's code
	leaf    []uint16 // the number of the leaf in the tree, by its code
}

// border is a split. Of the rows from the split's first leaf on, and those after its last, it
// makes those after the border.
//
// The code of leaf i, counted from 0 in the order of the leaves, is i in Gray's order: one bit
// changes from leaf to leaf. Slots and the plane are places in lists of rowSets, times 4: the
// assembly then scales them by 8.
type border struct {
	question uint32
	since    uint8 // slot of the rows in the split's leaves or later ones
	after    uint8 // slot of the rows in leaves after the split's
	own      uint8 // slot of the rows in leaves after the border
	plane    uint8 // the bit of codes that changes at the border
}

// The first slots. The splits of depth d have slot firstSlot + d: while a subtree is worked
// on, the slots of the splits above it stay.
const (
	noRows    = 0
	allRows   = 1
	firstSlot = 2
	slots     = firstSlot + maxDepth
)

const (
	// maxPlanes bounds the bits of a leaf's code.
	maxPlanes = 16
	// placeScale is what places of rowSets in a border are multiplied by.
	placeScale = 4
)

// questionKey orders questions: by feature, those about values above 0 first, and by the bits of
// the least value that is far, without the sign.
func questionKey(feature, limit uint32) uint64 {
	if limit > zeroBits {
		return uint64(feature)<<33 | uint64(limit-zeroBits)
	}
	return uint64(feature)<<33 | 1<<32 | uint64(max(1, zeroBits-limit))
}

// questionNumbers numbers the questions of trees.
type questionNumbers struct {
	number map[uint64]uint32 // by key
	keys   []uint64          // by number
}

// appendOf appends the numbers of the questions of a tree's splits, in the order of nodes.
func (k *questionNumbers) appendOf(numbers []uint32, t *Tree) []uint32 {
	for i, feature := range t.feature {
		if feature == leafMark {
			continue
		}
		key := questionKey(feature, orderedBits(ceil32(t.threshold[i])))
		n, known := k.number[key]
		if !known {
			n = uint32(len(k.keys))
			k.number[key], k.keys = n, append(k.keys, key)
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// sort sorts the keys and returns the new number of each old one.
func (k *questionNumbers) sort() (order []uint32) {
	order = make([]uint32, len(k.keys))
	slices.Sort(k.keys)
	for i, key := range k.keys {
		order[k.number[key]] = uint32(i)
	}
	return order
}

// list lists the questions.
func (f *setForest) list(keys []uint64, features int) {
	f.first = make([]uint32, 2*features+1)
	for _, key := range keys {
		f.limits = append(f.limits, uint32(key))
		f.first[key>>32+1]++
	}
	for i := range 2 * features {
		from := f.first[i]
		f.first[i+1] += from
		if f.first[i+1]-from > 1 {
			f.several = append(f.several, span{from, f.first[i+1]})
		}
	}
}

// setTreeMaker makes a setTree.
type setTreeMaker struct {
	*Tree
	made      setTree
	questions []uint32 // by split node
	splits    []uint32 // by node: its number among the split nodes
	leaves    []uint32 // by node: the leaves below it
	passed    uint32   // leaves before the present node
}

// newSetTree makes the form of a tree whose splits have these questions.
func newSetTree(t *Tree, questions []uint32) setTree {
	n := t.Leaves()
	k := &setTreeMaker{Tree: t, questions: questions, splits: make([]uint32, t.Nodes()), leaves: make([]uint32, t.Nodes())}
	k.made.planes = bits.Len(uint(n - 1))
	k.made.leaf = make([]uint16, 1<<k.made.planes)
	k.made.borders = make([]border, 0, n-1)
	split := uint32(0)
	for i, feature := range t.feature {
		if k.splits[i] = split; feature != leafMark {
			split++
		}
	}
	for i := t.Nodes() - 1; i >= 0; i-- {
		if k.leaves[i] = 1; t.feature[i] != leafMark {
			k.leaves[i] = k.leaves[t.left[i]] + k.leaves[t.left[i]+1]
		}
	}
	k.add(0, 0, allRows, noRows)
	return k.made
}

// add adds a node of a depth, its subtree included, near side before far side.
func (k *setTreeMaker) add(node uint32, depth int, since, after uint8) {
	if k.feature[node] == leafMark {
		k.made.leaf[k.passed^k.passed>>1] = uint16(k.left[node])
		k.passed++
		return
	}
	near, far := k.left[node], k.left[node]+1
	if orderedBits(ceil32(k.threshold[node])) <= zeroBits {
		near, far = far, near
	}
	own := uint8(firstSlot + depth)
	k.made.borders = append(k.made.borders, border{
		question: k.questions[k.splits[node]], since: since * placeScale, after: after * placeScale, own: own * placeScale,
		plane: uint8(bits.TrailingZeros32(k.passed+k.leaves[near])) * placeScale,
	})
	k.add(near, depth+1, since, own)
	k.add(far, depth+1, own, after)
}

// noteRowGo notes the values of a row: of each feature, on the value's side of 0, the last
// question whose limit the value has passed. bit of word stands for the row, in the answers from
// the row's half on.
func (f *setForest) noteRowGo(answers [][blockHalves]rowSet, row int, columns []uint32, values []float32) {
	half, word, bit := row/setRows, row%setRows/64, uint64(1)<<(row%64)
	for i, c := range columns {
		b := math.Float32bits(values[i])
		at := 2*uint64(c) + uint64(b>>31)
		from, to := f.first[at], f.first[at+1]
		if from == to {
			continue
		}
		if last := lastUpTo(f.limits[from:to], b&^(1<<31)); f.limits[from+last] <= b&^(1<<31) {
			answers[from+last][half][word] |= bit
		}
	}
}

// lastUpTo returns the place of the last number of an ascending list that is at most x, or 0.
func lastUpTo(list []uint32, x uint32) (at uint32) {
	for n := uint32(len(list)); n > 1; {
		half := n / 2
		if list[at+half] <= x {
			at += half
		}
		n -= half
	}
	return at
}

// setSpace is the working memory of divideSets.
type setSpace struct {
	planes [blockHalves][maxPlanes]rowSet
	slot   [blockHalves][slots]rowSet
}

// divideSetsGo takes the rows of a block, with so many blockHalves in use, down a tree. answers has, for each
// question, the rows whose value is far. Planes become the bits of the codes of the rows' leaves:
// each border is added to its plane (exclusive or).
func divideSetsGo(s *setSpace, used int, answers [][blockHalves]rowSet, borders []border) {
	for h := range used {
		slot, planes := &s.slot[h], &s.planes[h]
		clear(planes[:])
		for i := range borders {
			b := &borders[i]
			far, since, after := &answers[b.question][h], &slot[b.since/placeScale], &slot[b.after/placeScale]
			own, plane := &slot[b.own/placeScale], &planes[b.plane/placeScale]
			for w := range far {
				rows := after[w] | since[w]&far[w]
				own[w] = rows
				plane[w] ^= rows
			}
		}
	}
}

// spread has a byte for each bit of its index, the lowest bit first.
var spread = spreadBits()

func spreadBits() (table [256]uint64) {
	for set := range table {
		for bit := range 8 {
			table[set] |= uint64(set>>bit&1) << (8 * bit)
		}
	}
	return table
}

// numberLeavesGo writes the number of the leaf of each row of half a block, whose code is in planes.
func numberLeavesGo(leaves *[setRows]uint32, planes []rowSet, numbers []uint16) {
	low, high := planes[:min(8, len(planes))], planes[min(8, len(planes)):]
	for i := 0; i < setRows; i += 8 {
		lows, highs := eightCodes(low, i), eightCodes(high, i)
		for j := range 8 {
			leaves[i+j] = uint32(numbers[lows&0xff|highs&0xff<<8])
			lows, highs = lows>>8, highs>>8
		}
	}
}

// eightCodes returns the codes of eight rows from row i on, of at most eight bits each.
func eightCodes(planes []rowSet, i int) (codes uint64) {
	for bit := range planes {
		codes |= spread[uint8(planes[bit][i/64]>>(i%64))] << bit
	}
	return codes
}

// noteRowAsm does what noteRowGo does, for n values. word is the row's word in the answers to the
// first question.
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
	if !num.Accelerated || len(columns) == 0 || len(answers) == 0 {
		f.noteRowGo(answers, row, columns, values)
		return
	}
	noteRowAsm(&answers[0][row/setRows][row%setRows/64], 1<<(row%64), unsafe.SliceData(columns), unsafe.SliceData(values),
		len(columns),
		unsafe.SliceData(f.first), unsafe.SliceData(f.limits))
}

// divideSets is divideSetsGo.
func divideSets(s *setSpace, used int, answers [][blockHalves]rowSet, borders []border) {
	if !num.Accelerated || len(borders) == 0 {
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
	if !num.Accelerated {
		numberLeavesGo(leaves, planes, numbers)
		return
	}
	numberLeavesAVX2(&leaves[0], unsafe.SliceData(planes), len(planes), unsafe.SliceData(numbers))
}
