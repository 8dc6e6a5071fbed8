package num

// The walks over all nodes of a tree whose matrices have a row for each node or output
// unit and a column for each of n samples. Nodes are in heap order; phi has the output
// unit of each split node. Lanes run across samples.

// Descend sets node's first row to 1 and each other one to its parent's times s of the
// parent's unit, on the left, or t, on the right: the probabilities of reaching nodes.
// node is (2·len(phi)+1)×n, s and t are units×n.
func Descend(node, s, t []float32, phi []uint32, n int) {
	checkWalk(len(node), len(s), len(t), len(phi), n)
	for root := node[:n]; len(root) > 0; {
		root = root[copy(root, ones[:]):]
	}
	if !descend(node, s, t, phi, n) {
		descendGo(node, s, t, phi, n)
	}
}

// Ascend is Descend's way back, from the last split node to the first: it sets mass of
// each to left + right, those of its children, and adds s·right - t·left to df of its
// unit, each product rounded. df, s and t are units×n, mass is (2·len(phi)+1)×n.
func Ascend(df, mass, s, t []float32, phi []uint32, n int) {
	checkSame(len(df), len(s))
	checkWalk(len(mass), len(s), len(t), len(phi), n)
	if !ascend(df, mass, s, t, phi, n) {
		ascendGo(df, mass, s, t, phi, n)
	}
}

func checkWalk(node, s, t, splits, n int) {
	checkSame(s, t)
	if n <= 0 || s%n != 0 || node != (2*splits+1)*n {
		panic("num: a walk over matrices of other shapes")
	}
}

// ones is what the root's row is copied from.
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

func branchGo(left, right, p, s, t []float32) {
	left, right, s, t = left[:len(p)], right[:len(p)], s[:len(p)], t[:len(p)]
	for i, x := range p {
		left[i], right[i] = x*s[i], x*t[i]
	}
}

func joinGo(df, mass, left, right, s, t []float32) {
	mass, left, right, s, t = mass[:len(df)], left[:len(df)], right[:len(df)], s[:len(df)], t[:len(df)]
	for i := range df {
		mass[i] = left[i] + right[i]
		df[i] += float32(s[i]*right[i]) - float32(t[i]*left[i])
	}
}
