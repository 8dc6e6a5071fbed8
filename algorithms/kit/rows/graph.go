package rows

import (
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/dataset"
)

// mostDense bounds the features of kept rows in a graph, where they are dense: 1 GiB.
const mostDense = 1 << 28

// SquaresGraph returns the squared distances between samples and kept rows (float64, samples×rows), with the bits that
// Distances has: the squares are added one by one, over ascending columns.
func SquaresGraph(b *graph.Builder, x graph.Value, r *dataset.Rows, scale []float64) (graph.Value, error) {
	if int64(r.N)*int64(r.Features) > mostDense {
		return "", graph.None("the features of its %d kept samples would need %d MiB", r.N,
			int64(r.N)*int64(r.Features)>>18)
	}
	kept := make([]float32, r.N*r.Features) // features×rows
	for i := range r.N {
		if r.Sparse {
			columns, values := r.NonZeros(i)
			for k, c := range columns {
				kept[int(c)*r.N+i] = values[k]
			}
			continue
		}
		for c, v := range r.Dense(i) {
			kept[c*r.N+i] = v
		}
	}
	x, y := b.Cast(x, graph.Float64), b.Cast(b.F32(kept, r.Features, r.N), graph.Float64)
	if scale != nil {
		x = b.Op("Mul", x, b.F64(scale, r.Features))
		y = b.Op("Mul", y, b.F64(slices.Clone(scale), r.Features, 1))
	}
	columns := b.Unsqueeze(b.Transpose(x, 1, 0), 2)
	return b.Scan(graph.Repeat(b, b.Number(0), x, r.N), func(b *graph.Builder, sums graph.Value,
		of []graph.Value) graph.Value {
		by := b.Op("Sub", of[0], of[1])
		return b.Op("Add", sums, b.Op("Mul", by, by))
	}, columns, y), nil
}

// GaussianGraph returns exp(-d/width) of squared distances d.
func GaussianGraph(b *graph.Builder, squares graph.Value, width float64) graph.Value {
	return b.Op("Exp", b.Op("Div", b.Op("Neg", squares), b.Number(width)))
}
