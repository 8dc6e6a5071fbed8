package boost_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// userTime is the processor time that the process has used, without the system's.
func userTime(t testing.TB) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano())
}

// BenchmarkRounds trains for 50 rounds on one lane, the sorting of the columns included.
func BenchmarkRounds(b *testing.B) {
	for _, name := range []string{"Movie", "SJAFFE", "Yeast_spo5", "Yeast_alpha"} {
		for _, a := range both {
			b.Run(name+"/"+a.Name(), func(b *testing.B) {
				m, shards := datatest.Shared(b, name+".mat")
				j := jobOf(b, a, m, param.Values{"rounds": int64(50)}, dataset.Split{Seed: 1, TestFraction: 0.1})
				d := datatest.Data(b, m, shards, j.Split, nil)
				b.ReportAllocs()
				start := userTime(b)
				for b.Loop() {
					train(b, a, j, d, 1)
				}
				b.ReportMetric((userTime(b)-start).Seconds()/float64(b.N), "user-s/op")
			})
		}
	}
}
