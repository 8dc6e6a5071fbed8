// Package enhance makes label distributions of logical labels, which say of each label only whether it is relevant.
// The equations are in Xu, Liu and Geng 2019 ("Label Enhancement for Label Distribution Learning").
//
// Stage is the leader's half and Kernel the workers' half, as with an algorithm. The pipeline runs the rounds of a
// Stage before the rounds of the algorithm, on the training samples, and on validation samples if the algorithm uses
// them. Run computes them in this process, for all samples of a dataset.
package enhance

import (
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/internal/units"
)

// The methods (round.Enhance.Method).
const (
	LabelPropagation = "lp"
	KernelDistance   = "km"
	GraphLaplacian   = "glle"
	// Logical takes the logical labels as they are, which is what enhancement must improve on.
	Logical = "logical"
)

// Methods lists the methods.
func Methods() []string { return []string{LabelPropagation, KernelDistance, GraphLaplacian, Logical} }

// The normalisations (round.Enhance.Normalise).
const (
	Softmax = "softmax" // the softmax of the scores, as in the text of the paper
	Sum     = "sum"     // negative scores become 0, then all are divided by their sum, as in the tables of the paper
)

// Normalisations lists the normalisations.
func Normalisations() []string { return []string{Softmax, Sum} }

// DefaultBinarise is the threshold of the paper.
const DefaultBinarise = 0.5

// MostSamples and MostFitted bound the samples of a dataset: for lp and km, whose time grows with the square of the
// samples, and for glle, which has a matrix of all pairs in memory.
const (
	MostSamples = 20_000
	MostFitted  = 5_000
)

// Enhanced returns the roles of the samples of a job whose labels are enhanced: training samples, and validation
// samples if the job validates. The validation samples of a dataset may be of no use to a job.
func Enhanced(s *dataset.Split) dataset.Roles {
	if s.ValidationFraction > 0 {
		return dataset.Labelled
	}
	return dataset.Train
}

// Check returns an error if there is no such enhancement, or if it does not go with the dataset. Errors about one
// setting are *param.Error, named as in a job spec.
func Check(e *round.Enhance, m *dataset.Manifest) error {
	if !slices.Contains(Methods(), e.Method) {
		return param.Errorf("enhance", "there is no method %.20q%s", e.Method, param.Suggest(e.Method, Methods()))
	}
	if !slices.Contains(Normalisations(), e.Normalise) {
		return param.Errorf("normalise", "got %.20q, want %s or %s", e.Normalise, Softmax, Sum)
	}
	if !(e.Binarise >= 0 && e.Binarise < 1) {
		return param.Errorf("binarise", "got %v, want a number from 0 to below 1", e.Binarise)
	}
	if t := m.LabelType; t != (dataset.LabelType{}) {
		return param.Errorf("enhance", "the labels of the dataset are %s; only distributions and logical labels can be "+
			"enhanced", t.String(m.Labels))
	}
	n := m.Rows
	pairs := units.Format(8 * int64(n) * int64(n))
	switch {
	case e.Method == GraphLaplacian && n > MostFitted:
		other := ""
		if n <= MostSamples {
			other = ", or the method " + LabelPropagation
		}
		return param.Errorf("enhance", "%s needs a matrix of all pairs of samples in memory: %s samples would take %s; want "+
			"at most %s samples%s", e.Method, units.Count(n), pairs, units.Count(MostFitted), other)
	case (e.Method == LabelPropagation || e.Method == KernelDistance) && n > MostSamples:
		return param.Errorf("enhance", "%s computes the affinities of all pairs of samples several times: %s samples have "+
			"%s of affinities; want at most %s samples", e.Method, units.Count(n), pairs, units.Count(MostSamples))
	}
	return nil
}

// Demand returns the most memory that a task takes, in bytes, and what it takes the memory for.
func Demand(e *round.Enhance, m *dataset.Manifest) (bytes int64, what string) {
	n, q, c := int64(m.Rows), int64(m.Features), int64(m.Labels)
	if e.Method != GraphLaplacian {
		return 0, ""
	}
	const vectors = 30 // of the optimiser and of the gradient
	return 8*n*n + 16*n*q + 8*vectors*n*c, fmt.Sprintf("a label enhancement by %s has a matrix of %d×%d numbers", e.Method,
		n, n)
}

// Footprint bounds the bytes of a state of a Stage, and of a message with its variable or result.
func Footprint(m *dataset.Manifest) (state, message int64) {
	n := int64(m.Rows) * int64(m.Labels)
	return (1+4+8+8)*n + 8*int64(m.Rows), 8 * n
}

// Relevant sets to, with an element for each label, to 1 for relevant labels and 0 for others. It adds labels by
// falling degree, of equal degrees the first, until the sum of degrees exceeds the threshold. If the threshold is 0,
// labels that are not 0 are relevant. Relevant then returns false if their degrees differ: logical labels are equal.
func Relevant(to []byte, degrees []float32, threshold float64) (logical bool) {
	clear(to)
	if threshold == 0 {
		most, least := float32(0), float32(math.MaxFloat32)
		for c, d := range degrees {
			if d > 0 {
				to[c], most, least = 1, max(most, d), min(least, d)
			}
		}
		return most-least <= most*equalDegrees
	}
	for sum := 0.0; sum <= threshold; {
		best := -1
		for c, d := range degrees {
			if to[c] == 0 && d > 0 && (best < 0 || d > degrees[best]) {
				best = c
			}
		}
		if best < 0 {
			break
		}
		to[best] = 1
		sum += float64(degrees[best])
	}
	return true
}

// equalDegrees is how much degrees of logical labels may differ that were divided by their sum.
const equalDegrees = 1e-5

// normalise makes a distribution of the scores of a sample. If no score is positive, sum gives the relevant labels
// equal degrees.
func normalise(dst []float32, scores []float64, relevant []byte, how string) {
	v := make([]float64, len(scores))
	if how == Softmax {
		most := slices.Max(scores)
		for c, s := range scores {
			v[c] = num.Exp(s - most)
		}
	} else {
		for c, s := range scores {
			v[c] = max(0, s)
		}
	}
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	if sum <= 0 {
		for c, r := range relevant {
			v[c] = float64(r)
			sum += v[c]
		}
	}
	for c, x := range v {
		dst[c] = float32(x / sum)
	}
}
