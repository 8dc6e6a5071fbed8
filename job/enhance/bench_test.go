package enhance

import (
	"context"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// BenchmarkRun enhances Yeast_spo5, which has 2,465 samples with 24 features, on one executor.
func BenchmarkRun(b *testing.B) {
	m, shards := datatest.Shared(b, "Yeast_spo5.mat")
	for _, method := range []string{LabelPropagation, KernelDistance} {
		b.Run(method, func(b *testing.B) {
			for b.Loop() {
				var d *dataset.Data = AllOf(m, shards)
				if _, _, err := Run(context.Background(), of(method, Softmax), d, 1, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
