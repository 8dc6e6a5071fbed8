package aaknn

import (
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// A unit of opLeftOut takes about sliceRows training rows; there are at most mostSlices.
const (
	sliceRows  = 64
	mostSlices = 1024
)

// mostLoss is greater than any K-L: degrees below 1e-12 count as 1e-12.
const mostLoss = 1e3

// stateBytes is the size of a state without its rows and scaling: version, k, loss.
const stateBytes = 1 + 8 + 8

// trainer implements learner.Trainer: scaling, the rows, and with k auto the round that chooses.
type trainer struct {
	learner.Base
	job   *learner.Job[Config]
	fit   *scaling.Fit
	kept  *dataset.Rows // nil: not collected yet
	k     uint64        // 0: not chosen yet
	loss  float64       // of the training rows under the chosen k, each left out; -1: unknown
	round round.Round
}

func newTrainer(j *learner.Job[Config]) *trainer {
	return &trainer{job: j, fit: scaling.NewFit(j.Config.Scaling, j.Manifest), loss: -1}
}

// Start implements learner.Trainer.
func (t *trainer) Start() { t.fit.Begin() }

// State implements learner.Trainer.
func (t *trainer) State(l *fields.List) {
	t.fit.State(l)
	rows.Field(l, &t.kept, t.job.Manifest, &wanted)
	l.Uint64(&t.k)
	l.Float64(&t.loss)
	l.Check(t.kept == nil || t.fit.Done(), "the saved state has samples, although the features are not scaled yet")
	n := 0
	if t.kept != nil {
		n = t.kept.N
	}
	l.Check(t.k <= uint64(n), "the saved state has %d neighbours, more than its %d samples", t.k, n)
	l.Check(t.loss == -1 || t.k > 0 && t.loss >= 0 && t.loss < mostLoss,
		"the saved state has a loss of %v, which is not possible", t.loss)
	if l.Reading() && t.kept != nil {
		c := t.job.Config.neighbours()
		l.Check(c == 0 || t.k == uint64(c) && t.loss == -1, "the saved state has %d neighbours, want %d", t.k, c)
		l.Check(t.k > 0 || len(candidates(t.kept.N)) > 1, "the number of neighbours is missing in the saved state")
	}
}

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	r := &t.round
	*r = round.Round{Roles: dataset.Train}
	switch {
	case !t.fit.Done():
		t.fit.Next(r)
	case t.kept == nil:
		r.Op, r.Kind, r.How, r.Tasks = opRows, "rows", &round.Gather{}, len(t.job.Manifest.Shards)
	case t.k == 0:
		r.Op, r.Kind, r.How, r.Scope, r.Tasks = opLeftOut, "left out", &round.Gather{}, round.Whole, slicesOf(t.kept.N)
		r.Vars = t.fit.AppendVar(nil)
	default:
		return nil, nil
	}
	return r, nil
}

// slicesOf returns the number of units that so many rows are divided into.
func slicesOf(n int) int { return min(max(1, n/sliceRows), mostSlices) }

// Fold implements round.Trainer.
func (t *trainer) Fold(res *round.Result) error {
	switch {
	case !t.fit.Done():
		return t.fit.Fold(res.Sum.F64)
	case t.kept == nil:
		return t.foldRows(res)
	}
	return t.foldLeftOut(res)
}

// foldRows takes the rows. The number of neighbours is known then, unless several may be chosen.
func (t *trainer) foldRows(res *round.Result) error {
	kept, err := rows.Join(res.Gathered, t.job.Manifest, &wanted)
	if err != nil {
		return fmt.Errorf("%s: %w", t.job.Algorithm, err)
	}
	if err := t.job.Config.fitsRows(kept.N); err != nil {
		return fmt.Errorf("%s: %w", t.job.Algorithm, err)
	}
	t.kept, t.k = kept, uint64(t.job.Config.neighbours())
	if list := candidates(kept.N); t.k == 0 && len(list) == 1 {
		t.k = uint64(list[0])
	}
	return nil
}

// foldLeftOut chooses the number of neighbours with the least loss, the least of equal ones.
func (t *trainer) foldLeftOut(res *round.Result) error {
	list := candidates(t.kept.N)
	sums := make([]float64, len(list))
	for u, b := range res.Gathered {
		if len(b) != 8*len(list) {
			return fmt.Errorf("%s: the result of task %d has %d bytes, want %d losses",
				t.job.Algorithm, u, len(b), len(list))
		}
		num.Add64(sums, num.Float64s(b))
	}
	best := 0
	for i, sum := range sums {
		if !(sum >= -1 && sum < mostLoss*float64(t.kept.N)) {
			return fmt.Errorf("%s: with %d neighbours the losses sum to %v, which is not possible", t.job.Algorithm,
				list[i], sum)
		}
		if sum < sums[best] {
			best = i
		}
	}
	t.k, t.loss = uint64(list[best]), max(0, sums[best]/float64(t.kept.N))
	return nil
}

// Progress implements round.Trainer: a step is a round.
func (t *trainer) Progress() round.Progress {
	p := round.Progress{Steps: 2, Loss: t.loss, Phase: "scaling"}
	if t.fit.Done() {
		p.Phase = "collecting samples"
	}
	if t.kept != nil {
		p.Step, p.Samples, p.Phase = 1, uint64(t.kept.N), "choosing k"
	}
	if t.k > 0 {
		p.Step = 2
	}
	return p
}

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	if t.k == 0 {
		return nil, errors.New("there is no model yet, because the samples or k are not known")
	}
	return &model{
		Sizes: rows.SizesOf(t.kept), k: int(t.k), kind: t.job.Config.Scaling, scale: t.fit.Values(), kept: *t.kept,
		targets: t.job.Manifest.LabelType.Bounds != nil,
	}, nil
}
