package quadratic

import (
	"context"
	"fmt"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// opFit fits the model to the training rows of the whole dataset.
const opFit uint8 = 1

var _ round.GatherKernel = (*kernel)(nil)

// kernel fits the model.
type kernel struct {
	cfg      Config
	features int
}

// NewScratch implements round.Kernel: a fit is one unit, with memory of its own.
func (k *kernel) NewScratch() any { return nil }

// Gather implements round.GatherKernel: the numbers of the fit.
func (k *kernel) Gather(_ context.Context, u round.Task, d *dataset.Data, _ round.Vars, _ any) ([]byte, error) {
	if u.Op != opFit {
		return nil, fmt.Errorf("quadratic: the task has the unknown operation %d", u.Op)
	}
	refs := d.WithWeight(u.Rows(d))
	if len(refs) == 0 {
		return nil, nil
	}
	x, y, weights := linalg.New(k.features, len(refs)), make([]float64, len(refs)), make([]float64, len(refs))
	row := make([]float32, k.features)
	for i, ref := range refs {
		rows, at := d.Shard(int(ref.Shard)), int(ref.Pos)
		y[i], weights[i] = k.cfg.Scale.Number(rows, at), rows.WeightOf(at)
		for j, v := range features(row, rows, at) {
			x.Set(j, i, float64(v))
		}
	}
	fit, err := least(x, y, weights, k.cfg.Ridge)
	if err != nil {
		return nil, fmt.Errorf("quadratic: %w", err)
	}
	return num.Bytes64(fit), nil
}

// features returns the features of row i, in room if the row is sparse.
func features(room []float32, r *dataset.Rows, i int) []float32 {
	if !r.Sparse {
		return r.Dense(i)
	}
	clear(room)
	columns, values := r.NonZeros(i)
	for k, c := range columns {
		room[c] = values[k]
	}
	return room
}
