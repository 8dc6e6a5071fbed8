package boost

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/dataset"
)

// memory estimates the memory of a trainer: all trees, once as they are and once while they
// are joined, encoded or decoded.
func memory(v *Variant, c *Config, m *dataset.Manifest) algorithms.Footprint {
	leaves := min(c.Leaves, max(1, m.Rows/max(1, c.LeafRows)))
	trees := int64(c.Rounds) * int64(v.trees(m.Labels))
	model := trees*int64(4+forest.TreeBytes(2*leaves-1, leaves*v.width(m.Labels))) + 8*int64(m.Labels+4)
	return algorithms.Footprint{State: 2*model + 64, Model: model, Node: 8 * int64(2+m.Labels), Nodes: int64(len(m.Shards))}
}
