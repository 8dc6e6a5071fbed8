package forest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// ErrNode is what errors of ExamineNode about the node or feature that was asked for wrap.
var ErrNode = errors.New("no such node or feature")

// The letters of a path.
const (
	goLeft  = 'L'
	goRight = 'R'
)

// NodeAt names a node of a forest, and a feature.
type NodeAt struct {
	Tree int
	// Path is empty for the root. Of another node it has a letter for each split above the node,
	// from the root on: L where the node is on the left (rows below the threshold), R on the right.
	Path string
	// Feature is the one whose thresholds are listed; below 0: the one that the node's split tests.
	Feature int
}

// NodeGains is what the search for the split of a node computes: the gain of each threshold, and
// which ones the adaptive step visits.
type NodeGains struct {
	Rows    int      // different rows that reach the node
	Samples int      // these rows, copies counted
	Classes []uint64 // samples of each class label
	Split   NodeSplit
	Best    NodeSplit  // the best of all thresholds (Eq. 3)
	Visited *NodeSplit // the best of those that the adaptive step visits; nil: none of them has a gain
	// Features are those that the node tries and that have several values there, ascending.
	Features   []FeatureGains
	Feature    int         // whose Thresholds are listed
	Thresholds []Threshold // ascending
}

// NodeSplit is a split of a node.
type NodeSplit struct {
	Feature   int
	Threshold float64 // rows with a value below go left
	Gain      float64 // in nats
}

// FeatureGains sums up the thresholds of a feature.
type FeatureGains struct {
	Feature    int
	Thresholds int     // all candidates: one between any two neighbouring values
	Visited    int     // by the adaptive step
	Gain       float64 // the greatest, in nats
}

// Threshold is a candidate threshold of a feature.
type Threshold struct {
	Threshold float64
	Left      int     // samples below it
	Gain      float64 // Eq. 2 of Chen et al. 2018, in nats
	Visited   bool    // by the adaptive step (Eq. 5)
}

// NodeExaminer is a kernel whose trees have nodes to examine: that of structrf and of rf.
type NodeExaminer interface {
	// ExamineNode grows the tree down to a node and returns the gains there. d has all shards.
	// Errors about what at names wrap ErrNode.
	ExamineNode(ctx context.Context, d *dataset.Data, at NodeAt) (*NodeGains, error)
}

var _ NodeExaminer = (*kernel)(nil)

// ExamineNode implements NodeExaminer.
func (k *kernel) ExamineNode(ctx context.Context, d *dataset.Data, at NodeAt) (*NodeGains, error) {
	if at.Tree < 0 || at.Tree >= k.cfg.Trees {
		return nil, fmt.Errorf("%w: tree %d does not exist; the forest has trees 0 to %d", ErrNode, at.Tree, k.cfg.Trees-1)
	}
	if at.Feature >= d.Manifest.Features {
		return nil, fmt.Errorf("%w: feature %d does not exist; the dataset has features 0 to %d", ErrNode, at.Feature, d.Manifest.Features-1)
	}
	if strings.Trim(at.Path, string(goLeft)+string(goRight)) != "" {
		return nil, fmt.Errorf("%w: path %q: want a letter for each split above the node, L (left) or R (right)", ErrNode, at.Path)
	}
	t, err := k.trainingTable(round.Task{Of: 1, Op: OpGrow, Scope: round.Whole, Roles: dataset.Train}, d)
	if err != nil {
		return nil, err
	}
	e := examination{grower: k.newGrower(), at: at, feature: at.Feature}
	if err := e.descend(ctx, t); err != nil {
		return nil, err
	}
	return e.examine(), e.err()
}

// examination is the examination of one node. It repeats the search of the node's split: with
// the step of the settings, with each threshold tried, and with the adaptive step.
type examination struct {
	*grower
	at      NodeAt
	node    pendingNode
	split   NodeSplit
	feature int // whose thresholds are listed
	gains   *NodeGains
}

