package ldlf

import "github.com/coppice-ldl/coppice/internal/num"

// The kernels of one tree and one row: plain functions over flat slices.
//
// s and t hold σ(f) and σ(-f) of every output unit, phi the output unit of each
// split node in heap order. node vectors hold a value for each node of a tree in
// heap order, the split nodes first: node[len(phi):] are the leaves, left to right.

// gFloor bounds a tree's predictions from below (accuracy.md, Conventions).
const gFloor = 1e-20

// reach sets node[n] to the probability that the row reaches node n: for a leaf,
// p(ℓ|x; Θ) of Eq. 1, the product of the split probabilities on its path. The
// right branch takes t = σ(-f), which keeps its precision where 1 - s would be 0.
func reach(node, s, t []float32, phi []uint32) {
	node[0] = 1
	for n, unit := range phi {
		p := node[n]
		node[2*n+1] = p * s[unit]
		node[2*n+2] = p * t[unit]
	}
}

// predict sets g (labels) to Σ_ℓ p(ℓ|x) q_ℓ of Eq. 2; q is leaves×labels.
func predict(g, p, q []float32) {
	clear(g)
	num.MulAddRows(g, p, q)
}

// ratios sets r[c] to weight·d[c]/g[c], with g clamped at gFloor, and returns the
// K-L divergence Σ_c d[c] ln(d[c]/g[c]) in nats (Eq. 3 less the row's label
// entropy), unweighted; d[c] = 0 counts 0. terms is room for the sum's terms.
func ratios(r, d, g []float32, weight float32, terms []float64) float64 {
	clear(terms)
	num.Ratios(r, terms, d, g, weight, gFloor)
	kl := 0.0
	for _, x := range terms {
		kl += x
	}
	return kl
}

// leafMass sets mass's leaves to p_ℓ Σ_c r_c q_ℓc, which is Σ_c d_c ξ_ℓ(q_ℓc, x)
// of Eq. 8: the share of the row's labels that leaf ℓ answers for. qT is labels×leaves.
func leafMass(leaves, p, r, qT []float32) {
	clear(leaves)
	num.MulAddRows(leaves, r, qT)
	for l, x := range p {
		leaves[l] *= x
	}
}

// splitGradients adds ∂R/∂f of Eq. 6, for one row and without the 1/N, to df
// (one value for each output unit). mass holds the leaves' masses; the split
// nodes' are filled bottom-up: A_n = A_left + A_right, and with A in place of
// Σ_c d_c g_c(T)/g_c the equation reads ∂R/∂f_n = s_n A_right - (1 - s_n) A_left.
func splitGradients(df, mass, s, t []float32, phi []uint32) {
	for n := len(phi) - 1; n >= 0; n-- {
		left, right := mass[2*n+1], mass[2*n+2]
		mass[n] = left + right
		unit := phi[n]
		df[unit] += float32(s[unit]*right) - float32(t[unit]*left)
	}
}

// updateLeaves replaces q (leaves×labels) by q_ℓc T_ℓc / Σ_c q_ℓc T_ℓc, where T is
// Σ_i p(ℓ|x_i) d_ic / g_c(x_i): that is Eq. 12. A leaf that nothing reaches keeps
// its q.
func updateLeaves(q []float32, sums []float64, labels int) {
	for l := 0; l < len(q); l += labels {
		leaf, sum := q[l:l+labels], sums[l:l+labels]
		total := 0.0
		for c, t := range sum {
			total += float64(float64(leaf[c]) * t)
		}
		if !(total > 0) {
			continue
		}
		for c, t := range sum {
			leaf[c] = float32(float64(leaf[c]) * t / total)
		}
	}
}

// transpose sets dst to the transpose of m, whose rows have n values: four rows at a time,
// which become four neighbours.
func transpose[T float32 | float64](dst, m []T, n int) {
	rows := len(m) / n
	i := 0
	for ; i+4 <= rows; i += 4 {
		a, b, c, d := m[i*n:(i+1)*n], m[(i+1)*n:(i+2)*n], m[(i+2)*n:(i+3)*n], m[(i+3)*n:(i+4)*n]
		b, c, d = b[:len(a)], c[:len(a)], d[:len(a)]
		for j, x := range a {
			to := dst[j*rows+i:][:4]
			to[0], to[1], to[2], to[3] = x, b[j], c[j], d[j]
		}
	}
	for ; i < rows; i++ {
		for j, x := range m[i*n : (i+1)*n] {
			dst[j*rows+i] = x
		}
	}
}

// klFloor bounds predictions from below in validation, as the measures do.
const klFloor = 1e-12

// divergence returns the K-L divergence Σ_c d_c ln(d_c / g_c) in nats, with g
// clamped at klFloor; d_c = 0 counts 0.
func divergence(d, g []float32) float64 {
	sum := 0.0
	for c, dc := range d {
		if dc > 0 {
			sum += float64(float64(dc) * num.Log(float64(dc)/max(float64(g[c]), klFloor)))
		}
	}
	return sum
}
