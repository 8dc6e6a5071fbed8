package enhance

import (
	"math"

	"github.com/coppice-ldl/coppice/internal/num"
)

// The kinds of affinities.
const (
	gaussianOfOthers = iota // exp(-d²/2) of different samples, 0 of a sample and itself
	euclidean               // d
	gaussian                // exp(-d²·factor)
	kinds
)

// affinities sets dst to the affinities of a kind between sample at and all samples, of the squared distances.
func affinities(dst, squares []float64, kind int, factor float64, at int) {
	if kind == euclidean {
		for j, d := range squares {
			dst[j] = math.Sqrt(d)
		}
		return
	}
	for j, d := range squares {
		dst[j] = -float64(d * factor)
	}
	num.Exps(dst, dst)
	if kind == gaussianOfOthers {
		dst[at] = 0
	}
}
