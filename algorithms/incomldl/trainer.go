package incomldl

import (
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/eigen"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/simplex"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// trainer is the leader's half: the scaling, XᵀX, and the steps of ADMM.
type trainer struct {
	learner.Base
	cfg              *Config
	columns          simplex.Columns
	features, labels int
	shards           int
	fit              *scaling.Fit
	gram             []float64 // XᵀX, a triangle, then the number of samples; nil until they are known
	w, h, g          []float64 // columns×labels; nil before the first step
	steps            uint64    // that have ended
	done             bool
	k, factor        linalg.Matrix // of gram, once they are needed
	target           []float64     // ρ(H - G) of the round
}

func newTrainer(c *Config, m *dataset.Manifest) *trainer {
	return &trainer{cfg: c, columns: c.columns(m), features: m.Features, labels: m.Labels, shards: len(m.Shards),
		fit: scaling.NewFit(c.Scaling, m)}
}

// Start implements learner.Trainer.
func (t *trainer) Start() { t.fit.Begin() }

// State implements learner.Trainer.
func (t *trainer) State(l *fields.List) {
	n := t.columns.Count() * t.labels
	t.fit.State(l)
	l.Known(&t.gram, simplex.Triangle(t.columns.Count())+1)
	for _, v := range []*[]float64{&t.w, &t.h, &t.g} {
		l.Known(v, n)
		l.Check(simplex.Bounded(*v), "the saved state has a weight that is too great")
		l.Check((*v == nil) == (t.w == nil), "the saved state has a part of the weights")
	}
	l.Uint64(&t.steps)
	l.Bool(&t.done)
	l.Check(t.gram == nil || t.fit.Done(), "the saved state has products before the features are scaled")
	l.Check(t.gram == nil || num.Finite64(t.gram) && t.gram[len(t.gram)-1] >= 1, "the saved state has no samples")
	l.Check((t.w == nil) == (t.steps == 0) && (t.w == nil || t.gram != nil) && t.steps <= uint64(t.cfg.Iterations) &&
		(!t.done || t.steps > 0), "step %d of the saved state does not match its other fields", t.steps)
}

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	r := &round.Round{Tasks: t.shards, Scope: round.Sharded, Roles: dataset.Train}
	switch n := t.columns.Count(); {
	case t.done:
		return nil, nil
	case !t.fit.Done():
		t.fit.Next(r)
		return r, nil
	case t.gram == nil:
		r.Op, r.Kind, r.How = opGram, "products", round.Sums(simplex.Triangle(n)+1)
		r.Vars = t.fit.AppendVar(nil)
	default:
		t.target = make([]float64, n*t.labels)
		for i, x := range t.h {
			t.target[i] = float64(t.cfg.Rho * (x - t.g[i]))
		}
		r.Op, r.Kind, r.How = opStep, "step", round.Sums(len(t.target))
		r.Vars = t.fit.AppendVar([]round.Var{{ID: varTarget, Version: t.steps + 1, Data: num.Bytes64(t.target)}})
	}
	return r, nil
}

// Fold implements round.Trainer.
func (t *trainer) Fold(r *round.Result) error {
	switch {
	case !t.fit.Done():
		return t.fit.Fold(r.Sum.F64)
	case t.gram == nil:
		if r.Sum.F64[len(r.Sum.F64)-1] == 0 {
			return algorithms.ErrNoRows
		}
		t.gram = slices.Clone(r.Sum.F64)
		return nil
	}
	if t.k.Rows == 0 {
		if err := t.prepare(); err != nil {
			return fmt.Errorf("%s: %w", Name, err)
		}
	}
	t.step(r.Sum.F64)
	if !simplex.Bounded(t.w) || !simplex.Bounded(t.h) || !simplex.Bounded(t.g) {
		return fmt.Errorf("%s: a weight is too great: scale the features, or use another rho or a greater ridge", Name)
	}
	return nil
}

// prepare sets K and its factor.
func (t *trainer) prepare() (err error) {
	q := t.columns.Count()
	t.k = simplex.Gram(t.gram, q)
	trace := 0.0
	for i := range q {
		trace += t.k.At(i, i)
	}
	t.factor, err = simplex.Factor(t.k, float64(t.cfg.Ridge*trace)/float64(q))
	return err
}

// step ends a step of ADMM, whose products XᵀM are xm.
func (t *trainer) step(xm []float64) {
	q, n := t.columns.Count(), t.labels
	w := slices.Clone(xm)
	simplex.Solve(t.factor, w)
	a := linalg.New(q, n) // XW + Λ/ρ is X times this
	copy(a.V, w)
	if t.g != nil {
		for i, x := range t.g {
			a.V[i] += x
		}
	}
	ka, gram := linalg.New(q, n), linalg.New(n, n)
	linalg.AddProduct(ka, t.k, a)
	linalg.AddProduct(gram, a.T(), ka)
	threshold, _ := eigen.Threshold(gram, t.cfg.Lambda/t.cfg.Rho)
	h := linalg.New(q, n)
	linalg.AddProduct(h, a, threshold)
	g, primal, dual := make([]float64, q*n), make([]float64, q*n), slices.Clone(h.V)
	for i, x := range h.V {
		g[i], primal[i] = a.V[i]-x, w[i]-x
		if t.h != nil {
			dual[i] -= t.h[i]
		}
	}
	length := func(v []float64) float64 { return math.Sqrt(simplex.Square(t.k, v)) }
	least := float64(t.cfg.Absolute * math.Sqrt(t.gram[len(t.gram)-1]*float64(n)))
	relative := func(length float64) float64 { return least + float64(t.cfg.Relative*length) }
	converged := length(primal) <= relative(max(length(w), length(h.V))) &&
		float64(t.cfg.Rho*length(dual)) <= relative(float64(t.cfg.Rho*length(g)))
	t.w, t.h, t.g = w, h.V, g
	t.steps++
	t.done = converged || t.steps == uint64(t.cfg.Iterations)
}

// Progress implements round.Trainer.
func (t *trainer) Progress() round.Progress {
	p := round.Progress{Step: t.steps, Steps: uint64(t.cfg.Iterations), MostSteps: uint64(t.cfg.Iterations), Loss: -1,
		Phase: "scaling"}
	if t.gram != nil {
		p.Samples = t.steps * uint64(t.gram[len(t.gram)-1])
	}
	switch {
	case t.done:
		p.Phase, p.Steps, p.MostSteps = "done", t.steps, t.steps
	case t.gram != nil:
		p.Phase = "training"
	case t.fit.Done():
		p.Phase = "products"
	}
	return p
}

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	if !t.done {
		return nil, fmt.Errorf("%s: there is no model yet", Name)
	}
	return simplex.NewModel(t.w, t.features, t.labels, t.fit.Values()), nil
}
