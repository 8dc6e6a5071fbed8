package ldlboost

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// benchProblem draws dense features and degrees. Some degrees depend on a feature. Of sparse features, one in so many
// values is not 0.
func benchProblem(rows, features, labels int, oneIn uint64) *problem {
	p := &problem{rows: rows, features: features, labels: labels, x: make([]float32, rows*features),
		d: make([]float32, rows*labels)}
	s := num.NewStream(num.NewKey(1, "bench"), 0, 0)
	for i := range p.x {
		if x := float32(s.Normal()); oneIn == 1 || s.Uint64n(oneIn) == 0 {
			p.x[i] = x
		}
	}
	for i := range rows {
		sum := float32(0)
		for c := range p.label(i) {
			p.label(i)[c] = float32(s.Float64()) + max(0, p.row(i)[c])
			sum += p.label(i)[c]
		}
		for c := range p.label(i) {
			p.label(i)[c] /= sum
		}
	}
	return p
}

// BenchmarkTrees trains three trees of depth 6 on 100,000 samples of 100 dense features and 20 labels.
func BenchmarkTrees(b *testing.B) {
	p := benchProblem(100_000, 100, 20, 1)
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

// BenchmarkPredict predicts samples of 100 features by 100 trees of 64 leaves, on one lane.
func BenchmarkPredict(b *testing.B) {
	for _, c := range []struct {
		name   string
		labels int
		oneIn  uint64
	}{{"labels=20", 20, 1}, {"labels=2", 2, 1}, {"labels=20,sparse", 20, 50}} {
		b.Run(c.name, func(b *testing.B) {
			p := benchProblem(8192, 100, c.labels, c.oneIn)
			d := p.data(2, c.oneIn > 1, dataset.Split{})
			set := param.Values{"rounds": int64(100), "validation_fraction": 0.0, "leaf_rows": int64(2), "l2": 1.0}
			m := model(b, train(b, jobOf(b, d.Manifest, set, dataset.Split{}), d, 1))
			refs := (&round.Task{Of: 1, Roles: dataset.Train}).Rows(d)
			shard := func(i uint32) *dataset.Rows { return d.Shard(int(i)) }
			dst, scratch := make([]float32, p.rows*p.labels), m.NewScratch()
			for b.Loop() {
				m.Predict(dst, refs, shard, scratch)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*p.rows*100), "ns/row/tree")
		})
	}
}
