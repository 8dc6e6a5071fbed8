package ldlldm

import (
	"github.com/coppice-ldl/coppice/internal/linalg"
)

// ridge is the share of a system's trace that is added to its diagonal, or what is added where the
// trace is 0.
const ridge = 1e-3

// vanishing is the share of the labels' squares below which distances between labels count as 0: float64
// sums err by less.
const vanishing = 1e-12

// distance returns (I - Z)(I - Z)ᵀ for labels with the products dᵀd (labels×labels): pᵀ·distance·p is the
// squared distance of a prediction p from what Z rebuilds of it.
//
// Column t of Z has the weights, which sum to 1, by which the other labels rebuild label t: K·z = 1, with
// K_jk = (d_j - d_t)·(d_k - d_t), and its ridge on the diagonal.
func distance(products linalg.Matrix) linalg.Matrix {
	n := products.Rows
	a := linalg.New(n, n) // I - Z
	k, z := linalg.New(max(0, n-1), max(0, n-1)), linalg.New(max(0, n-1), 1)
	for t := range n {
		rebuild(z, k, products, t)
		for i := range n - 1 {
			a.Set(other(i, t), t, -z.At(i, 0))
		}
		a.Set(t, t, 1)
	}
	square := linalg.New(n, n)
	linalg.AddProduct(square, a, a.T())
	return square
}

// other returns the i-th label of those that are not t.
func other(i, t int) int {
	if i < t {
		return i
	}
	return i + 1
}

// rebuild sets z to the weights of the labels other than t. It uses k's memory.
func rebuild(z, k, products linalg.Matrix, t int) {
	trace, squares := 0.0, 0.0
	own := products.At(t, t)
	for i := range k.Rows {
		z.Set(i, 0, 1)
		a := other(i, t)
		for j := range k.Columns {
			b := other(j, t)
			k.Set(i, j, (products.At(a, b)-products.At(a, t))-(products.At(t, b)-own))
		}
		trace += k.At(i, i)
		squares += products.At(a, a) + own
	}
	add := float64(ridge * trace)
	if !(trace > vanishing*squares) {
		clear(k.V)
		add = ridge
	}
	for i := range k.Rows {
		k.Set(i, i, k.At(i, i)+add)
	}
	if err := linalg.Cholesky(k); err == nil {
		linalg.SolveLower(z, k)
		linalg.SolveUpper(z, k.T())
	}
	sum := 0.0
	for i := range z.Rows {
		sum += z.At(i, 0)
	}
	for i := range z.Rows {
		z.Set(i, 0, z.At(i, 0)/sum)
	}
}

// matrices returns M_g of each cluster, of the sums of products of labels: those of all rows first, then those
// of each cluster, labels×labels each.
func matrices(sums []float64, clusters, labels int, all, own float64) []float64 {
	n := labels * labels
	first := distance(linalg.Of(sums[:n], labels, labels)).V
	m := make([]float64, clusters*n)
	for g := range clusters {
		second := distance(linalg.Of(sums[(g+1)*n:][:n], labels, labels)).V
		for i := range first {
			m[g*n+i] = float64(all*first[i]) + float64(own*second[i])
		}
	}
	return m
}
