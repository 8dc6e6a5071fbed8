package forest

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
)

// memory estimates the memory of a trainer. A node is split while min_samples or more
// reach it, so a tree has about 2·draws/min_samples leaves, at most one for each draw
// and 2^max_depth. The state is all trees, encoded and decoded; nothing is reduced.
func memory(c *Config, m *dataset.Manifest) algorithms.Footprint {
	draws := int64(max(1, c.draws(m.Rows)))
	leaves := min(draws, max(1, 2*draws/int64(max(1, c.MinSamples))), int64(1)<<c.MaxDepth)
	tree := treeHead + 2*leaves*nodeSize + 4*leaves*int64(m.Labels)
	model := int64(c.Trees) * tree
	return algorithms.Footprint{State: 2 * model, Model: model}
}
