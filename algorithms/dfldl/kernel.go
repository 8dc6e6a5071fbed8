package dfldl

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/sabfgs"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

var (
	_ round.ReduceKernel   = (*kernel)(nil)
	_ round.GatherKernel   = (*kernel)(nil)
	_ round.MemoryReleaser = (*kernel)(nil)
	_ round.Demanding      = (*kernel)(nil)
)

// gateKernel is what the kernel of the gate implements.
type gateKernel interface {
	round.ReduceKernel
	round.GatherKernel
	round.MemoryReleaser
}

// kernel is the workers' half. It passes the rounds of the gate on to the gate's kernel.
type kernel struct {
	gateKernel
	job *learner.Job[Config]
	own *round.Job // of one model
}

func newKernel(j *learner.Job[Config]) (*kernel, error) {
	of, err := gateJob(j)
	if err != nil {
		return nil, err
	}
	gate, err := nearest.NewKernel(of, j.Manifest)
	if err != nil {
		return nil, err
	}
	side, err := j.Config.side(j.Manifest)
	if err != nil {
		return nil, err
	}
	own := *j.Job
	own.Algorithm, own.Params, own.Split.ValidationFraction = sabfgs.Name, side.Params, side.ValidationFraction
	return &kernel{gate.(gateKernel), j, &own}, nil
}

// Gather implements round.GatherKernel. A task of opPair trains one model.
func (k *kernel) Gather(ctx context.Context, u round.Task, d *dataset.Data, v round.Vars, working any) ([]byte, error) {
	if u.Op != opPair {
		return k.gateKernel.Gather(ctx, u, d, v, working)
	}
	c, m := k.job.Config, k.job.Manifest
	if u.ID < 0 || u.ID >= models(m.Labels) {
		return nil, fmt.Errorf("%s: model %d does not exist", Name, u.ID)
	}
	roles, err := c.roles(u, d, k.job.Job)
	if err != nil {
		return nil, err
	}
	own := dataset.NewData(m, roles)
	for i := range m.Shards {
		own.SetShard(i, d.Shard(i))
	}
	t, err := linear.NewTrainer(k.own, m, nil)
	if err != nil {
		return nil, err
	}
	side, err := linear.NewKernel(k.own, m)
	if err != nil {
		return nil, err
	}
	x := engine.NewLocal(side, own, 1, nil)
	defer x.ReleaseMemory()
	if err := engine.Drive(ctx, t, 0, x, func(uint64, round.Trainer) error { return nil }); err != nil {
		return nil, fmt.Errorf("model %d: %w", u.ID, err)
	}
	trained, err := t.Model()
	if err != nil {
		return nil, err
	}
	p := t.Progress()
	r := result{loss: p.Loss, iterations: p.Step, samples: p.Samples, weights: trained.(*maxent.Model).Weights}
	return r.encode(), nil
}

// Demand implements round.Demanding: a task has what a leader has in a job of package sabfgs, and its sums.
func (k *kernel) Demand() (bytes int64, what string) {
	m := k.job.Manifest
	f, err := linear.Footprint(k.own, m)
	if err != nil {
		return 0, ""
	}
	return f.State + f.Model + f.Node*f.Nodes, fmt.Sprintf("L-BFGS of a model of (%d features + 1) × %d labels",
		m.Features, m.Labels)
}

// validationMin is the least number of rows that early stopping validates on, if a model has twice as many.
const validationMin = 20

// roles returns the roles of all rows for the model of a task: training and validation rows are the training rows on
// its side, or all training rows if these are fewer than MinSamples. Rows of weight 0 are on no side. The seed and the
// task draw the validation rows. If the dataset has validation rows, the rows on the side validate, or all of them if
// none is on the side.
func (c *Config) roles(u round.Task, d *dataset.Data, j *round.Job) ([]dataset.Roles, error) {
	refs := d.WithWeight(u.Rows(d))
	if len(refs) == 0 {
		return nil, algorithms.Nothing(d.Manifest)
	}
	a, b, less := pairOf(u.ID, d.Manifest.Labels)
	roles := slices.Repeat([]dataset.Roles{dataset.Outside}, d.Manifest.Rows)
	take := func(refs []dataset.RowRef, role dataset.Roles, all bool) (count int) {
		for _, ref := range refs {
			shard, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
			if label := shard.Label(pos); all || (label[a] < label[b]) == less {
				roles[shard.Row[pos]] = role
				count++
			}
		}
		return count
	}
	if take(refs, dataset.Train, false) < c.MinSamples {
		take(refs, dataset.Train, true)
	}
	if c.ValidationFraction <= 0 {
		return roles, nil
	}
	if j.Split.ValidationFrom > 0 {
		u.Roles = dataset.Validation
		if own := d.WithWeight(u.Rows(d)); take(own, dataset.Validation, false) == 0 {
			take(own, dataset.Validation, true)
		}
		return roles, nil
	}
	var rows []int // in ascending order, whatever the shards are
	for row, role := range roles {
		if role == dataset.Train {
			rows = append(rows, row)
		}
	}
	n := max(validationMin, int(math.Floor(c.ValidationFraction*float64(len(rows)))))
	for _, row := range dataset.Draw(num.NewKey(j.Seed, Name+"/validation"), uint64(u.ID), rows, d.Groups, n) {
		roles[row] = dataset.Validation
	}
	return roles, nil
}
