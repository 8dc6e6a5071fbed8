package enhance

import (
	"context"

	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Options says how Run computes. None of them changes the result.
type Options struct {
	Executors int                    // tasks that are computed at a time
	Progress  func(done, of float64) // if set, hears how much is done; concurrent calls are possible
}

// All returns the samples of a dataset for Run.
func All(m *dataset.Manifest, shards []*dataset.Rows) *dataset.Data {
	roles := make([]dataset.Roles, m.Rows)
	num.Fill(roles, dataset.Train)
	d := dataset.NewData(m, roles)
	for i, rows := range shards {
		d.SetShard(i, rows)
	}
	return d
}

// Labels returns the labels of the samples that All returned, by original row number, then by label.
func Labels(d *dataset.Data) []float32 {
	u := round.Task{Of: 1, Scope: round.Whole, Roles: Enhanced}
	return rows.Gather(u, d, &rows.Wanted{Labels: true}).D
}

// Run enhances all samples of a dataset in this process. It returns the distributions, and the logical labels, which are
// 0 or 1, both by original row number, then by label.
func Run(ctx context.Context, e *round.Enhance, d *dataset.Data, o Options) (enhanced []float32, logical []byte,
	err error) {
	if err := Check(e, d.Manifest); err != nil {
		return nil, nil, err
	}
	s, k := NewStage(e, d.Manifest), NewKernel(e, d.Manifest)
	x := engine.NewLocal(gatherer{k}, d, o.Executors, nil)
	if report := o.Progress; report != nil {
		k.Fitted = func(steps, of int) { report(float64(steps), float64(of)) }
	}
	observe := func(uint64, round.Trainer) error {
		if done, of := s.Passes(); of > 0 && o.Progress != nil {
			o.Progress(float64(done), float64(of))
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
	if a.stage.Done() {
		return nil, nil
	}
	a.stage.Next(&a.round)
	return &a.round, nil
}

// Fold implements round.Trainer.
func (a *alone) Fold(r *round.Result) error { return a.stage.Fold(r) }

// gatherer is the kernel of the stage alone.
type gatherer struct{ *Kernel }

// NewScratch implements round.Kernel.
func (gatherer) NewScratch() any { return nil }

// Gather implements round.GatherKernel.
func (g gatherer) Gather(ctx context.Context, u round.Task, d *dataset.Data, v round.Vars, _ any) ([]byte, error) {
	return g.Kernel.Gather(ctx, u, d, v)
}
