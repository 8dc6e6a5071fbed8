package forest

import (
	"slices"

	"github.com/coppice-ldl/coppice/internal/num"
)

// featureSampler draws the features that a node tries, without replacement: the first
// ones of a random permutation of all features, which is a function of (seed, tree, path).
type featureSampler struct {
	key          num.Key
	tree         uint32
	tried        int
	everyFeature bool // every feature is tried
	drawn        num.Permutation
	marked       []bool   // by feature: the node tries it; not set if inverse
	list         []uint32 // those marked, ascending
	inverse      bool     // tries computes drawn.Inverse
}

// begin prepares for a tree on q features.
func (c *featureSampler) begin(cfg *Config, tree uint32, q int) {
	c.tree, c.tried = tree, cfg.tried(q)
	c.everyFeature = c.tried == q
	if !c.everyFeature && len(c.marked) != q {
		c.marked, c.list = make([]bool, q), nil
	}
}

// draw draws the features of a node. The caller calls tries at most asks times: if these
// are few, tries computes the inverse permutation instead.
func (c *featureSampler) draw(path uint64, asks int) {
	if c.everyFeature {
		return
	}
	c.drawn = num.NewPermutation(c.key, path, c.tree, uint64(len(c.marked)))
	for _, f := range c.list {
		c.marked[f] = false
	}
	c.list = c.list[:0]
	if c.inverse = asks < c.tried; c.inverse {
		return
	}
	for i := range c.tried {
		f := c.drawn.At(uint64(i))
		c.marked[f] = true
		c.list = append(c.list, uint32(f))
	}
}

// sorted returns the features that draw drew, ascending.
func (c *featureSampler) sorted() []uint32 {
	slices.Sort(c.list)
	return c.list
}

// tries reports whether the node tries a feature.
func (c *featureSampler) tries(feature uint32) bool {
	switch {
	case c.everyFeature:
		return true
	case c.inverse:
		return c.drawn.Inverse(uint64(feature)) < uint64(c.tried)
	}
	return c.marked[feature]
}
