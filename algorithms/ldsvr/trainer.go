package ldsvr

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
	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// fitFormat is the version of an encoded fit.
const fitFormat = 1

// fitted is a fit, or, with landmarks, what is known of it so far.
type fitted struct {
	kept  *dataset.Rows // without labels; nil: not known yet
	width float64       // s of the kernel
	loss  float64       // mean K-L of the training rows; -1: unknown
	done  uint64        // iterations
	point []float64     // β (kept×labels), then b; nil with landmarks
}

// list lists the fields, in a part or in a state.
func (x *fitted) list(l *fields.List, m *dataset.Manifest, w *rows.Wanted) {
	rows.Field(l, &x.kept, m, w)
	l.Float64(&x.width, &x.loss)
	l.Uint64(&x.done)
	n := 0
	if x.kept != nil {
		n = (x.kept.N + 1) * m.Labels
	}
	l.Known(&x.point, n)
	l.Check(x.width >= 0 && x.width <= mostValue && (x.width > 0) == (x.kept != nil),
		"the width of the Gaussian function is %v, which is not possible", x.width)
	l.Check(x.loss == -1 || x.kept != nil && x.loss >= 0 && x.loss < mostLoss,
		"the fit has the loss %v, which is not possible", x.loss)
	for _, v := range x.point {
		l.Check(v >= -mostValue && v <= mostValue, "the fit has the value %v, which is not possible", v)
	}
}

// mostLoss is greater than any K-L: degrees below 1e-12 count as 1e-12.
const mostLoss = 1e3

// stateBytes is the size of a state without rows, scaling, points and directions: version; rows;
// width and loss; iterations; count; a descent.
const stateBytes = 1 + 8 + 16 + 8 + 4 + 1 + 8 + 16

// trainer implements learner.Trainer.
type trainer struct {
	learner.Base
	job *learner.Job[Config]
	fit *scaling.Fit
	fitted
	descent     *descent // with landmarks, once they are known
	evaluations uint64

	trial   []float64 // the point of the round
	matrix  linalg.Matrix
	encoded []byte // varLandmarks
	vars    []round.Var
	round   round.Round
}

func newTrainer(j *learner.Job[Config]) *trainer {
	return &trainer{job: j, fit: scaling.NewFit(j.Config.Scaling, j.Manifest), fitted: fitted{loss: -1}}
}

// Start implements learner.Trainer.
func (t *trainer) Start() { t.fit.Begin() }

// exact reports whether the fit is one unit.
func (t *trainer) exact() bool { return t.job.Config.Landmarks == 0 }

// State implements learner.Trainer.
func (t *trainer) State(l *fields.List) {
	t.fit.State(l)
	t.list(l, t.job.Manifest, t.job.Config.kept(t.job.Seed))
	l.Check(t.kept == nil || t.fit.Done(), "the saved state has samples, although the features are not scaled yet")
	l.Check(t.done <= uint64(t.job.Config.Iterations), "the saved state is at iteration %d, which is not possible", t.done)
	l.Check((t.point != nil) == (t.exact() && t.kept != nil),
		"the saved state has a fit of %d values, which is not possible", len(t.point))
	l.Uint64(&t.evaluations)
	if t.exact() || t.kept == nil {
		l.Check(t.evaluations == 0, "the saved state is at evaluation %d, which is not possible", t.evaluations)
		return
	}
	if l.Reading() {
		t.descent = newDescent(t.job.Config, t.values())
	}
	if t.descent != nil {
		t.descent.state(l)
	}
}

// values returns the number of values of β and b.
func (t *trainer) values() int { return (t.kept.N + 1) * t.job.Manifest.Labels }

// ended reports whether the fit is there.
func (t *trainer) ended() bool {
	return t.point != nil || t.descent != nil && t.descent.stage == stageEnd
}

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	r := &t.round
	*r = round.Round{Roles: dataset.Train, Tasks: len(t.job.Manifest.Shards)}
	switch {
	case !t.fit.Done():
		t.fit.Next(r)
	case t.ended():
		return nil, nil
	case t.exact():
		r.Op, r.Kind, r.How, r.Scope, r.Tasks = opFit, "fit", &round.Gather{}, round.Whole, 1
		r.Vars = t.fit.AppendVar(nil)
	case t.kept == nil:
		r.Op, r.Kind, r.How = opRows, "rows", &round.Gather{}
	default:
		t.nextPoint(r)
	}
	return r, nil
}

// nextPoint describes the evaluation of a point.
func (t *trainer) nextPoint(r *round.Round) {
	t.trial = resized(t.trial, t.values())
	t.descent.trial(t.trial)
	if t.encoded == nil {
		t.encoded = append(num.Bytes64([]float64{t.width}), dataset.EncodeShard(t.kept, nil)...)
	}
	t.vars = append(t.vars[:0], round.Var{ID: varLandmarks, Version: 1, Data: t.encoded},
		round.Var{ID: varPoint, Version: t.evaluations + 1, Data: num.Bytes64(t.trial)})
	r.Op, r.Kind, r.Vars = opPoint, "objective", t.fit.AppendVar(t.vars)
	sums := headSums
	if t.descent.wantsSystem() {
		r.Kind, sums = "gram", gramSums(t.kept.N, t.job.Manifest.Labels)
	}
	r.How = &round.Reduce{Shape: round.Shape{F64: sums}, DerivedVersion: 1}
}

