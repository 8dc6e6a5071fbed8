package forest

import "github.com/coppice-ldl/coppice/internal/num"

// chooser draws the features that a node tries, without replacement: the start of
// the permutation of all features that belongs to (seed, tree, path).
type chooser struct {
	key   num.Key
	tree  uint32
	tried int
	all   bool
	drawn num.Permutation
	stamp []uint64 // by feature: the last draw that it was part of
	draw  uint64
	asked bool // has looks features up instead of marking those drawn
}

// begin prepares for a tree on q features.
func (c *chooser) begin(cfg *Config, tree uint32, q int) {
	c.tree, c.tried = tree, cfg.tried(q)
	c.all = c.tried == q
	if !c.all && len(c.stamp) != q {
		c.stamp = make([]uint64, q)
	}
}

// choose draws the features of a node; it will be asked for at most asks of them.
func (c *chooser) choose(path uint64, asks int) {
	if c.all {
		return
	}
	c.drawn = num.NewPermutation(c.key, path, c.tree, uint64(len(c.stamp)))
	if c.asked = asks < c.tried; c.asked {
		return
	}
	c.draw++
	for i := range c.tried {
		c.stamp[c.drawn.At(uint64(i))] = c.draw
	}
}

// has reports whether the node tries a feature.
func (c *chooser) has(feature uint32) bool {
	switch {
	case c.all:
		return true
	case c.asked:
		return c.drawn.Inverse(uint64(feature)) < uint64(c.tried)
	}
	return c.stamp[feature] == c.draw
}
