package num

import (
	"unsafe"
)

// The ratios of K-L divergences, of many rows side by side: slices of one value for each row.
// Lanes run across rows, so a row's bits are what it has alone.

// Ratios sets r to weight·d/g, with g not below floor, which is above 0, and adds
// d·ln(d/g) to sum in float64 where d > 0: the terms of a K-L divergence in nats.
func Ratios(r []float32, sum []float64, d, g []float32, weight, floor float32) {
	n := len(r)
	checkSame(len(sum), n)
	checkSame(len(d), n)
	checkSame(len(g), n)
	for at := 0; at < n; {
		if Accelerated {
			at += ratiosAVX2(unsafe.SliceData(r[at:]), unsafe.SliceData(sum[at:]), unsafe.SliceData(d[at:]),
				unsafe.SliceData(g[at:]),
				(n-at)&^(ratioLanes-1), weight, floor)
		}
		end := min(n, at+ratioLanes) // too few for a vector, or one that is not finite
		ratiosGo(r[at:end], sum[at:end], d[at:end], g[at:end], weight, floor)
		at = end
	}
}

// ratioLanes is how many ratios a vector has.
const ratioLanes = 4

func ratiosGo(r []float32, sum []float64, d, g []float32, weight, floor float32) {
	sum, d, g = sum[:len(r)], d[:len(r)], g[:len(r)]
	for i, x := range d {
		y := max(g[i], floor)
		r[i] = weight * x / y
		if x > 0 {
			sum[i] += float64(float64(x) * Log(float64(x)/float64(y)))
		}
	}
}

// RatioRows sets r to d/g, with g not below floor, which is above 0, and adds to sum, of
// each column, the sum of d·ln(d/g) where d > 0, the first row first: K-L divergences in
// nats. r, d and g have rows as long as sum.
func RatioRows(r []float32, sum []float64, d, g []float32, floor float32) {
	n := len(sum)
	checkSame(len(d), len(r))
	checkSame(len(g), len(r))
	if n == 0 || len(r)%n != 0 {
		panic("num: a matrix of incomplete rows")
	}
	width := mostColumns // columns that are to be done otherwise before the next vector
	switch {
	case wide:
		width = 2 * ratioLanes
	case Accelerated:
		width = ratioLanes
	}
	for at := 0; at < n; {
		if columns := (n - at) &^ (width - 1); Accelerated && columns > 0 && len(r) > 0 {
			rr, s, dd, gg := unsafe.SliceData(r[at:]), unsafe.SliceData(sum[at:]), unsafe.SliceData(d[at:]),
				unsafe.SliceData(g[at:])
			if wide {
				at += ratioRowsAVX512(rr, s, dd, gg, len(r)/n, n, columns, floor)
			} else {
				var work ratioWork
				at += ratioRowsAVX2(rr, s, dd, gg, len(r)/n, n, columns, floor, &work)
			}
		}
		// Vectors of whole columns leave the last ones, and stop at a ratio that is not finite.
		if end := min(n, at+width); at < end {
			ratioColumns(r, sum, d, g, floor, at, end)
			at = end
		}
	}
}

// mostColumns is how many columns are summed beside each other.
const mostColumns = 64

// ratioColumns is RatioRows of the columns [from, to), mostColumns at the most.
func ratioColumns(r []float32, sum []float64, d, g []float32, floor float32, from, to int) {
	var sums [mostColumns]float64
	kl := sums[:to-from]
	for at := 0; at < len(r); at += len(sum) {
		Ratios(r[at+from:at+to], kl, d[at+from:at+to], g[at+from:at+to], 1, floor)
	}
	Add64(sum[from:to], kl)
}

// ratioTerms is how many vectors of a column go through a part of the logarithm at a time.
const ratioTerms = 32

// ratioWork is what these parts leave to each other, four vectors of each, and room to align
// them.
type ratioWork [ratioTerms*4*ratioLanes + ratioLanes]float64

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
	if !run(unsafe.SliceData(node), unsafe.SliceData(s), unsafe.SliceData(t), unsafe.SliceData(phi), len(phi), n,
		len(s)/n) {
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
	if !run(unsafe.SliceData(df), unsafe.SliceData(mass), unsafe.SliceData(s), unsafe.SliceData(t), unsafe.SliceData(phi),
		len(phi), n, len(s)/n) {
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