// descend grows the nodes on the path and no others.
func (e *examination) descend(ctx context.Context, t *Table) error {
	e.node = e.begin(t, uint32(e.at.Tree))
	for depth := 0; ; depth++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		best, ok := split{}, false
		if e.node.splits {
			best, ok = e.bestSplit(&e.node)
		}
		switch {
		case !ok && depth == len(e.at.Path):
			return fmt.Errorf("%w: %s of tree %d is a leaf of %d samples, where no threshold is tried or no threshold has a gain", ErrNode, NodeName(e.at.Path), e.at.Tree, e.node.copies)
		case !ok:
			return fmt.Errorf("%w: %s of tree %d does not exist: %s is a leaf", ErrNode, NodeName(e.at.Path), e.at.Tree, NodeName(e.at.Path[:depth]))
		case depth == len(e.at.Path):
			e.split = e.splitOf(&best)
			return nil
		}
		left, right := e.divide(&e.node, &best)
		if e.node = left; e.at.Path[depth] == goRight {
			e.node = right
		}
	}
}

// NodeName is what texts call the node of a path.
func NodeName(path string) string {
	if path == "" {
		return "the root"
	}
	return "node " + path
}

// splitOf describes a split of the node.
func (e *examination) splitOf(s *split) NodeSplit {
	return NodeSplit{int(s.column), e.threshold(&e.node, s), s.gain(e.node.copies)}
}

// examine tries every threshold of the node, and then those of the adaptive step.
func (e *examination) examine() *NodeGains {
	p := &e.node
	e.gains = &NodeGains{Rows: p.to - p.from, Samples: p.copies, Classes: make([]uint64, e.classes), Split: e.split}
	for _, row := range e.rows[p.from:p.to] {
		e.gains.Classes[e.sample.Class[row]] += uint64(e.sample.Weight[row])
	}
	if e.feature < 0 {
		e.feature = e.split.Feature
	}
	e.gains.Feature = e.feature
	if best := e.repeat(0, e.list); best != nil { // the tree has a split, so that it is there
		e.gains.Best = *best
	}
	at := -1 // in Features; the second search tries the same columns in the same order
	next := 0
	e.gains.Visited = e.repeat(e.cfg.Alpha, func(s *split, left uint32) {
		for at < 0 || e.gains.Features[at].Feature != int(s.column) {
			at++
		}
		e.gains.Features[at].Visited++
		if int(s.column) != e.feature {
			return
		}
		for e.gains.Thresholds[next].Left != int(left) {
			next++
		}
		e.gains.Thresholds[next].Visited = true
	})
	return e.gains
}

// repeat searches the split again by the adaptive step with an α, where 0 tries every threshold,
// and has each threshold that is tried told, with the samples on its left. It returns nil where none
// of them has a gain.
func (e *examination) repeat(alpha float64, tell func(s *split, left uint32)) *NodeSplit {
	z := &e.search
	z.adaptive, z.alpha = true, alpha
	z.observe = func(index, left uint32, sum int64) {
		tell(&split{column: z.trying.column, index: index, zeroLeft: z.zeroLeft, total: z.nodeEntropy - sum}, left)
	}
	best, ok := e.bestSplit(&e.node)
	z.observe = nil
	if !ok {
		return nil
	}
	found := e.splitOf(&best)
	return &found
}

// list takes a threshold into the results of the exhaustive search.
func (e *examination) list(s *split, left uint32) {
	g := e.gains
	gain := max(0, s.gain(e.node.copies)) // rounding may leave a gain of 0 a little below
	if n := len(g.Features); n == 0 || g.Features[n-1].Feature != int(s.column) {
		g.Features = append(g.Features, FeatureGains{Feature: int(s.column)})
	}
	f := &g.Features[len(g.Features)-1]
	f.Thresholds++
	f.Gain = max(f.Gain, gain)
	if int(s.column) != e.feature {
		return
	}
	c := e.search.trying
	s.lower, s.upper = Neighbours(e.entries, c.from, c.to, s.index, s.zeroLeft, e.node.to-e.node.from)
	g.Thresholds = append(g.Thresholds, Threshold{Threshold: e.threshold(&e.node, s), Left: int(left), Gain: gain})
}

// err returns an error if the feature that was asked for has no threshold.
func (e *examination) err() error {
	switch {
	case len(e.gains.Thresholds) > 0:
		return nil
	case !e.features.tries(uint32(e.feature)):
		return fmt.Errorf("%w: feature %d is not tried at %s (features is %s)", ErrNode, e.feature, NodeName(e.at.Path), e.cfg.Features)
	}
	return fmt.Errorf("%w: feature %d has only one value at %s", ErrNode, e.feature, NodeName(e.at.Path))
}
