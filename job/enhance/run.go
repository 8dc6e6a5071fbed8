package enhance

import (
	"context"

	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// AllOf returns the samples of a dataset for Run.
func AllOf(m *dataset.Manifest, shards []*dataset.Rows) *dataset.Data {
	roles := make([]dataset.Roles, m.Rows)
	num.Fill(roles, dataset.Train)
	d := dataset.NewData(m, roles)
	for i, rows := range shards {
		d.SetShard(i, rows)
	}
	return d
}

// LabelsOf returns the labels of the samples that AllOf returned, by original row number, then by label.
func LabelsOf(d *dataset.Data) []float32 {
	u := round.Task{Of: 1, Scope: round.Whole, Roles: dataset.Train}
	return rows.Gather(u, d, &rows.Wanted{Labels: true}).D
}

// Run enhances all samples of a dataset in this process, with so many tasks at a time. It returns the distributions,
// and the logical labels, which are 0 or 1, both by original row number, then by label. progress, if set, hears how
// much is done.
func Run(ctx context.Context, e *round.Enhance, d *dataset.Data, executors int, progress func(done, of int)) (
	enhanced []float32, logical []byte, err error) {
	if err := Check(e, d.Manifest); err != nil {
		return nil, nil, err
	}
	s, k := NewStage(e, d.Manifest, dataset.Train), NewKernel(e, d.Manifest, dataset.Train)
	x := engine.NewLocal(k, d, executors, nil)
	k.Fitted = progress
	observe := func(uint64, round.Trainer) error {
		if done, of := s.Passes(); of > 0 && progress != nil {
			progress(done, of)
		}
		return nil
	}
	if err := engine.Drive(ctx, &alone{stage: s}, 0, x, observe); err != nil {
		return nil, nil, err
	}
	return s.enhanced, s.logical, nil
}

// alone is a trainer without an algorithm.
type alone struct {
	round.Trainer
	stage *Stage
	round round.Round
}

// Next implements round.Trainer.
func (a *alone) Next() (*round.Round, error) {
	if a.stage.Ended() {
		return nil, nil
	}
	a.stage.Next(&a.round)
	return &a.round, nil
}

// Fold implements round.Trainer.
func (a *alone) Fold(r *round.Result) error { return a.stage.Fold(r) }
