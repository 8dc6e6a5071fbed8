package boost

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
)

// Graph implements graph.Model.
func (m *model) Graph(b *graph.Builder, x graph.Value) (graph.Value, error) {
	sums := b.Cast(m.JoinGraph(b, x, forest.Sum), graph.Float64)
	centred := b.Op("Sub", sums, b.Mean(sums, 1))
	f := b.Op("Add", b.F64(m.Start, len(m.Start)), b.Op("Mul", b.Number(m.Factor), centred))
	return b.Cast(b.Softmax(f), graph.Float32), nil
}
