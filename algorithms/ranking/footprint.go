package ranking

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
)

// memory estimates the memory of a trainer.
func memory(c *Config, m *dataset.Manifest) algorithms.Footprint {
	encoded, tensors := rows.Bytes(m, &rows.Wanted{Most: c.Landmarks})
	marks, n := int64(m.Rows), int64(c.Kernels)
	if c.Landmarks > 0 {
		marks = min(marks, int64(c.Landmarks))
	}
	numbers := 3*(marks+n) + int64(mostTrace(c)) + int64(m.Features)
	f := algorithms.Footprint{State: encoded + 8*numbers + 128, Model: tensors + 8*(marks+2*n+int64(mostTrace(c))) + 128}
	if c.Landmarks > 0 {
		gram, weights := marks*(marks+1)/2, n*(n+1)/2 // a factor's numbers
		f.State += 8 * max(gram, weights)
		f.Node = 8 * max(1+marks+gram, 1+int64(m.Features), 1+n+weights)
		f.Nodes = int64(units(c, m))
	}
	if c.Scaling != scaling.None {
		f.State += 16*int64(m.Features) + 17
		f.Model += 16*int64(m.Features) + 4
		scales, nodes := int64(8*scaling.MostSums(c.Scaling, m)), int64(len(m.Shards))
		most := max(f.Node*f.Nodes, scales*nodes)
		f.Node = max(f.Node, scales)
		f.Nodes = (most + f.Node - 1) / f.Node
	}
	return f
}
