package explain

import (
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/job/predict"
)

// Gains says how much the splits of trees gain by each feature.
type Gains struct {
	Unit     string        `json:"unit"` // of gains
	Trees    int           `json:"trees"`
	Features []FeatureGain `json:"features"` // in the order of the model
}

// FeatureGain says how much the splits on a feature gain.
type FeatureGain struct {
	Feature string  `json:"feature"`
	Splits  int     `json:"splits"`
	Gain    float64 `json:"gain"` // mean over the trees
	// StandardError is the standard error of Gain over the trees. It is absent for boosters, whose trees depend
	// on the trees before them, and if there is one tree.
	StandardError *float64 `json:"standard_error,omitempty"`
	Importance    float64  `json:"importance"` // fraction of the gains of all features
	// Labels has the importance for each label: the fraction of the variance of the label's leaves, over the training
	// samples, that splits on the feature explain.
	Labels []float64 `json:"labels"`
}

// NewGains computes the gains of the trees of a model. The model has all that is needed.
func NewGains(m *predict.Model) (*Gains, error) {
	a := trees(m)
	if a == nil {
		return nil, errtext.Errorf(errtext.WrongRequest, "a model of %s is not a sum of trees, so it has no gains; "+
			"{method=permutation} explains all models", m.File.Algorithm)
	}
	if err := a.CheckCovers(); err != nil {
		return nil, err
	}
	g := &Gains{Unit: "nats per sample: the information gain of the splits, weighted by the fraction of the tree's " +
		"samples", Trees: len(a.Trees)}
	if a.Sums {
		g.Unit = "gain of the training objective, summed over samples"
	}
	g.Features = make([]FeatureGain, a.Features)
	explained := make([]float64, a.Features*a.Labels)
	squares, one := make([]float64, a.Features), make([]float64, a.Features)
	total := 0.0
	for i, t := range a.Trees {
		used := addTree(a, g, t, one)
		for _, f := range used {
			g.Features[f].Gain += one[f]
			squares[f] += float64(one[f] * one[f])
			total += one[f]
			one[f] = 0
		}
		label, all := a.Label(i)
		addExplained(explained, a, t, label, all)
	}
	n := float64(len(a.Trees))
	sums := make([]float64, a.Labels)
	for i, v := range explained {
		sums[i%a.Labels] += v
	}
	names := FeatureNames(m)
	for f := range g.Features {
		x := &g.Features[f]
		x.Feature = names[f]
		if total > 0 {
			x.Importance = x.Gain / total
		}
		x.Gain /= n
		if n > 1 && !a.Sums { // the trees of a forest are independent
			variance := max(0, squares[f]/n-float64(x.Gain*x.Gain)) * n / (n - 1)
			e := math.Sqrt(variance / n)
			x.StandardError = &e
		}
		for c, s := range sums {
			v := 0.0
			if s > 0 {
				v = explained[f*a.Labels+c] / s
			}
			x.Labels = append(x.Labels, v)
		}
	}
	return g, nil
}

// addTree adds the gains of a tree to one (features), and lists the features that it uses, ascending.
func addTree(a *forest.Additive, g *Gains, t *forest.Tree, one []float64) (used []uint32) {
	for n := range t.Nodes() {
		f, _, split := t.Test(n)
		if !split {
			continue
		}
		gain := t.Gain(n)
		if !a.Sums {
			gain = gain * float64(t.Samples(n)) / float64(t.Samples(0))
		}
		one[f] += gain
		g.Features[f].Splits++
		used = append(used, f)
	}
	slices.Sort(used)
	return slices.Compact(used)
}

// addExplained adds to explained (features×labels) how much the splits of a tree lower the variance of its outputs over
// the training samples. The mean of a node is the mean of the leaves below it.
func addExplained(explained []float64, a *forest.Additive, t *forest.Tree, label int, all bool) {
	means := nodeMeans(t)
	width, root := t.Labels, float64(t.Samples(0))
	square := float64(a.Factor * a.Factor)
	for n := range t.Nodes() {
		f, left, split := t.Test(n)
		if !split {
			continue
		}
		for child := int(left); child <= int(left)+1; child++ {
			weight := float64(t.Samples(child)) / root
			for c := range width {
				d := means[child*width+c] - means[n*width+c]
				at := label
				if all {
					at = c
				}
				explained[int(f)*a.Labels+at] += float64(square * float64(weight*float64(d*d)))
			}
		}
	}
}

// nodeMeans returns the mean of the leaves below each node, over the samples of the tree (nodes×numbers of a leaf).
func nodeMeans(t *forest.Tree) []float64 {
	width := t.Labels
	means := make([]float64, t.Nodes()*width)
	for n := t.Nodes() - 1; n >= 0; n-- {
		_, left, split := t.Test(n)
		own := means[n*width:][:width]
		if !split {
			for c, v := range t.Distribution(int(left)) {
				own[c] = float64(v)
			}
			continue
		}
		for child := int(left); child <= int(left)+1; child++ {
			weight := float64(t.Samples(child)) / float64(t.Samples(n))
			for c, v := range means[child*width:][:width] {
				own[c] += float64(weight * v)
			}
		}
	}
	return means
}
