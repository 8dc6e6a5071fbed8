package ldlboost

import (
	"math/bits"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/dataset"
)

// memory estimates the memory of a trainer: all trees, once as they are and once while they
// are joined, encoded or decoded, the bins, and the histograms of the tree at work. The bins are made from values.
func memory(c *Config, m *dataset.Manifest) algorithms.Footprint {
	leaves := min(c.Leaves, max(1, m.Rows/max(1, c.LeafRows)))
	model := int64(c.Rounds)*int64(4+forest.TreeBytes(2*leaves-1, leaves*m.Labels)) + 8*int64(m.Labels+4)
	histogram := 8 * c.histogramAtMost(m)
	bins := histogram/int64(c.width(m.Labels, m.HasWeights)) + 16*int64(m.Features)
	growing := c.histogramsAtMost(m)*histogram + int64(2*leaves)*int64(8*c.width(m.Labels, m.HasWeights)+64)
	partial := 1 + max(histogram/8, min(chunkValues, c.histogramsAtMost(m)*histogram/8), 2*int64(m.Labels))
	return algorithms.Footprint{State: 2*model + bins + growing + 256, Model: model, Node: 8 * partial,
		Nodes: int64(len(m.Shards)), Working: max(histogram, binning.ValuesBytes(m))}
}

// kept estimates the memory of what a kernel keeps of all samples (see part).
func (c *Config) kept(m *dataset.Manifest) int64 {
	const places = 4 + 4 + 8 // in rows, spare and Refs
	words := int64(c.stride(m.Labels, m.HasWeights))
	return int64(m.Rows)*(places+8*(1+int64(m.Labels)+words)) + binning.CodesBytes(m)
}

// adding estimates the memory of the sums of a node while rows are added to them, and of the
// copies of these rows (see adder).
func (c *Config) adding(m *dataset.Manifest) int64 {
	width, words := int64(c.width(m.Labels, m.HasWeights)), int64(c.stride(m.Labels, m.HasWeights))
	return (c.histogramAtMost(m)/width)*(8*words+16) + min(int64(m.Rows), flushRows)*(8*words+int64(m.Features)+4)
}

// demand estimates the memory of a task that trains on the whole dataset, such as a fold: the trainer's, the kernel's,
// and the partials of a round.
func (c *Config) demand(m *dataset.Manifest) int64 {
	f := memory(c, m)
	return c.kept(m) + c.adding(m) + f.State + f.Working + f.Node*int64(1+bits.Len64(uint64(f.Nodes)))
}
