package bench

import (
	"context"
	"strconv"

	"github.com/coppice-ldl/coppice/protocol"
)

// Forest measures StructRF with preset paper and so many trees: workers of one slot
// against one lane here.
func (b *Bench) Forest(ctx context.Context, trees int) (*Pair, error) {
	return b.measure(ctx, protocol.Spec{
		Algorithm: "structrf", Dataset: b.Dataset, Set: map[string]string{"preset": "paper", "trees": strconv.Itoa(trees)},
	}, nil)
}
