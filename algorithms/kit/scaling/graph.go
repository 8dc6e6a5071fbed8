package scaling

import "github.com/coppice-ldl/coppice/algorithms/kit/graph"

// Graph returns the scaled features of samples (float32).
func (x *Values) Graph(b *graph.Builder, samples graph.Value) graph.Value {
	if x.None() {
		return samples
	}
	n := len(x.Shift)
	shifted := b.Op("Sub", b.Cast(samples, graph.Float64), b.F64(x.Shift, n))
	return b.Cast(b.Op("Mul", shifted, b.F64(x.Scale, n)), graph.Float32)
}
