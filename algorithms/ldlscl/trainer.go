package ldlscl

import (
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/clusters"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/lbfgs"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/simplex"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// trainer is the leader's half: the scaling, the centres, L-BFGS, and the regression. A point of L-BFGS has W, as
// maxent.Objective has it, then V, then ln c of each sample of the dataset by its number. ln c of other samples than
// training samples stays 0.
type trainer struct {
	learner.Base
	sizes
	cfg       *Config
	manifest  *dataset.Manifest
	shards    int
	fit       *scaling.Fit
	groups    *clusters.Fit
	objective *maxent.Objective // of W
	minimiser *lbfgs.Minimiser

	evaluations uint64
	samples     uint64
	loss        float64   // mean K-L of the training samples at the best point
	codes       []float64 // (features+1)×centres: the regression; nil until it is known

	slope []float64 // the gradient, while an evaluation is folded
	vars  []round.Var
}

func newTrainer(c *Config, m *dataset.Manifest) *trainer {
	t := &trainer{sizes: sizesOf(c, m), cfg: c, manifest: m, shards: len(m.Shards), fit: scaling.NewFit(c.Scaling, m),
		groups: clusters.NewFit(c.Clusters, m)}
	t.objective = &maxent.Objective{Features: m.Features, Labels: m.Labels, Bias: c.Bias, L2: c.Lambda3, Fit: t.fit,
		TermSums: 1}
	n := t.objective.Point() + t.own()
	t.slope = make([]float64, n)
	t.minimiser = lbfgs.New(make([]float64, n), lbfgs.Options{Iterations: c.Iterations, Gradient: c.Tolerance})
	return t
}

// Start implements learner.Trainer.
func (t *trainer) Start() {
	t.fit.Begin()
	t.groups.Begin()
}

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	r := &round.Round{Tasks: t.shards, Scope: round.Sharded, Roles: dataset.Train}
	switch {
	case !t.fit.Done():
		t.fit.Next(r)
	case !t.groups.Done():
		t.groups.Next(r)
	case !t.minimiser.Done():
		r.Op, r.Kind, r.How = fullbatch.OpEvaluate, "evaluation", round.Sums(t.evaluation())
		x, w := t.minimiser.Point(), t.objective.Point()
		t.vars = t.groups.AppendVar(append(t.vars[:0], t.ownVar(x, 2*t.evaluations)))
		t.vars = t.objective.AppendVars(t.vars, x[:w], 2*t.evaluations)
		r.Vars = t.vars
	case t.codes == nil:
		r.Op, r.Kind, r.How = opRegression, "regression", round.Sums(int(t.regression()))
		t.vars = append(t.vars[:0], t.ownVar(t.minimiser.Best(), 2*t.evaluations+1))
		r.Vars = t.fit.AppendVar(t.vars)
	default:
		return nil, nil
	}
	return r, nil
}

// ownVar is V and ln c of a point.
func (t *trainer) ownVar(x []float64, version uint64) round.Var {
	return round.Var{ID: varOwn, Version: version, Data: num.Bytes64(x[t.objective.Point():])}
}

// Fold implements round.Trainer.
func (t *trainer) Fold(r *round.Result) error {
	sum := r.Sum.F64
	switch {
	case !t.fit.Done():
		return t.fit.Fold(sum)
	case !t.groups.Done():
		return t.groups.Fold(sum)
	case t.minimiser.Done():
		return t.regress(sum)
	}
	rows := sum[0]
	if rows == 0 {
		return algorithms.Nothing(t.manifest)
	}
	before := t.minimiser.Iterations()
	f := t.foldPoint(t.minimiser.Point(), rows, sum)
	if t.evaluations == 0 && f-f != 0 {
		return errors.New("the loss is not finite at the start of training")
	}
	t.minimiser.Tell(f, t.slope)
	t.evaluations++
	t.samples += fullbatch.Rows(sum)
	if t.evaluations == 1 || t.minimiser.Iterations() > before {
		t.loss = sum[1] / rows
	}
	return nil
}

