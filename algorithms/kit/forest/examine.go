package forest

import (
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// ErrLeaf says that the root that was to be examined is a leaf.
var ErrLeaf = errors.New("the root of the first tree is a leaf: no threshold is tried, or no threshold has a gain")

// RootGains is what the search for the split of a root computes: the gain of each threshold, and
// which ones the adaptive step visits.
type RootGains struct {
	Rows  int       `json:"samples"` // different rows that the tree drew
	Split NodeSplit `json:"split"`
	Best  NodeSplit `json:"best"` // the best of all thresholds (Eq. 3)
	// Visited is the best threshold that the adaptive step visits; nil: no visited threshold has a gain.
	Visited *NodeSplit `json:"best_visited"`
	// Features are those that the root tries and that have several values, ascending.
	Features   []FeatureGains `json:"features"`
	Thresholds []Threshold    `json:"thresholds"` // of the feature of Split, ascending
}

// NodeSplit is a split of a node.
type NodeSplit struct {
	Feature   int     `json:"feature"`
	Threshold float64 `json:"threshold"` // rows with a value below go left
	Gain      float64 `json:"gain"`      // in nats
}

// FeatureGains sums up the thresholds of a feature.
type FeatureGains struct {
	Feature    int     `json:"feature"`
	Thresholds int     `json:"thresholds"` // all candidates: one between any two neighbouring values
	Visited    int     `json:"visited"`    // by the adaptive step
	Gain       float64 `json:"gain"`       // the greatest, in nats
}

// Threshold is a candidate threshold of a feature.
type Threshold struct {
	Threshold float64 `json:"threshold"`
	Left      int     `json:"left"`    // samples below it
	Gain      float64 `json:"gain"`    // Eq. 2 of Chen et al. 2018, in nats
	Visited   bool    `json:"visited"` // by the adaptive step (Eq. 5)
}

// RootExaminer is a kernel whose trees have roots to examine: the kernel of structrf or of rf.
type RootExaminer interface {
	// ExamineRoot returns the gains at the root of the first tree. d has all shards. An error may be ErrLeaf.
	ExamineRoot(d *dataset.Data) (*RootGains, error)
}

var (
	_ RootExaminer = (*kernel)(nil)
	_ RootExaminer = (*countedKernel)(nil)
)

// ExamineRoot implements RootExaminer.
func (k *kernel) ExamineRoot(d *dataset.Data) (*RootGains, error) {
	t, err := k.trainingTable(round.Task{Of: 1, Op: OpGrow, Scope: round.Whole, Roles: dataset.Train}, d)
	if err != nil {
		return nil, err
	}
	e := examination{grower: k.newGrower()}
	e.node = e.begin(t, 0)
	if !e.node.splits {
		return nil, ErrLeaf
	}
	best, ok := e.bestSplit(&e.node)
	if !ok {
		return nil, ErrLeaf
	}
	return e.examine(e.splitOf(&best)), nil
}

// ExamineRoot implements RootExaminer.
func (k *countedKernel) ExamineRoot(*dataset.Data) (*RootGains, error) {
	return nil, fmt.Errorf("a root with split %s cannot be examined: use split %s", splitHistogram, splitExact)
}

// examination is the examination of one root. It repeats the search of the root's split, which was found with the step
// of the settings, with each threshold tried, and with the adaptive step.
type examination struct {
	*grower
	node  pendingNode
	gains *RootGains
}

// splitOf describes a split of the node.
func (e *examination) splitOf(s *split) NodeSplit {
	return NodeSplit{int(s.column), e.threshold(&e.node, s), s.gain(e.node.copies)}
}

// examine tries every threshold of the root, and then the thresholds of the adaptive step.
func (e *examination) examine(found NodeSplit) *RootGains {
	e.gains = &RootGains{Rows: e.node.to - e.node.from, Split: found}
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
		if int(s.column) != found.Feature {
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
	if int(s.column) != g.Split.Feature {
		return
	}
	c := e.search.trying
	s.lower, s.upper = Neighbours(e.entries, c.from, c.to, s.index, s.zeroLeft, e.node.to-e.node.from)
	g.Thresholds = append(g.Thresholds, Threshold{Threshold: e.threshold(&e.node, s), Left: int(left), Gain: gain})
}
