package ldlboost

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/boost"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Derivatives are whole numbers: g, at most 1 in size, of 2^-gradientBits, and h, at most 1/4, of 2^-hessianBits.
const (
	gradientBits = 15
	hessianBits  = 17
	gradientUnit = 1.0 / (1 << gradientBits)
	hessianUnit  = 1.0 / (1 << hessianBits)
)

// quantise sets dst to 1, g by label and, where there is room, h by label, of predicted and true degrees.
func quantise(dst []int32, p []float64, label []float32) {
	dst[0] = 1
	for c, x := range p {
		g := max(-1, min(1, x-float64(label[c]))) // known degrees of incomplete labels may be a little more than 1
		dst[1+c] = int32(boost.RoundToInt(float64(g * (1 << gradientBits))))
	}
	if len(dst) > 1+len(p) {
		for c, x := range p {
			dst[1+len(p)+c] = int32(boost.RoundToInt(float64(float64(x*(1-x)) * (1 << hessianBits))))
		}
	}
}

// A word holds two numbers x and y as x + y·2^32. Sums of words are so in turn as long as both sums fit into 32 bits.

// pack packs numbers into words.
func pack(words []int64, numbers []int32) {
	for i := range words {
		words[i] = int64(numbers[2*i])
		if 2*i+1 < len(numbers) {
			words[i] += int64(numbers[2*i+1]) << 32
		}
	}
}

// weigh multiplies the numbers of a row by its weight in units, and puts the products into words. The first number, the
// count of the row, is not multiplied. If words is longer than numbers, the last word is the weight.
func weigh(words []int64, numbers []int32, units int64) {
	words[0], words[len(words)-1] = int64(numbers[0]), units
	for i, x := range numbers[1:] {
		words[1+i] = int64(x) * units
	}
}

// The missing labels of a sample count as one label. Its degree is what the known degrees lack of 1. If each missing
// degree is its share by the probabilities p, the K-L divergence does not change.

// complete sets dst to a label distribution whose missing degrees are these shares.
func complete(dst, label []float32, p []float64) []float32 {
	mass := missingMass(label, p)
	rest := dataset.Unassigned(label)
	for c, degree := range label {
		if dst[c] = degree; degree != degree {
			dst[c] = float32(float64(rest*p[c]) / mass)
		}
	}
	return dst
}

// mergedLoss returns the K-L divergence of a label distribution with missing degrees.
func mergedLoss(label []float32, p []float64) (loss float64) {
	for c, degree := range label {
		if degree > 0 {
			loss += float64(float64(degree) * (num.Log(float64(degree)) - num.Log(max(p[c], leastProbability))))
		}
	}
	if rest := dataset.Unassigned(label); rest > 0 {
		loss += float64(rest * (num.Log(rest) - num.Log(missingMass(label, p))))
	}
	return loss
}

// missingMass returns the probability of the missing labels.
func missingMass(label []float32, p []float64) (mass float64) {
	for c, degree := range label {
		if degree != degree {
			mass += p[c]
		}
	}
	return max(mass, leastProbability)
}

// leastProbability is the least predicted probability in a K-L divergence, and mostLoss the loss of a sample that is
// predicted so. Sums of greater losses would not be exact.
const (
	leastProbability = 1e-12
	mostLoss         = 27.631021115928547
)