// foldPoint sets t.slope to the gradient at a point, and returns the objective.
func (t *trainer) foldPoint(x []float64, rows float64, sum []float64) float64 {
	w, shared := t.objective.Point(), t.centres*t.labels
	f := t.objective.Fold(t.slope[:w], x[:w], rows, sum[1], sum[fullbatch.SumsAt:])
	g, share := t.slope[w:], 1/rows
	for i, v := range sum[fullbatch.SumsAt+t.weights()+1:] {
		g[i] = v * share
	}
	own := x[w:][:shared]
	num.AddScaled64(g[:shared], t.cfg.Lambda3, own)
	return f + float64(0.5*t.cfg.Lambda3*num.Dot64(own, own))
}

// regress solves for the regression of ln c.
func (t *trainer) regress(sum []float64) error {
	q := t.features + 1
	n := simplex.Triangle(q)
	gram, trace := simplex.Gram(sum[:n], q), 0.0
	for i := range q {
		trace += gram.At(i, i)
	}
	add := t.cfg.Ridge * trace / float64(q)
	for i := range q - 1 {
		gram.Set(i, i, gram.At(i, i)+add)
	}
	if err := linalg.Cholesky(gram); err != nil {
		return fmt.Errorf("%s: the codes cannot be computed from the features: use a greater ridge", Name)
	}
	codes := slices.Clone(sum[n:])
	simplex.Solve(gram, codes)
	if !num.Finite64(codes) {
		return fmt.Errorf("%s: the codes cannot be computed from the features: scale the features", Name)
	}
	t.codes = codes
	return nil
}

// State implements learner.Trainer.
func (t *trainer) State(l *fields.List) {
	t.fit.State(l)
	t.groups.State(l)
	l.Uint64(&t.evaluations, &t.samples)
	l.Float64(&t.loss)
	t.minimiser.State(l)
	n := t.minimiser.Iterations()
	l.Check(n >= 0 && n <= t.cfg.Iterations, "the saved state has iteration %d of %d", n, t.cfg.Iterations)
	l.Known(&t.codes, (t.features+1)*t.centres)
	l.Check(t.codes == nil || t.minimiser.Done(), "the saved state has the regression before the end of L-BFGS")
	l.Check(t.evaluations == 0 && !t.minimiser.Done() || t.fit.Done() && t.groups.Done(),
		"the saved state has evaluations before the centres")
	l.Check(num.Finite64(t.codes), "the saved state has a weight that is not finite")
}

// Progress implements round.Trainer.
func (t *trainer) Progress() round.Progress {
	steps := uint64(t.cfg.Iterations)
	p := round.Progress{Step: uint64(t.minimiser.Iterations()), Steps: steps, MostSteps: steps, Samples: t.samples,
		Loss: -1, Phase: "training"}
	switch {
	case !t.fit.Done():
		p.Phase = "scaling"
	case !t.groups.Done():
		p.Phase = "clustering"
	case t.codes != nil:
		p.Phase, p.Steps = "done", p.Step
	case t.minimiser.Done():
		p.Phase = "regression"
	}
	if t.evaluations > 0 {
		p.Loss = max(0, t.loss)
	}
	return p
}

// Model implements algorithms.Trainer. The regression reads scaled features; the model's weights read features as they
// are.
func (t *trainer) Model() (algorithms.Model, error) {
	if t.codes == nil {
		return nil, fmt.Errorf("%s: there is no model yet: the job is at iteration %d of %d", Name,
			t.minimiser.Iterations(), t.cfg.Iterations)
	}
	x, w := t.minimiser.Best(), t.objective.Point()
	m := &model{features: t.features, labels: t.labels, centres: t.centres, weights: t.objective.Effective(nil, x[:w]),
		shared: append([]float64{}, x[w:][:t.centres*t.labels]...)}
	o := &maxent.Objective{Features: t.features, Labels: t.centres, Bias: true, Fit: t.fit}
	m.codes = o.Effective(nil, t.codes)
	return m, nil
}
