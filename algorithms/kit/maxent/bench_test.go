package maxent

import (
	"fmt"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// BenchmarkEvaluation is an evaluation of sparse rows with the shape of the dataset Movie, and of dense rows with the
// shapes of SJAFFE and of a large dataset.
func BenchmarkEvaluation(b *testing.B) {
	for _, o := range []generate.Options{
		{Rows: 7755, Features: 1869, Labels: 5, Density: 0.0115, Seed: 1},
		{Rows: 213, Features: 243, Labels: 6, Density: 1, Seed: 1},
		{Rows: 475000, Features: 50, Labels: 10, Density: 1, Seed: 1},
	} {
		b.Run(fmt.Sprintf("rows=%d,features=%d,labels=%d", o.Rows, o.Features, o.Labels), func(b *testing.B) {
			src, err := generate.New(o)
			if err != nil {
				b.Fatal(err)
			}
			m, shards := datatest.Build(b, src)
			d := datatest.Data(b, m, shards, dataset.Split{Seed: 5}, nil)
			k := &Kernel{Features: m.Features, Labels: m.Labels}
			s := k.NewScratch(nil)
			u := round.Task{Of: 1, Op: fullbatch.OpEvaluate, Roles: dataset.Train}
			derived := k.Derive(u, d, s)
			var part round.Partial
			part.Reset(round.Shape{F64: fullbatch.SumsAt + Evaluation(m.Features, m.Labels)})
			vars := round.Vars{{ID: varWeights, Data: num.Bytes64(make([]float64, Evaluation(m.Features, m.Labels)))}}
			for b.Loop() {
				k.Run(&part, &u, d, vars, derived, s)
			}
		})
	}
}
