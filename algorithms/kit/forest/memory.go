package forest

import (
	"math/bits"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/dataset"
)

// memory estimates the memory of a trainer. A node is split while min_samples or more
// reach it, so a tree has about 2·draws/min_samples leaves, at most one for each draw
// and 2^max_depth. The state is all trees, encoded and decoded; nothing is reduced.
func memory(c *Config, m *dataset.Manifest) algorithms.Footprint {
	leaves := c.leavesAtMost(m)
	tree := treeHead + 2*leaves*nodeSize + 4*leaves*int64(m.Labels)
	model := int64(c.Trees) * tree
	return algorithms.Footprint{State: 2 * model, Model: model}
}

// leavesAtMost estimates the greatest number of leaves of a tree.
func (c *Config) leavesAtMost(m *dataset.Manifest) int64 {
	draws := int64(max(1, c.draws(m.Rows)))
	return min(draws, max(1, 2*draws/int64(max(1, c.MinSamples))), int64(1)<<c.MaxDepth)
}

// roundNumbers is how many numbers a round of counts asks for, about: fewer if many shards may each send them.
func roundNumbers(m *dataset.Manifest) int {
	return min(usualLimits.numbers, (1<<27)/max(1, len(m.Shards)))
}

// workBytes estimates the memory of a tree at work.
func workBytes(c *Config, m *dataset.Manifest, classes int) int64 {
	return 2*c.leavesAtMost(m)*int64(96+16*classes) + int64(8*classes+256)
}

// treesAtWork returns how many trees grow at the same time: at least one, and fewer than usual if these would take more
// than a gigabyte. Workers keep the node of each row for each of them.
func treesAtWork(c *Config, m *dataset.Manifest, classes int) int {
	return min(c.Trees, usualLimits.trees, int(max(1, (1<<30)/workBytes(c, m, classes))))
}

// countedMemory estimates the memory of a trainer that grows trees by histograms.
func countedMemory(c *Config, m *dataset.Manifest, classes int) algorithms.Footprint {
	f := memory(c, m)
	size := c.countsAtMost(m, classes)
	trees := int64(treesAtWork(c, m, classes))
	nodes := 2 * c.leavesAtMost(m) * trees
	work := trees * workBytes(c, m, classes)
	held := min(nodes+1, int64(usualLimits.held)/size+1) * size
	partial := max(size, min(int64(roundNumbers(m)), nodes*size))
	bins := 16*binning.AtMost(m, c.Bins) + 32*int64(m.Features)
	rows := min(usualLimits.bytes, trees*(rowHead*int64(m.Rows)+binning.CodesBytes(m))) // of a round of small nodes
	return algorithms.Footprint{State: f.State + 2*work + 8*held + bins + 64, Model: f.Model, Node: 8 * partial,
		Nodes:   int64(len(m.Shards)),
		Working: max(binning.ValuesBytes(m), 4*rows+4*int64(binning.Most)*int64(classes))}
}

// countedKept estimates the memory of what a kernel keeps of all samples: their bins, classes, numbers, and of each
// tree at work their copies and rows.
func countedKept(c *Config, m *dataset.Manifest, classes int) int64 {
	trees := int64(treesAtWork(c, m, classes))
	return binning.CodesBytes(m) + int64(m.Rows)*(8+8+5*trees)
}

// countedDemand estimates the memory of a task that trains on the whole dataset, such as a fold: the trainer's, the
// kernel's, and the partials of a round.
func countedDemand(c *Config, m *dataset.Manifest, classes int) int64 {
	f := countedMemory(c, m, classes)
	return countedKept(c, m, classes) + 4*int64(m.Rows) + f.State + f.Working + f.Node*int64(1+bits.Len64(uint64(f.Nodes)))
}
