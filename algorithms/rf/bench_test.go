package rf_test

import (
	"context"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/rf"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// BenchmarkGrow grows 50 trees of min_samples 2 on one lane.
func BenchmarkGrow(b *testing.B) {
	for _, name := range []string{"Yeast_alpha", "Movie", "SJAFFE"} {
		b.Run(name, func(b *testing.B) {
			m, shards := datatest.Shared(b, name+".mat")
			d := datatest.Data(b, m, shards, dataset.Split{}, nil)
			r, err := rf.New().Resolve(param.Values{"trees": int64(50), "min_samples": int64(2)}, m)
			if err != nil {
				b.Fatal(err)
			}
			j := &round.Job{Algorithm: rf.Name, Numerics: round.Numerics, Seed: 1, Params: r.Params}
			for b.Loop() {
				k, err := rf.New().NewKernel(j, m)
				if err != nil {
					b.Fatal(err)
				}
				tr, err := rf.New().NewTrainer(j, m, nil)
				if err != nil {
					b.Fatal(err)
				}
				none := func(uint64, round.Trainer) error { return nil }
				if err := engine.Drive(context.Background(), tr, 0, engine.NewLocal(k, d, 1, nil), none); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
