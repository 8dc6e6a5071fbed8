package edllrl

import (
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/clusters"
	"github.com/coppice-ldl/coppice/algorithms/kit/eigen"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/lbfgs"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/simplex"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// trainer is the leader's half: the scaling, the groups, and steps of ADMM.
type trainer struct {
	learner.Base
	cfg       *Config
	shards    int
	fit       *scaling.Fit
	groups    *clusters.Fit
	objective *maxent.Objective
	minimiser *lbfgs.Minimiser

	step        uint64 // of ADMM: steps done
	searched    bool   // L-BFGS of the step has ended
	evaluations uint64
	samples     uint64
	loss        float64   // mean K-L of the training samples at the best point
	history     []float64 // of the steps done: see varHistory

	slope []float64 // the gradient, while an evaluation is folded
	vars  []round.Var
}

func newTrainer(c *Config, m *dataset.Manifest) *trainer {
	t := &trainer{cfg: c, shards: len(m.Shards), fit: scaling.NewFit(c.Scaling, m),
		groups: clusters.NewFit(c.Clusters, m)}
	t.objective = &maxent.Objective{Features: m.Features, Labels: m.Labels, Bias: c.Bias, L2: c.L2, Fit: t.fit,
		TermSums: 1, Alone: true}
	t.slope = make([]float64, t.objective.Point())
	t.minimiser = lbfgs.New(make([]float64, t.objective.Point()), t.options())
	return t
}

// options are the options of L-BFGS in each step.
func (t *trainer) options() lbfgs.Options {
	return lbfgs.Options{Iterations: t.cfg.Iterations, Gradient: gradient}
}

// gradient is the greatest absolute element of the gradient at which L-BFGS of a step ends.
const gradient = 1e-9

// Start implements learner.Trainer.
func (t *trainer) Start() {
	t.fit.Begin()
	t.groups.Begin()
}

// per is the number of values of a step in the history.
func (t *trainer) per() int {
	n := t.objective.Labels
	return maxent.Evaluation(t.objective.Features, n) + t.cfg.Clusters*n*n
}

// done reports whether training is over.
func (t *trainer) done() bool { return t.step == uint64(t.cfg.Steps) }

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	r := &round.Round{Tasks: t.shards, Scope: round.Sharded, Roles: dataset.Train}
	switch {
	case !t.fit.Done():
		t.fit.Next(r)
		return r, nil
	case !t.groups.Done():
		t.groups.Next(r)
		return r, nil
	case t.done():
		return nil, nil
	}
	t.vars = t.groups.AppendVar(append(t.vars[:0], round.Var{ID: varHistory, Version: t.step + 1,
		Data: num.Bytes64(t.history)}))
	if t.searched {
		r.Op, r.Kind, r.How = opProducts, "products", round.Sums(int(products(t.cfg.Clusters, t.objective.Labels)))
		t.vars = t.objective.AppendVars(t.vars, t.minimiser.Best(), 2*t.evaluations+1)
	} else {
		r.Op, r.Kind = fullbatch.OpEvaluate, "evaluation"
		r.How = &round.Reduce{Shape: round.Shape{F64: fullbatch.SumsAt + t.objective.Sums()}, DerivedVersion: t.step + 1}
		t.vars = t.objective.AppendVars(t.vars, t.minimiser.Point(), 2*t.evaluations)
	}
	r.Vars = t.vars
	return r, nil
}

// Fold implements round.Trainer.
func (t *trainer) Fold(r *round.Result) error {
	sum := r.Sum.F64
	switch {
	case !t.fit.Done():
		return t.fit.Fold(sum)
	case !t.groups.Done():
		return t.groups.Fold(sum)
	case t.searched:
		t.threshold(sum)
		return nil
	}
	rows := sum[0]
	if rows == 0 {
		return algorithms.ErrNoRows
	}
	before := t.minimiser.Iterations()
	f := t.objective.Fold(t.slope, t.minimiser.Point(), rows, sum[1], sum[fullbatch.SumsAt:])
	if t.evaluations == 0 && f-f != 0 {
		return errors.New("the loss is not finite at the start of training")
	}
	t.minimiser.Tell(f, t.slope)
	t.evaluations++
	t.samples += uint64(rows)
	if t.evaluations == 1 || t.minimiser.Iterations() > before {
		t.loss = sum[1] / rows
	}
	t.searched = t.minimiser.Done()
	return nil
}

// threshold ends a step with the sums of products of labels: it appends the weights and T of each group to the
// history.
func (t *trainer) threshold(sum []float64) {
	t.history = slices.Grow(t.history, t.per())
	t.history = append(t.history, t.objective.Effective(nil, t.minimiser.Best())...)
	n := t.objective.Labels
	for triangle := range slices.Chunk(sum, simplex.Triangle(n)) {
		matrix, _ := eigen.Threshold(simplex.Gram(triangle, n), t.cfg.Lambda/t.cfg.Rho)
		t.history = append(t.history, matrix.V...)
	}
	t.step++
	t.searched = false
	if !t.done() {
		t.minimiser.RestartAt(t.minimiser.Best(), t.options())
	}
}

// State implements learner.Trainer.
func (t *trainer) State(l *fields.List) {
	t.fit.State(l)
	t.groups.State(l)
	l.Uint64(&t.step, &t.evaluations, &t.samples)
	l.Bool(&t.searched)
	l.Float64(&t.loss)
	l.Check(t.step <= uint64(t.cfg.Steps), "the saved state has step %d of %d", t.step, t.cfg.Steps)
	if l.Reading() {
		t.history = make([]float64, int(t.step)*t.per())
	}
	l.Float64s(t.history)
	t.minimiser.State(l)
	l.Check(t.minimiser.Iterations() >= 0 && t.minimiser.Iterations() <= t.cfg.Iterations,
		"the saved state has iteration %d of %d", t.minimiser.Iterations(), t.cfg.Iterations)
	l.Check(num.Finite64(t.history), "the saved state has a weight that is not finite")
	begun := t.step > 0 || t.evaluations > 0 || t.searched
	l.Check(!begun || t.fit.Done() && t.groups.Done(), "the saved state has steps before the groups of samples")
	l.Check(t.done() && !t.searched || !t.done() && t.searched == t.minimiser.Done(),
		"the saved state has the end of a step of ADMM where there is none")
}

// Progress implements round.Trainer. A step is an iteration of L-BFGS.
func (t *trainer) Progress() round.Progress {
	per := uint64(t.cfg.Iterations)
	p := round.Progress{Step: t.step * per, Steps: uint64(t.cfg.Steps) * per, MostSteps: uint64(t.cfg.Steps) * per,
		Samples: t.samples, Loss: -1, Phase: "training"}
	switch {
	case !t.fit.Done():
		p.Phase = "scaling"
	case !t.groups.Done():
		p.Phase = "clustering"
	case t.done():
		p.Phase = "done"
	default:
		p.Step += uint64(t.minimiser.Iterations())
	}
	if t.evaluations > 0 {
		p.Loss = max(0, t.loss)
	}
	return p
}

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	if !t.done() {
		return nil, fmt.Errorf("%s: there is no model yet: the job is at step %d of %d", Name, t.step, t.cfg.Steps)
	}
	o := t.objective
	return &maxent.Model{Features: o.Features, Labels: o.Labels, Weights: o.Effective(nil, t.minimiser.Best())}, nil
}
