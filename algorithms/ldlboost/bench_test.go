package ldlboost

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// BenchmarkTrees trains three trees of depth 6 on 100,000 samples of 100 dense features and 20 labels.
func BenchmarkTrees(b *testing.B) {
	p := &problem{rows: 100_000, features: 100, labels: 20}
	p.x, p.d = make([]float32, p.rows*p.features), make([]float32, p.rows*p.labels)
	s := num.NewStream(num.NewKey(1, "bench"), 0, 0)
	for i := range p.x {
		p.x[i] = float32(s.Normal())
	}
	for i := range p.rows {
		sum := float32(0)
		for c := range p.label(i) {
			p.label(i)[c] = float32(s.Float64()) + max(0, p.row(i)[c])
			sum += p.label(i)[c]
		}
		for c := range p.label(i) {
			p.label(i)[c] /= sum
		}
	}
	for _, hessian := range []string{hessianDiagonal, hessianBound} {
		b.Run(hessian, func(b *testing.B) {
			set := param.Values{"rounds": int64(3), "validation_fraction": 0.0, "hessian": hessian, "bins": int64(255),
				"feature_fraction": 1.0}
			d := p.data(16, false, dataset.Split{})
			d.Manifest.NonZeros = int64(p.rows * p.features)
			j := jobOf(b, d.Manifest, set, dataset.Split{})
			for b.Loop() {
				train(b, j, d, 1)
			}
		})
	}
}
