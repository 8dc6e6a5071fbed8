package explain

import (
	"cmp"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/ldlf"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/job/predict"
)

// SoftSplits describes the splits of a forest whose trees have soft splits, on samples.
type SoftSplits struct {
	Samples int         `json:"samples"`
	Splits  []SoftSplit `json:"splits"` // the most information first
}

// SoftSplit is a soft split.
type SoftSplit struct {
	Tree int `json:"tree"`
	Node int `json:"node"` // in heap order: the children of node n are 2n+1 and 2n+2
	Unit int `json:"unit"` // output of the feature function that it reads
	// Reached is the fraction of the samples that reaches the node: the mean of their probabilities.
	Reached float64 `json:"reached"`
	Left    float64 `json:"left"` // of these, the fraction that goes left
	// Certainty is the mean probability of the branch that a sample more probably takes: from 0.5 to 1.
	Certainty float64 `json:"certainty"`
	// Information is the entropy of Left, less the mean entropy of the samples' probabilities, in bits. It is 1 if each
	// sample is certain of its branch, and half of them go left. It is 0 if all samples have the same probability.
	Information float64 `json:"information"`
	// LeftMean and RightMean are the means of the leaves on both sides, weighted by the probabilities of the samples.
	LeftMean  []float64 `json:"left_mean"`
	RightMean []float64 `json:"right_mean"`
	// Features has the features with the greatest weights after scaling, if the feature function is linear.
	Features []UnitWeight `json:"features,omitempty"`
}

// UnitWeight is the weight of a feature.
type UnitWeight struct {
	Feature string  `json:"feature"`
	Weight  float64 `json:"weight"` // per unit of the feature as samples have it; a positive weight leads to the left
}

// mostUnitWeights is the number of features of a split that are listed.
const mostUnitWeights = 5

// The sums of a split: reached, left, certainty, entropy.
const splitSums = 4

// NewSoftSplits describes the splits of a model on the samples of src.
func NewSoftSplits(m *predict.Model, src dataset.Source, o importer.Options) (*SoftSplits, error) {
	r, ok := m.Model.(ldlf.Router)
	if !ok {
		return nil, errtext.Errorf(errtext.WrongRequest, "a model of %s has no soft splits; {method=splits} is for "+
			"models of %s", m.File.Algorithm, ldlf.Name)
	}
	trees, splits, leaves := r.SoftTrees()
	width := splits*splitSums + leaves // sums of a tree, with the mass of each leaf
	sums := make([]float64, trees*width)
	found := new(SoftSplits)
	type lane struct {
		scratch any
		left    []float32
	}
	err := eachBlock(src, blockRows, m.Threads, o, func() lane {
		return lane{m.NewScratch(), make([]float32, trees*splits)}
	}, func(l lane, b *Block) []float64 {
		own := make([]float64, trees*width)
		for i := range b.Rows.N {
			r.Route(l.left, b.Rows, i, l.scratch)
			for t := range trees {
				addSplits(own[t*width:][:width], l.left[t*splits:][:splits])
			}
		}
		return own
	}, func(b *Block, own []float64) error {
		found.Samples += b.Rows.N
		for i, v := range own {
			sums[i] += v
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	names := FeatureNames(m)
	for t := range trees {
		found.Splits = append(found.Splits, describeSplits(r, t, sums[t*width:][:width], found.Samples, names)...)
	}
	slices.SortStableFunc(found.Splits, func(a, b SoftSplit) int { return cmp.Compare(b.Information, a.Information) })
	return found, nil
}

// addSplits adds a sample to the sums of a tree.
func addSplits(sums []float64, left []float32) {
	reach := reachOf(left)
	for n, v := range left {
		s, p := sums[n*splitSums:][:splitSums], float64(v)
		s[0] += reach[n]
		s[1] += reach[n] * p
		s[2] += reach[n] * max(p, 1-p)
		s[3] += reach[n] * entropy(p)
	}
	for i, p := range reach[len(left):] {
		sums[len(left)*splitSums+i] += p
	}
}

// entropy returns the entropy of a probability, in bits.
func entropy(p float64) float64 {
	if !(p > 0 && p < 1) {
		return 0
	}
	return -(p*num.Log(p) + (1-p)*num.Log(1-p)) / math.Ln2
}

// describeSplits describes the splits of a tree.
func describeSplits(r ldlf.Router, tree int, sums []float64, samples int, names []string) []SoftSplit {
	_, splits, leaves := r.SoftTrees()
	labels := len(r.SoftLeaf(tree, 0))
	below := make([]float64, (splits+leaves)*(1+labels)) // by node: the mass of the leaves below it, and their sums
	for n := splits + leaves - 1; n >= 0; n-- {
		own := below[n*(1+labels):][:1+labels]
		if n >= splits {
			own[0] = sums[splits*splitSums+n-splits]
			for c, q := range r.SoftLeaf(tree, n-splits) {
				own[1+c] = own[0] * float64(q)
			}
			continue
		}
		for child := 2*n + 1; child <= 2*n+2; child++ {
			for i, v := range below[child*(1+labels):][:1+labels] {
				own[i] += v
			}
		}
	}
	mean := func(node int) []float64 {
		own := below[node*(1+labels):][:1+labels]
		all := make([]float64, labels)
		for c := range all {
			if own[0] > 0 {
				all[c] = own[1+c] / own[0]
			}
		}
		return all
	}
	list := make([]SoftSplit, splits)
	for n := range list {
		s := sums[n*splitSums:][:splitSums]
		x := &list[n]
		x.Tree, x.Node = tree, n
		x.LeftMean, x.RightMean = mean(2*n+1), mean(2*n+2)
		if samples > 0 {
			x.Reached = s[0] / float64(samples)
		}
		if s[0] > 0 {
			x.Left, x.Certainty = s[1]/s[0], s[2]/s[0]
			x.Information = max(0, entropy(x.Left)-s[3]/s[0])
		}
		unit, scaled, raw := r.UnitOf(tree, n)
		x.Unit = unit
		order := Order(len(scaled), func(k int) float64 { return math.Abs(scaled[k]) })
		for _, k := range order[:min(len(order), mostUnitWeights)] {
			x.Features = append(x.Features, UnitWeight{names[k], raw[k]})
		}
	}
	return list
}
