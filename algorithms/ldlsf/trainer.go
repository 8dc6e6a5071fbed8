package ldlsf

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/simplex"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// trainer is the leader's half: the scaling, one round, and ADMM.
type trainer struct {
	learner.Base
	cfg              *Config
	manifest         *dataset.Manifest
	features, labels int
	shards           int
	fit              *scaling.Fit
	weights          []float64 // (features+1)×labels, of scaled features; nil until they are known
}

func newTrainer(c *Config, m *dataset.Manifest) *trainer {
	return &trainer{cfg: c, manifest: m, features: m.Features, labels: m.Labels, shards: len(m.Shards),
		fit: scaling.NewFit(c.Scaling, m)}
}

// Start implements learner.Trainer.
func (t *trainer) Start() { t.fit.Begin() }

// State implements learner.Trainer.
func (t *trainer) State(l *fields.List) {
	t.fit.State(l)
	l.Known(&t.weights, (t.features+1)*t.labels)
	l.Check(t.weights == nil || t.fit.Done(), "the saved state has weights before the features are scaled")
	l.Check(simplex.Bounded(t.weights), "the saved state has a weight that is too great")
}

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	r := &round.Round{Tasks: t.shards, Scope: round.Sharded, Roles: dataset.Train}
	switch {
	case !t.fit.Done():
		t.fit.Next(r)
	case t.weights == nil:
		r.Op, r.Kind, r.How = opProducts, "products", round.Sums(int(sumsOf(t.features, t.labels)))
		r.Vars = t.fit.AppendVar(nil)
	default:
		return nil, nil
	}
	return r, nil
}

// Fold implements round.Trainer.
func (t *trainer) Fold(r *round.Result) error {
	if !t.fit.Done() {
		return t.fit.Fold(r.Sum.F64)
	}
	p := productsOf(r.Sum.F64, t.features, t.labels)
	if p.rows() == 0 {
		return algorithms.Nothing(t.manifest)
	}
	s, err := newSolver(p, t.cfg)
	if err != nil {
		return fmt.Errorf("%s: %w", Name, err)
	}
	for range t.cfg.Iterations {
		s.step()
	}
	if !simplex.Bounded(s.w.V) {
		return fmt.Errorf("%s: a weight is too great: scale the features, or use another rho", Name)
	}
	t.weights = s.w.V
	return nil
}

// Progress implements round.Trainer.
func (t *trainer) Progress() round.Progress {
	p := round.Progress{Steps: 1, MostSteps: 1, Loss: -1, Phase: "scaling"}
	switch {
	case t.weights != nil:
		p.Step, p.Phase = 1, "done"
	case t.fit.Done():
		p.Phase = "products"
	}
	return p
}

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	if t.weights == nil {
		return nil, fmt.Errorf("%s: there is no model yet", Name)
	}
	return simplex.NewModel(t.weights, t.features, t.labels, t.fit.Values()), nil
}
