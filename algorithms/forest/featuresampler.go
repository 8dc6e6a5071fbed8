package forest

import (
	"slices"

	"github.com/coppice-ldl/coppice/internal/num"
)

// chooser draws the features that a node tries, without replacement: the start of
// the permutation of all features that belongs to (seed, tree, path).
type featureSampler struct {
	key          num.Key
	tree         uint32
	tried        int
	everyFeature bool // every feature is tried
	drawn        num.Permutation
	marked       []bool   // by feature: the node tries it; unless looked up in drawn
	list         []uint32 // those marked, ascending
	inverse      bool
}

// begin prepares for a tree on q features.
func (c *featureSampler) begin(cfg *Config, tree uint32, q int) {
	c.tree, c.tried = tree, cfg.tried(q)
	c.everyFeature = c.tried == q
	if !c.everyFeature && len(c.marked) != q {
		c.marked, c.list = make([]bool, q), nil
	}
}

// choose draws the features of a node. It will be asked for at most asks of them,
// and where these are few each is looked up alone.
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

// sorted returns the features that choose drew, ascending.
func (c *featureSampler) sorted() []uint32 {
	slices.Sort(c.list)
	return c.list
}

// has reports whether the node tries a feature.
func (c *featureSampler) tries(feature uint32) bool {
	switch {
	case c.everyFeature:
		return true
	case c.inverse:
		return c.drawn.Inverse(uint64(feature)) < uint64(c.tried)
	}
	return c.marked[feature]
}
