//go:build !purego

package forest

import "unsafe"

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

// walkRows is walkRowsGo. depth is that of the tree, which bounds the steps of a row.
func walkRows(leaves []uint32, f *walkNodes, x []uint32, width int, root uint32, depth int) {
	if !accelerated || len(leaves) == 0 {
		walkRowsGo(leaves, f, x, width, root)
		return
	}
	walkRowsBMI2(unsafe.SliceData(leaves), len(leaves)/lanes, unsafe.SliceData(f.list), unsafe.SliceData(x),
		width*lanes*4, root, f.bits, max(1, (depth+1)/2))
}

// walkTrees is walkTreesGo.
func walkTrees(roots []uint32, f *walkNodes, x []uint32) {
	if !accelerated || len(roots) == 0 {
		walkTreesGo(roots, f, x)
		return
	}
	walkTreesBMI2(unsafe.SliceData(roots), len(roots)/lanes, unsafe.SliceData(f.list), unsafe.SliceData(x), f.bits)
}

// addLeaves is addLeavesGo.
func addLeaves(sums []float64, leaves []float32, reached []uint32, labels int) {
	if !accelerated || len(reached) == 0 {
		addLeavesGo(sums, leaves, reached, labels)
		return
	}
	addLeavesAVX2(unsafe.SliceData(sums), unsafe.SliceData(leaves), unsafe.SliceData(reached), len(reached), labels)
}
