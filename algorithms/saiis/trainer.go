package saiis

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// trainer is the leader's half: a fullbatch.Training by a minimiser.
type trainer struct {
	*fullbatch.Training
	objective *objective
}

func newTrainer(c *Config, m *dataset.Manifest) *trainer {
	fit, z := scaling.NewFit(c.Scaling, m), sizesOf(c, m)
	o := &objective{
		sizes: z, tolerance: c.Tolerance, by: newMinimiser(z.values(), c),
		model: maxent.Objective{Features: m.Features, Labels: m.Labels, Bias: c.Bias, Fit: fit},
	}
	set := c.Training()
	set.OwnKind = "expectations"
	return &trainer{fullbatch.New(set, o, o.by, fit, m), o}
}

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	r, err := t.Training.Next()
	switch t.Phase {
	case fullbatch.PhaseOwn:
		r.Op, r.How = opKnown, round.Sums(t.objective.knownSums())
		r.Vars = t.Fit.AppendVar(nil)
	case fullbatch.PhaseEvaluate:
		r.Vars = t.Fit.AppendVar(r.Vars)
		if by := t.objective.by; !by.moves {
			r.Vars = append(r.Vars, round.Var{ID: varChanges, Version: t.Evaluations, Data: num.Bytes64(by.changes)})
		}
	}
	return r, err
}

// Fold implements round.Trainer.
func (t *trainer) Fold(r *round.Result) error {
	if t.Phase != fullbatch.PhaseOwn {
		return t.Training.Fold(r)
	}
	t.objective.know(append([]float64(nil), r.Sum.F64...))
	t.Resume()
	return nil
}

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	x, err := t.Trained()
	if err != nil {
		return nil, err
	}
	return &maxent.Model{Features: t.objective.features, Labels: t.objective.labels,
		Weights: t.objective.model.Effective(nil, x)}, nil
}

// State implements learner.Trainer.
func (t *trainer) State(l *fields.List) {
	t.Training.State(l)
	o := t.objective
	l.Known(&o.sums, o.knownSums())
	l.Check((o.sums != nil) == (t.Phase > fullbatch.PhaseOwn),
		"the saved state has sums of samples in phase %d, which is not possible", t.Phase)
	if l.Reading() && o.sums != nil {
		o.know(o.sums)
	}
}

// objective is the mean K-L divergence of a maximum-entropy model; in the place of its gradient it
// gives the steps by which a minimiser looks for roots. It implements fullbatch.Objective.
type objective struct {
	sizes
	tolerance float64
	by        *minimiser
	model     maxent.Objective
	sums      []float64 // known: nil before they are summed
}

// know takes what does not change with the weights.
func (o *objective) know(sums []float64) {
	o.sums = sums
	k := o.known(sums)
	o.by.limit = k.limit()
}

// Sums implements fullbatch.Objective.
func (o *objective) Sums() int { return o.sizes.sums() }

// AppendVars implements fullbatch.Objective.
func (o *objective) AppendVars(vars []round.Var, x []float64, _ uint64) []round.Var {
	return o.model.AppendVars(vars, x, o.by.version())
}

// Fold implements fullbatch.Objective.
func (o *objective) Fold(steps, _ []float64, rows, losses float64, sums []float64) float64 {
	e, k := o.evaluated(sums), o.known(o.sums)
	for i := range steps {
		steps[i] = newton(e.above[i], e.below[i], e.slope[i], k.expected[i], float64(o.tolerance*k.absolute[i/o.labels]))
	}
	return losses / rows
}