func resized(v []float64, n int) []float64 {
	if len(v) != n {
		return make([]float64, n)
	}
	return v
}

// Fold implements round.Trainer.
func (t *trainer) Fold(res *round.Result) error {
	switch {
	case !t.fit.Done():
		return t.fit.Fold(res.Sum.F64)
	case t.exact():
		return t.foldFit(res)
	case t.kept == nil:
		return t.foldRows(res)
	}
	return t.foldPoint(res.Sum.F64)
}

// foldFit takes an exact fit.
func (t *trainer) foldFit(res *round.Result) error {
	if len(res.Gathered) == 1 && len(res.Gathered[0]) == 0 {
		return fmt.Errorf("%s: %w", Name, algorithms.Nothing(t.job.Manifest))
	}
	if len(res.Gathered) != 1 {
		return fmt.Errorf("%s: got %d fits, want 1", Name, len(res.Gathered))
	}
	var fit fitted
	err := fields.Read(res.Gathered[0], fitFormat, func(l *fields.List) {
		fit.list(l, t.job.Manifest, t.job.Config.kept(t.job.Seed))
		l.Check(fit.point != nil && fit.done <= uint64(t.job.Config.Iterations),
			"the fit is at iteration %d and has %d values, which is not possible", fit.done, len(fit.point))
	})
	if err == nil {
		t.fitted = fit
		return nil
	}
	return fmt.Errorf("%s: %w", Name, err)
}

// foldRows draws the landmarks of the collected rows, and takes the mean distance between these.
func (t *trainer) foldRows(res *round.Result) error {
	c, seed := t.job.Config, t.job.Seed
	all, err := rows.Join(res.Gathered, t.job.Manifest, c.collected(seed))
	if err != nil {
		return fmt.Errorf("%s: %w", Name, err)
	}
	between := rows.Select(all, c.between(seed).Least(all, mostExact))
	scale := t.fit.Values()
	t.width = float64(c.Width * meanDistance(between, scale.Scale))
	t.kept = rows.Select(all, c.kept(seed).Least(all, c.Landmarks))
	t.descent = newDescent(c, t.values())
	return nil
}

// foldPoint takes the sums at a point.
func (t *trainer) foldPoint(sums []float64) error {
	if sums[sumRows] == 0 {
		return fmt.Errorf("%s: %w", Name, algorithms.Nothing(t.job.Manifest))
	}
	t.evaluations++
	k := t.kernels()
	n, labels := t.kept.N, t.job.Manifest.Labels
	t.trial = resized(t.trial, t.values())
	t.descent.trial(t.trial)
	beta, product := t.trial[:n*labels], make([]float64, n*labels)
	linalg.AddProduct(linalg.Of(product, n, labels), k, linalg.Of(beta, n, labels))
	value := penalty(beta, product) + float64(t.job.Config.Cost*sums[sumLoss])
	first, before := t.descent.stage == stageBegin, t.descent.value
	turns := t.descent.take(value)
	if first || t.descent.value != before {
		t.loss = max(0, sums[sumDivergence]/sums[sumRows])
	}
	t.done = t.descent.done
	if !turns {
		return nil
	}
	solution := make([]float64, t.values())
	copy(solution[n*labels:], t.descent.point[n*labels:])
	if err := systemOf(sums[headSums:], n, labels).solve(solution, k); err != nil {
		return err
	}
	t.descent.turn(solution)
	return nil
}

// kernels returns the kernel matrix of the landmarks.
func (t *trainer) kernels() linalg.Matrix {
	if t.matrix.Rows == 0 {
		scale := t.fit.Values()
		t.matrix = kernelMatrix(t.kept, rows.NewDistances(t.kept, scale.Scale), t.width)
	}
	return t.matrix
}

// Progress implements round.Trainer: a step is an iteration.
func (t *trainer) Progress() round.Progress {
	most := uint64(t.job.Config.Iterations)
	p := round.Progress{Step: t.done, Steps: most, MostSteps: most, Loss: t.loss, Phase: "scaling"}
	switch {
	case t.ended():
		p.Steps, p.MostSteps, p.Phase = p.Step, 0, "done"
	case t.exact():
		p.Phase = "fit" // one unit, beside which scaling is nothing
	case t.kept != nil:
		p.Phase = "least squares"
	case t.fit.Done():
		p.Phase = "collecting samples"
	}
	return p
}

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	if !t.ended() {
		return nil, errors.New(Name + ": there is no model yet")
	}
	point := t.point
	if t.descent != nil {
		point = t.descent.point
	}
	n := t.kept.N * t.job.Manifest.Labels
	m := &model{
		Sizes: rows.SizesOf(t.kept), labels: t.job.Manifest.Labels, kind: t.job.Config.Scaling, scale: t.fit.Values(),
		kept:  *t.kept,
		width: []float64{t.width}, beta: point[:n], bias: point[n:],
	}
	if !t.exact() {
		m.landmarks = 1
	}
	return m, nil
}
