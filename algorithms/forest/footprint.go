package forest

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/round"
)

// The bytes of an encoded tree beside its leaves' distributions (FORMAT.md).
const (
	treeHeadBytes = 29
	nodeBytes     = 28
)

// Footprint implements algorithms.Algorithm. A node is split while min_samples or more
// reach it, so a tree has about 2·draws/min_samples leaves, at most one for each draw
// and 2^max_depth. The state is all trees, encoded and decoded; nothing is reduced.
func (algorithm) Footprint(j *round.Job, m *dataset.Manifest) (algorithms.Footprint, error) {
	c, err := parseConfig(j.Params)
	if err != nil {
		return algorithms.Footprint{}, err
	}
	draws := int64(max(1, c.draws(m.Rows)))
	leaves := min(draws, max(1, 2*draws/int64(max(1, c.MinSamples))), int64(1)<<c.MaxDepth)
	tree := treeHeadBytes + 2*leaves*nodeBytes + 4*leaves*int64(m.Labels)
	model := int64(c.Trees) * tree
	return algorithms.Footprint{State: 2 * model, Model: model}, nil
}
