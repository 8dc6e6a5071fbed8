package ldlf

import "github.com/coppice-ldl/coppice/internal/num"

// drawPhi draws the index function φ of every tree (trees×splits): tree k's is the
// start of permutation (seed, 0, k) of the output units, so no unit occurs twice
// in a tree. Where trees share no units, tree k has the k-th leaves-many of them.
func drawPhi(z sizes, seed uint64, own bool) []uint32 {
	key := num.NewKey(seed, "ldlf/phi")
	phi := make([]uint32, 0, z.trees*z.splits)
	for k := range z.trees {
		from, units := 0, z.outputs
		if own {
			from, units = k*z.leaves, z.leaves
		}
		p := num.NewPermutation(key, 0, uint32(k), uint64(units))
		for n := range z.splits {
			phi = append(phi, uint32(from)+uint32(p.At(uint64(n))))
		}
	}
	return phi
}

// uniformQ returns the leaves' first distributions, q_ℓc = 1/C.
func uniformQ(z sizes) []float32 {
	q := make([]float32, z.q())
	fillUniform(q, z.labels)
	return q
}

func fillUniform(q []float32, labels int) {
	for i := range q {
		q[i] = uniform(labels)
	}
}

func uniform(labels int) float32 { return 1 / float32(labels) }

// isUniform reports whether every leaf still holds the uniform distribution,
// exactly: then the gradient of Θ is exactly zero.
func isUniform(q []float32, labels int) bool {
	u := uniform(labels)
	for _, v := range q {
		if v != u {
			return false
		}
	}
	return true
}
