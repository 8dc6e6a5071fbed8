package forest

import "github.com/coppice-ldl/coppice/internal/num"

// chooser draws the features that a node tries, without replacement, from the
// stream of (seed, tree, path).
type chooser struct {
	key   num.Key
	tree  uint32
	tried int
	all   bool
	order []uint32 // 0, 1, 2, ... between draws
	swaps []uint32
	stamp []uint64 // by feature: the last draw that it was part of
	draw  uint64
}

// begin prepares for a tree on q features.
func (c *chooser) begin(cfg *Config, tree uint32, q int) {
	c.tree, c.tried = tree, cfg.tried(q)
	c.all = c.tried == q
	if c.all || len(c.order) == q {
		return
	}
	c.order, c.stamp, c.swaps = make([]uint32, q), make([]uint64, q), make([]uint32, c.tried)
	for i := range c.order {
		c.order[i] = uint32(i)
	}
}

// choose draws the features of a node: the start of a Fisher-Yates shuffle, which
// is undone so that a draw does not depend on the ones before it.
func (c *chooser) choose(path uint64) {
	if c.all {
		return
	}
	c.draw++
	s := num.NewStream(c.key, path, c.tree)
	for i := range c.swaps {
		j := i + int(s.Uint64n(uint64(len(c.order)-i)))
		c.swaps[i] = uint32(j)
		c.order[i], c.order[j] = c.order[j], c.order[i]
		c.stamp[c.order[i]] = c.draw
	}
	for i := len(c.swaps) - 1; i >= 0; i-- {
		j := c.swaps[i]
		c.order[i], c.order[j] = c.order[j], c.order[i]
	}
}

// has reports whether the node tries a feature.
func (c *chooser) has(feature uint32) bool { return c.all || c.stamp[feature] == c.draw }
