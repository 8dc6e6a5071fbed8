package explain

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/algorithms/ldlf"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/job/predict"
)

// TreePath is the path of a sample through a tree. In a tree with soft splits, it is the path to the most probable
// leaf.
type TreePath struct {
	Sample string `json:"sample"` // its name, or its row number in the file
	Tree   int    `json:"tree"`
	Trees  int    `json:"trees"`
	Label  string `json:"label,omitempty"` // that the tree is about, if it is about one
	Steps  []Step `json:"steps"`
	Leaf   Leaf   `json:"leaf"`
}

// Step is a split node on a path.
type Step struct {
	Node int  `json:"node"`
	Left bool `json:"left"` // true if the sample goes to the left child
	// The test of a tree with hard splits: samples with a value below the threshold go left.
	Feature   string   `json:"feature,omitempty"`
	Value     *float64 `json:"value,omitempty"` // of the sample
	Threshold *float64 `json:"threshold,omitempty"`
	Samples   int      `json:"samples,omitempty"` // of the training that reached the node
	Gain      float64  `json:"gain,omitempty"`
	// The test of a tree with soft splits.
	Unit        *int     `json:"unit,omitempty"`        // output of the feature function that the node reads
	Probability *float64 `json:"probability,omitempty"` // of the branch that the path takes
}

// Leaf is the end of a path.
type Leaf struct {
	Node    int `json:"node"`
	Samples int `json:"samples,omitempty"` // of the training that reached the leaf
	// Probability is the probability of the leaf, of a tree with soft splits.
	Probability *float64 `json:"probability,omitempty"`
	// Values has what the leaf predicts for each label, or what it adds to the score of each label.
	Values []float64 `json:"values"`
	Adds   bool      `json:"adds,omitempty"` // true if Values are added to scores
}

// NewPath returns the path of the sample of a block with one sample.
func NewPath(m *predict.Model, b *Block, tree int) (*TreePath, error) {
	p := &TreePath{Sample: b.Name(0), Tree: tree}
	check := func(n int) error {
		if p.Trees = n; tree < 0 || tree >= n {
			return errtext.Errorf(errtext.WrongRequest, "{tree=%d}: the model has %d trees, counted from 0", tree, n)
		}
		return nil
	}
	if a := trees(m); a != nil {
		if err := check(len(a.Trees)); err != nil {
			return nil, err
		}
		return p, p.walk(m, a, b)
	}
	r, ok := m.Model.(ldlf.Router)
	if !ok {
		return nil, errtext.Errorf(errtext.WrongRequest, "a model of %s has no trees, so there is no path; "+
			"{method=permutation} explains all models", m.File.Algorithm)
	}
	trees, _, _ := r.SoftTrees()
	if err := check(trees); err != nil {
		return nil, err
	}
	p.route(m, r, b)
	return p, nil
}

// walk follows the sample through a tree with hard splits.
func (p *TreePath) walk(m *predict.Model, a *forest.Additive, b *Block) error {
	t, names := a.Trees[p.Tree], FeatureNames(m)
	label, all := a.Label(p.Tree)
	if !all {
		p.Label = m.Labels()[label]
	}
	at := 0
	for {
		f, left, split := t.Test(at)
		if !split {
			p.Leaf = Leaf{Node: at, Samples: int(t.Samples(at)), Adds: a.Scores}
			for _, v := range t.Distribution(int(left)) {
				x := float64(v)
				if a.Scores {
					x *= a.Factor
				}
				p.Leaf.Values = append(p.Leaf.Values, x)
			}
			bounds, err := m.TargetBounds()
			if bounds != nil && err == nil {
				for c, v := range p.Leaf.Values {
					p.Leaf.Values[c] = bounds.Low[c] + v*(bounds.High[c]-bounds.Low[c])
				}
			}
			return err
		}
		x, threshold := float64(value(b.Rows, 0, f)), t.Threshold(at)
		s := Step{Node: at, Left: x < threshold, Feature: names[f], Value: &x, Threshold: &threshold,
			Samples: int(t.Samples(at)), Gain: t.Gain(at)}
		p.Steps = append(p.Steps, s)
		if at = int(left); !s.Left {
			at++
		}
	}
}

// route finds the most probable leaf of a tree with soft splits, the first among equals, and the path to it.
func (p *TreePath) route(m *predict.Model, r ldlf.Router, b *Block) {
	trees, splits, leaves := r.SoftTrees()
	left := make([]float32, trees*splits)
	r.Route(left, b.Rows, 0, m.NewScratch())
	left = left[p.Tree*splits:][:splits]
	reach := reachOf(left)
	best := splits
	for n := splits; n < splits+leaves; n++ {
		if reach[n] > reach[best] {
			best = n
		}
	}
	p.Leaf = Leaf{Node: best, Probability: &reach[best]}
	for _, v := range r.SoftLeaf(p.Tree, best-splits) {
		p.Leaf.Values = append(p.Leaf.Values, float64(v))
	}
	var nodes []int
	for n := best; n > 0; n = (n - 1) / 2 {
		nodes = append(nodes, n)
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		child := nodes[i]
		node := (child - 1) / 2
		unit, _, _ := r.UnitOf(p.Tree, node)
		s := Step{Node: node, Left: child == 2*node+1, Unit: &unit}
		probability := float64(left[node])
		if !s.Left {
			probability = 1 - probability
		}
		s.Probability = &probability
		p.Steps = append(p.Steps, s)
	}
}

// reachOf returns the probability with which a sample reaches each node of a tree with soft splits, the leaves last.
func reachOf(left []float32) []float64 {
	reach := make([]float64, 2*len(left)+1)
	reach[0] = 1
	for n, v := range left {
		reach[2*n+1] = reach[n] * float64(v)
		reach[2*n+2] = reach[n] * (1 - float64(v))
	}
	return reach
}
