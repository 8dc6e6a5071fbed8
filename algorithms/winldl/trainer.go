package winldl

import (
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/algorithms/kit/simplex"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// trainer is the leader's half: the scaling, the products, and the steps of ADMM.
type trainer struct {
	learner.Base
	cfg              *Config
	columns          simplex.Columns
	manifest         *dataset.Manifest
	features, labels int
	shards           int
	fit              *scaling.Fit
	gram             []float64 // XᵀX, a triangle, then the number of samples; nil until they are known
	means            []float64 // of known degrees, by label; nil until they are known
	known            uint64    // steps whose W is known
	weights          []float64 // W of these steps, one after the other: columns×labels
	done             bool
	factor           linalg.Matrix // of gram, once it is needed
	objective        float64       // of the last step, for tests
}

func newTrainer(c *Config, m *dataset.Manifest) *trainer {
	return &trainer{cfg: c, columns: c.columns(m), manifest: m, features: m.Features, labels: m.Labels,
		shards: len(m.Shards), fit: scaling.NewFit(c.Scaling, m)}
}

// Start implements learner.Trainer.
func (t *trainer) Start() { t.fit.Begin() }

// size is the number of values of W.
func (t *trainer) size() int { return t.columns.Count() * t.labels }

// State implements learner.Trainer.
func (t *trainer) State(l *fields.List) {
	t.fit.State(l)
	l.Known(&t.gram, simplex.Triangle(t.columns.Count())+1)
	l.Known(&t.means, t.labels)
	l.Uint64(&t.known)
	l.Check(t.known <= uint64(t.cfg.Iterations), "the saved state has the weights of %d steps", t.known)
	l.Known(&t.weights, int(t.known)*t.size())
	l.Bool(&t.done)
	l.Check(t.gram == nil || t.fit.Done(), "the saved state has products before the features are scaled")
	l.Check(t.gram == nil || num.Finite64(t.gram) && t.gram[len(t.gram)-1] > 0, "the saved state has no samples")
	l.Check((t.means == nil) == (t.gram == nil) && (t.weights == nil) == (t.known == 0) &&
		(t.weights == nil || t.gram != nil) && (!t.done || t.known > 0), "step %d of the saved state does not match its "+
		"other fields", t.known)
	l.Check(simplex.Bounded(t.weights), "the saved state has a weight that is too great")
	for _, x := range t.means {
		l.Check(x >= 0 && x <= 1+dataset.ObservedSlack, "the saved state has the mean degree %v", x)
	}
}

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	r := &round.Round{Tasks: t.shards, Scope: round.Sharded, Roles: dataset.Train}
	switch {
	case t.done:
		return nil, nil
	case !t.fit.Done():
		t.fit.Next(r)
		return r, nil
	case t.gram == nil:
		r.Op, r.Kind = opProducts, "products"
		r.How = round.Sums(simplex.Triangle(t.columns.Count()) + 1 + 2*t.labels)
		r.Vars = t.fit.AppendVar(nil)
		return r, nil
	case t.known == 0:
		r.Op, r.Kind, r.How = opStart, "start", round.Sums(t.size())
	default:
		sums := round.Sums(t.size() + norms)
		sums.Steps, sums.DerivedVersion = [2]uint64{t.known, t.known + 1}, 1 // one value for all steps
		r.Op, r.Kind, r.How = opStep, "step", sums
	}
	r.Vars = t.fit.AppendVar([]round.Var{{ID: varMeans, Version: 1, Data: num.Bytes64(t.means)}})
	n := t.cfg.perBlock() * t.size()
	for id, rest := uint16(varWeights), t.weights; len(rest) > 0; id++ { // a worker gets the blocks that have grown
		some := rest[:min(n, len(rest))]
		r.Vars = append(r.Vars, round.Var{ID: id, Version: uint64(len(some) / t.size()), Data: num.Bytes64(some)})
		rest = rest[len(some):]
	}
	return r, nil
}

// stepWeights is W of a step.
func (t *trainer) stepWeights(step uint64) []float64 {
	return t.weights[int(step-1)*t.size():][:t.size()]
}

// Fold implements round.Trainer.
func (t *trainer) Fold(r *round.Result) error {
	switch {
	case !t.fit.Done():
		return t.fit.Fold(r.Sum.F64)
	case t.gram == nil:
		return t.foldProducts(r.Sum.F64)
	case t.known > 0:
		if t.end(r.Sum.F64[t.size():]); t.done {
			return nil
		}
	}
	if t.factor.Rows == 0 {
		if err := t.prepare(); err != nil {
			return fmt.Errorf("%s: %w", Name, err)
		}
	}
	w := slices.Clone(r.Sum.F64[:t.size()])
	simplex.Solve(t.factor, w)
	if !simplex.Bounded(w) {
		return fmt.Errorf("%s: a weight is too great: scale the features, or use another rho or a greater ridge", Name)
	}
	t.weights = append(t.weights, w...)
	t.known++
	return nil
}

// foldProducts takes what opProducts sums.
func (t *trainer) foldProducts(sums []float64) error {
	n := simplex.Triangle(t.columns.Count())
	if sums[n] == 0 {
		return algorithms.Nothing(t.manifest)
	}
	means := make([]float64, t.labels)
	for c := range means {
		known := sums[n+1+t.labels+c]
		if known == 0 {
			return errUnseen(t.manifest.LabelName(c))
		}
		means[c] = sums[n+1+c] / known
	}
	t.gram, t.means = slices.Clone(sums[:n+1]), means
	return nil
}

// prepare sets the factor of K.
func (t *trainer) prepare() (err error) {
	q := t.columns.Count()
	k := simplex.Gram(t.gram, q)
	trace := 0.0
	for i := range q {
		trace += k.At(i, i)
	}
	t.factor, err = simplex.Factor(k, t.cfg.Ridge+float64(t.cfg.RidgeFraction*trace)/t.gram[len(t.gram)-1])
	return err
}

// end ends a step with its norms: done is true if the residuals are small, or if no step is left.
func (t *trainer) end(squares []float64) {
	length := func(i int) float64 { return math.Sqrt(squares[i]) }
	within := func(residual, count, of float64) bool {
		return residual <= float64(t.cfg.Absolute*math.Sqrt(count))+float64(t.cfg.Relative*of)
	}
	t.objective = squares[5]
	t.done = t.known == uint64(t.cfg.Iterations) ||
		within(length(0), t.gram[len(t.gram)-1], max(length(1), length(2))) &&
			within(float64(t.cfg.Rho*length(3)), float64(t.labels), length(4))
}

// Progress implements round.Trainer.
func (t *trainer) Progress() round.Progress {
	p := round.Progress{Step: t.known, Steps: uint64(t.cfg.Iterations), MostSteps: uint64(t.cfg.Iterations), Loss: -1,
		Phase: "scaling"}
	if p.Step > 0 && !t.done {
		p.Step-- // it is computed
	}
	if t.gram != nil {
		p.Samples = p.Step * uint64(t.gram[len(t.gram)-1])
	}
	switch {
	case t.done:
		p.Phase, p.Steps, p.MostSteps = "done", t.known, t.known
	case t.known > 0:
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
	return simplex.NewModel(t.stepWeights(t.known), t.features, t.labels, t.fit.Values()), nil
}

// errUnseen says that a label has no degree.
func errUnseen(label string) error {
	return fmt.Errorf("%s: the label %s is missing in every training sample", Name, label)
}
