package forest

import (
	"math"
	"unsafe"

	"github.com/coppice-ldl/coppice/internal/num"
)

// walkNode is a node of a forest in the form that prediction reads. A row whose value is
// below limit goes to the left child, offset nodes further on; other rows go to the right
// child, the node after that.
type walkNode struct {
	limit uint32 // as orderedBits; of a leaf leafLimit plus its number, which is above every value
	step  uint32 // feature × 4 << bits | offset; of a leaf 0
}

// leafLimit is above the ordered bits of every value, clamp's included.
const leafLimit = 0xff800002

// maxLeaves bounds the leaves of a tree whose nodes have this form.
const maxLeaves = 1<<32 - leafLimit

// lanes is how many walks are interleaved, which hides the latency of memory.
const lanes = 8

// walkNodes are the nodes of all trees.
type walkNodes struct {
	list []walkNode
	bits uint32 // of step's offset
}

// parts returns the offset and the feature of a node.
func (f *walkNodes) parts(n walkNode) (offset uint32, feature int) {
	return n.step & (1<<f.bits - 1), int(n.step >> f.bits / 4)
}

// walkRowsGo walks rows from root down to their leaves, eight at a time, and writes the
// leaves' numbers. x has groups of eight rows, each width·8 numbers: feature i of a group's
// row j is number i·8+j. The assembly must give the same results.
func walkRowsGo(leaves []uint32, f *walkNodes, x []uint32, width int, root uint32) {
	for i := 0; i < len(leaves); i += lanes {
		group := x[i*width : (i+lanes)*width]
		for j := 0; j < lanes; j += 4 {
			at := [4]uint32{root, root, root, root}
			f.walk(&at, [4][]uint32{group[j:], group[j+1:], group[j+2:], group[j+3:]}, lanes)
			for k, n := range at {
				leaves[i+j+k] = f.list[n].limit - leafLimit
			}
		}
	}
}

// walkTreesGo walks one row down several trees. It replaces each root by the number of the
// leaf that the row reaches.
func walkTreesGo(roots []uint32, f *walkNodes, x []uint32) {
	for ; len(roots) > 0; roots = roots[4:] {
		at := [4]uint32(roots)
		f.walk(&at, [4][]uint32{x, x, x, x}, 1)
		for k, n := range at {
			roots[k] = f.list[n].limit - leafLimit
		}
	}
}

// walk moves four rows from nodes at to their leaves: feature i of row k is x[k][i·stride].
func (f *walkNodes) walk(at *[4]uint32, x [4][]uint32, stride int) {
	for {
		moved := uint32(0)
		for k := range at {
			n := f.list[at[k]]
			offset, feature := f.parts(n)
			moved |= offset
			at[k] += offset + walkRight(x[k][feature*stride], n.limit)
		}
		if moved == 0 {
			return
		}
	}
}

// walkRight is 0 if x is below limit, else 1.
func walkRight(x, limit uint32) uint32 { return uint32(1 + (int64(x)-int64(limit))>>63) }

// addLeavesGo adds to each row of sums the distribution of the leaf that the row reached.
// sums is rows×labels, leaves (the distributions) leaves×labels; reached has the number of
// each row's leaf.
func addLeavesGo(sums []float64, leaves []float32, reached []uint32, labels int) {
	for i, leaf := range reached {
		row := sums[i*labels : (i+1)*labels]
		for c, v := range leaves[int(leaf)*labels : (int(leaf)+1)*labels] {
			row[c] += float64(v)
		}
	}
}

// ceil32 returns the least float32 that is not below t: x < t and x < ceil32(t)
// are the same for every float32 x.
func ceil32(t float64) float32 {
	f := float32(t)
	if float64(f) < t {
		f = nextUp(f)
	}
	return f
}

// nextUp returns the float32 above a finite x.
func nextUp(x float32) float32 {
	b := math.Float32bits(x)
	switch {
	case x == 0:
		return math.Float32frombits(1)
	case b>>31 == 1:
		return math.Float32frombits(b - 1)
	}
	return math.Float32frombits(b + 1)
}

// clamp returns a value's ordered bits, lowered for NaN to below the limit of every leaf.
func clamp(x float32) uint32 { return min(orderedBits(x), leafLimit-1) }

// walkRowsBMI2 is walkRowsGo for a number of groups of eight rows (lanes). A group of x has
// groupBytes bytes, a step's offset has so many bits, and a row takes at most 2·pairs steps.
//
//go:noescape
func walkRowsBMI2(leaves *uint32, groups int, nodes *walkNode, x *uint32, groupBytes int, root, bits uint32, pairs int)

// walkTreesBMI2 is walkTreesGo for a number of groups of eight trees.
//
//go:noescape
func walkTreesBMI2(roots *uint32, groups int, nodes *walkNode, x *uint32, bits uint32)

// addLeavesAVX2 is addLeavesGo for n rows.
//
//go:noescape
func addLeavesAVX2(sums *float64, leaves *float32, reached *uint32, n, labels int)

// walkRows does what walkRowsGo does. depth is the depth of the tree, which bounds the steps of a row.
func walkRows(leaves []uint32, f *walkNodes, x []uint32, width int, root uint32, depth int) {
	if !num.Accelerated || len(leaves) == 0 {
		walkRowsGo(leaves, f, x, width, root)
		return
	}
	walkRowsBMI2(unsafe.SliceData(leaves), len(leaves)/lanes, unsafe.SliceData(f.list), unsafe.SliceData(x),
		width*lanes*4, root, f.bits, max(1, (depth+1)/2))
}

// walkTrees is walkTreesGo.
func walkTrees(roots []uint32, f *walkNodes, x []uint32) {
	if !num.Accelerated || len(roots) == 0 {
		walkTreesGo(roots, f, x)
		return
	}
	walkTreesBMI2(unsafe.SliceData(roots), len(roots)/lanes, unsafe.SliceData(f.list), unsafe.SliceData(x), f.bits)
}

// addLeaves is addLeavesGo.
func addLeaves(sums []float64, leaves []float32, reached []uint32, labels int) {
	if !num.Accelerated || len(reached) == 0 {
		addLeavesGo(sums, leaves, reached, labels)
		return
	}
	addLeavesAVX2(unsafe.SliceData(sums), unsafe.SliceData(leaves), unsafe.SliceData(reached), len(reached), labels)
}
