package structrf_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// paper and full have 50 trees.
var (
	paper = param.Values{"preset": "paper"}
	full  = param.Values{"preset": "paper", "min_samples": int64(2)}
)

// BenchmarkGrow grows 50 trees on one slot, the sorting of the columns included.
// The targets: Yeast_alpha 0.8 s, Movie 2 s, SJAFFE 0.25 s.
func BenchmarkGrow(b *testing.B) {
	for _, name := range []string{"Yeast_alpha", "Movie", "SJAFFE"} {
		b.Run(name, func(b *testing.B) {
			benchmarkGrow(b, name, full)
		})
	}
}

// BenchmarkGrowOptions shows what subsampled features and adaptive steps save.
func BenchmarkGrowOptions(b *testing.B) {
	for _, name := range []string{"Yeast_alpha", "Movie", "SJAFFE"} {
		b.Run(name+"/min_samples=20", func(b *testing.B) { benchmarkGrow(b, name, paper) })
		for _, features := range []string{"sqrt", "0.33"} {
			b.Run(name+"/features="+features, func(b *testing.B) {
				benchmarkGrow(b, name, param.Values{"preset": "paper", "min_samples": int64(2), "features": features})
			})
		}
		b.Run(name+"/step=adaptive", func(b *testing.B) {
			benchmarkGrow(b, name, param.Values{"preset": "paper", "min_samples": int64(2), "step": "adaptive"})
		})
	}
}

// userTime is the processor time that the process has used, without the system's.
func userTime(t testing.TB) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano())
}

func benchmarkGrow(b *testing.B, name string, set param.Values) {
	m, shards := source(b, name)
	d := datatest.Data(b, m, shards, dataset.Split{}, nil)
	j := jobOf(b, m, set)
	var tr algorithms.Trainer
	b.ReportAllocs()
	start := userTime(b)
	for b.Loop() {
		tr = grow(b, j, m, d)
	}
	b.ReportMetric((userTime(b)-start).Seconds()/float64(b.N), "user-s/op")
	evaluations := tr.Counters()["gain_evaluations"]
	b.ReportMetric(float64(evaluations), "evaluations")
}

// BenchmarkGrowPeers grows what scikit-learn's RandomForestRegressor is compared on: 50
// trees of min_samples 5, on one slot.
func BenchmarkGrowPeers(b *testing.B) {
	for _, name := range []string{"Yeast_alpha", "SJAFFE", "Movie", "dense"} {
		b.Run(name, func(b *testing.B) {
			benchmarkGrow(b, name, param.Values{"preset": "paper", "min_samples": int64(5)})
		})
	}
}

// source reads a dataset of the shared folder, or generates 2,500 dense rows.
func source(t testing.TB, name string) (*dataset.Manifest, []*dataset.Rows) {
	t.Helper()
	if name != "dense" {
		return datatest.Shared(t, name+".mat")
	}
	src, err := generate.New(generate.Options{Rows: 2500, Features: 243, Labels: 6, Density: 1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	m, shards := datatest.Build(t, src)
	return m, shards
}

// predicting is a forest on Movie and what its prediction needs.
type predicting struct {
	model   algorithms.Model
	refs    []dataset.RowRef
	shard   func(uint32) *dataset.Rows
	dst     []float32
	scratch any
	trees   int
}

func predictingMovie(b *testing.B, set param.Values) *predicting {
	m, shards := datatest.Shared(b, "Movie.mat")
	d := datatest.Data(b, m, shards, dataset.Split{}, nil)
	model, err := grow(b, jobOf(b, m, set), m, d).Model()
	if err != nil {
		b.Fatal(err)
	}
	refs := d.Select(0, len(m.Shards), dataset.AllRows)
	return &predicting{
		model: model, refs: refs, shard: func(i uint32) *dataset.Rows { return d.Shard(int(i)) },
		dst: make([]float32, len(refs)*m.Labels), scratch: model.NewScratch(), trees: 50,
	}
}

// BenchmarkPredictMovie predicts all 7,755 rows by 50 trees on one core.
func BenchmarkPredictMovie(b *testing.B) {
	for _, c := range []struct {
		name string
		set  param.Values
	}{
		{"min_samples=20", paper}, {"min_samples=2", full},
		{"leaves=64", param.Values{"preset": "paper", "max_depth": int64(6)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := predictingMovie(b, c.set)
			start := userTime(b)
			for b.Loop() {
				p.model.Predict(p.dst, p.refs, p.shard, p.scratch)
			}
			used := (userTime(b) - start).Seconds() / float64(b.N)
			b.ReportMetric(used*1e3, "user-ms/op")
			b.ReportMetric(used*1e9/float64(len(p.refs)*p.trees), "ns/row/tree")
		})
	}
}

// BenchmarkPredictRow predicts Movie's rows one at a time by 50 trees.
func BenchmarkPredictRow(b *testing.B) {
	for _, c := range []struct {
		name string
		set  param.Values
	}{{"min_samples=20", paper}, {"min_samples=2", full}} {
		b.Run(c.name, func(b *testing.B) {
			p := predictingMovie(b, c.set)
			width := len(p.dst) / len(p.refs)
			start := userTime(b)
			for b.Loop() {
				for i := range p.refs {
					p.model.Predict(p.dst[i*width:(i+1)*width], p.refs[i:i+1], p.shard, p.scratch)
				}
			}
			b.ReportMetric((userTime(b)-start).Seconds()*1e6/float64(b.N*len(p.refs)), "user-µs/row")
		})
	}
}
