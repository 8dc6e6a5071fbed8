// Package gldknn is GLD-kNN of Wu et al. 2026: a row is predicted the mean of the targets of the k training rows that
// are nearest to it. It is AA-kNN (package aaknn) on targets scaled by their bounds.
//
// The paper's text was not at hand: PyLDL, a public program, gives the method. Scaling by bounds is linear, so the mean
// is the same with any scaling, and predictions stay within the bounds. With k auto, the number of neighbours
// has the least squared error of scaled targets, each training row predicted from the others.
package gldknn

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/aaknn"
)

// Name is the word that selects the algorithm in a spec.
const Name = "gld-knn"

// New returns the algorithm.
func New() algorithms.Algorithm {
	return aaknn.Variant{
		Name: Name,
		About: algorithms.About{
			Class:   "GLDKNN",
			Summary: "k nearest neighbours for targets in bounds",
			When:    "Use it for targets in bounds if you must explain each prediction by similar training samples.",
			Paper:   `Wu et al. 2026, the algorithms GLD of PyLDL`,
		},
		Doc: "GLD-kNN of Wu et al. 2026, for targets in bounds: the mean targets of the k nearest training samples, " +
			"which the model keeps",
		Predicts: algorithms.Targets,
		Paper:    "k 5",
		Loss:     "squared error",
	}.Make()
}
