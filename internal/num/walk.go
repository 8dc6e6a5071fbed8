package num

import "unsafe"

// Descend and Ascend pass over all nodes of a tree for n samples at a time. Their matrices
// have a row for each node or for each output unit, and a column for each sample. Nodes are
// in heap order: the children of node i are 2i+1 (left) and 2i+2 (right), and the split
// nodes come first. phi has the output unit of each split node. s and t have, for each
// output unit, the probabilities of going left and right. Lanes run across samples.

// Descend sets node to the probabilities that the samples reach each node. The first row,
// the root's, is 1. The row of a left child is its parent's row times the row of s of the
// parent's output unit; for a right child it is t in place of s.
// node is (2·len(phi)+1)×n, s and t are units×n.
func Descend(node, s, t []float32, phi []uint32, n int) {
	checkWalk(len(node), len(s), len(t), len(phi), n)
	for root := node[:n]; len(root) > 0; {
		root = root[copy(root, ones[:]):]
	}
	if !Accelerated || n%8 != 0 {
		descendGo(node, s, t, phi, n)
		return
	}
	run := descendAVX2
	switch {
	case wide && n%16 == 0:
		run = descendAVX512
	case n%32 == 0:
		run = descendFourAVX2
	}
	if !run(unsafe.SliceData(node), unsafe.SliceData(s), unsafe.SliceData(t), unsafe.SliceData(phi), len(phi), n, len(s)/n) {
		panicIndex()
	}
}

// Ascend goes through the split nodes from the last to the first. With left and right the
// rows of mass of the node's children, it sets the node's row of mass to left + right, and
// adds s·right - t·left to the row of df of the node's output unit, where s and t are that
// unit's rows and each product is rounded. The caller sets the rows of mass of the leaves.
// df, s and t are units×n, mass is (2·len(phi)+1)×n.
func Ascend(df, mass, s, t []float32, phi []uint32, n int) {
	checkSame(len(df), len(s))
	checkWalk(len(mass), len(s), len(t), len(phi), n)
	if !Accelerated || n%8 != 0 {
		ascendGo(df, mass, s, t, phi, n)
		return
	}
	run := ascendAVX2
	switch {
	case wide && n%16 == 0:
		run = ascendAVX512
	case n%32 == 0:
		run = ascendFourAVX2
	}
	if !run(unsafe.SliceData(df), unsafe.SliceData(mass), unsafe.SliceData(s), unsafe.SliceData(t), unsafe.SliceData(phi), len(phi), n, len(s)/n) {
		panicIndex()
	}
}

// checkWalk panics if the lengths of the matrices do not fit a tree with so many split nodes.
func checkWalk(node, s, t, splits, n int) {
	checkSame(s, t)
	if n <= 0 || s%n != 0 || node != (2*splits+1)*n {
		panic("num: a walk over matrices of other shapes")
	}
}

// ones is copied to the root's row, piece after piece.
var ones = func() (v [64]float32) {
	for i := range v {
		v[i] = 1
	}
	return v
}()

func descendGo(node, s, t []float32, phi []uint32, n int) {
	for i, unit := range phi {
		u := int(unit) * n
		branchGo(node[(2*i+1)*n:(2*i+2)*n], node[(2*i+2)*n:(2*i+3)*n], node[i*n:(i+1)*n], s[u:u+n], t[u:u+n])
	}
}

func ascendGo(df, mass, s, t []float32, phi []uint32, n int) {
	for i := len(phi) - 1; i >= 0; i-- {
		u := int(phi[i]) * n
		joinGo(df[u:u+n], mass[i*n:(i+1)*n], mass[(2*i+1)*n:(2*i+2)*n], mass[(2*i+2)*n:(2*i+3)*n], s[u:u+n], t[u:u+n])
	}
}

// branchGo sets the rows of a node's children, given the node's row p.
func branchGo(left, right, p, s, t []float32) {
	left, right, s, t = left[:len(p)], right[:len(p)], s[:len(p)], t[:len(p)]
	for i, x := range p {
		left[i], right[i] = x*s[i], x*t[i]
	}
}

// joinGo is Ascend for one split node.
func joinGo(df, mass, left, right, s, t []float32) {
	mass, left, right, s, t = mass[:len(df)], left[:len(df)], right[:len(df)], s[:len(df)], t[:len(df)]
	for i := range df {
		mass[i] = left[i] + right[i]
		df[i] += float32(s[i]*right[i]) - float32(t[i]*left[i])
	}
}
