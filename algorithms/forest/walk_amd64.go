//go:build !purego

package forest

import "unsafe"

//go:noescape
func walkRowsBMI2(leaves *uint32, groups int, nodes *walkNode, x *uint32, groupBytes int, root, bits uint32, pairs int)

//go:noescape
func walkTreesBMI2(roots *uint32, groups int, nodes *walkNode, x *uint32, bits uint32)

//go:noescape
func addLeavesAVX2(sums *float64, leaves *float32, at *uint32, n, labels int)

// walkRows is walkRowsGo for a tree of some depth.
func walkRows(leaves []uint32, f *walkNodes, x []uint32, width int, root uint32, depth int) {
	if !accelerated || len(leaves) == 0 {
		walkRowsGo(leaves, f, x, width, root)
		return
	}
	walkRowsBMI2(unsafe.SliceData(leaves), len(leaves)/lanes, unsafe.SliceData(f.list), unsafe.SliceData(x),
		width*lanes*4, root, f.bits, max(1, (depth+1)/2))
}

func walkTrees(roots []uint32, f *walkNodes, x []uint32) {
	if !accelerated || len(roots) == 0 {
		walkTreesGo(roots, f, x)
		return
	}
	walkTreesBMI2(unsafe.SliceData(roots), len(roots)/lanes, unsafe.SliceData(f.list), unsafe.SliceData(x), f.bits)
}

func addLeaves(sums []float64, leaves []float32, at []uint32, labels int) {
	if !accelerated || len(at) == 0 {
		addLeavesGo(sums, leaves, at, labels)
		return
	}
	addLeavesAVX2(unsafe.SliceData(sums), unsafe.SliceData(leaves), unsafe.SliceData(at), len(at), labels)
}
