package structrf_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/pipeline"
	"github.com/coppice-ldl/coppice/dataset"
)

var full = algorithms.Values{"min_samples": int64(2)}

// BenchmarkGrow grows 50 trees on one lane, the sorting of the columns included.
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
		b.Run(name+"/min_samples=20", func(b *testing.B) { benchmarkGrow(b, name, nil) })
		for _, features := range []string{"sqrt", "0.33"} {
			b.Run(name+"/features="+features, func(b *testing.B) {
				benchmarkGrow(b, name, algorithms.Values{"min_samples": int64(2), "features": features})
			})
		}
		b.Run(name+"/step=adaptive", func(b *testing.B) {
			benchmarkGrow(b, name, algorithms.Values{"min_samples": int64(2), "step": "adaptive"})
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

func benchmarkGrow(b *testing.B, name string, set algorithms.Values) {
	m, shards := load(b, name)
	d := dataOf(b, m, shards)
	j := jobOf(b, m, set)
	var tr algorithms.Trainer
	b.ReportAllocs()
	start := userTime(b)
	for b.Loop() {
		tr = grow(b, j, m, d)
	}
	b.ReportMetric((userTime(b)-start).Seconds()/float64(b.N), "user-s/op")
	evaluations := tr.(pipeline.Counter).Counters()["gain_evaluations"]
	b.ReportMetric(float64(evaluations), "evaluations")
}

// BenchmarkPredictMovie predicts all 7,755 rows by 50 trees on one core; the target
// is 60 ms.
func BenchmarkPredictMovie(b *testing.B) {
	for _, c := range []struct {
		name string
		set  algorithms.Values
	}{{"min_samples=20", nil}, {"min_samples=2", full}} {
		b.Run(c.name, func(b *testing.B) {
			m, shards := load(b, "Movie")
			d := dataOf(b, m, shards)
			model, err := grow(b, jobOf(b, m, c.set), m, d).Model()
			if err != nil {
				b.Fatal(err)
			}
			refs := d.Select(0, len(m.Shards), dataset.AllRows)
			shard := func(i uint32) *dataset.Rows { return d.Shard(int(i)) }
			dst, scratch := make([]float32, len(refs)*m.Labels), model.NewScratch()
			start := userTime(b)
			for b.Loop() {
				model.Predict(dst, refs, shard, scratch)
			}
			b.ReportMetric((userTime(b)-start).Seconds()*1e3/float64(b.N), "user-ms/op")
		})
	}
}
