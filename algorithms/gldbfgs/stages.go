package gldbfgs

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/lbfgs"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// mixtureStep is how much a of Ω grows from stage to stage.
const mixtureStep = 0.2

// Trainer is the leader's half.
type Trainer struct{ *maxent.Trainer }

func newTrainer(j *learner.Job[Config]) *Trainer {
	c, m := j.Config, j.Manifest
	t := &Trainer{maxent.NewTrainer(&c.Settings, c.Search, c.L2, "", m)}
	t.Derived = 0 // the kernel derives nothing
	if c.Stages == 1 {
		return t
	}
	o := &objective{Objective: t.Objective, labels: m.Labels}
	o.TermSums = momentSums(m.Labels)
	set := c.Training()
	set.Derived, set.Steps = 0, set.Steps+uint64((c.Stages-1)*c.StageIterations)
	by := newStages(o, c)
	t.Training = fullbatch.New(set, o, by, o.Fit, m)
	return t
}

// objective is maxent's of the derivatives that the kernel sums. It keeps the moments of the errors at the last point.
type objective struct {
	*maxent.Objective
	labels  int
	rows    float64
	moments []float64
	metric  [1]round.Var
}

// Fold implements fullbatch.Objective.
func (o *objective) Fold(g, x []float64, rows, losses float64, sums []float64) float64 {
	o.rows, o.moments = rows, append(o.moments[:0], sums[maxent.Evaluation(o.Features, o.Labels):]...)
	return o.Objective.Fold(g, x, rows, losses, sums)
}

// setMetric has later evaluations carry Ω.
func (o *objective) setMetric(stage uint64, metric []float64) {
	o.metric[0] = round.Var{ID: varMetric, Version: stage, Data: num.Bytes64(metric)}
	o.Values = o.metric[:]
}

var _ fullbatch.Optimiser = (*stages)(nil)

// stages minimises under one Ω after the other. Between two stages, one evaluation at the best point has the moments of
// the errors. It implements fullbatch.Optimiser.
type stages struct {
	objective *objective
	by        *lbfgs.Minimiser
	options   lbfgs.Options
	length    int       // iterations of a later stage
	most      uint64    // the last stage of the settings, counted from 0
	last      uint64    // the last stage: earlier if errors vanish
	stage     uint64    // counted from 0
	before    uint64    // iterations of the stages before
	measuring bool      // the next evaluation is at the best point, for Ω
	metric    []float64 // labels×labels: Ω; nil in the first stage
}

func newStages(o *objective, c *Config) *stages {
	p := &stages{objective: o, length: c.StageIterations, most: uint64(c.Stages - 1), last: uint64(c.Stages - 1),
		options: lbfgs.Options{Iterations: c.Iterations, Gradient: c.Tolerance, Fall: c.Ftol}}
	p.by = lbfgs.New(make([]float64, o.Point()), p.options)
	return p
}

// stageOptions are the options of the stage.
func (p *stages) stageOptions() lbfgs.Options {
	o := p.options
	if p.stage > 0 {
		o.Iterations = p.length
	}
	return o
}

// Point implements fullbatch.Optimiser.
func (p *stages) Point() []float64 {
	if p.measuring {
		return p.by.Best()
	}
	return p.by.Point()
}

// Best implements fullbatch.Optimiser.
func (p *stages) Best() []float64 { return p.by.Best() }

// Iterations implements fullbatch.Optimiser.
func (p *stages) Iterations() int { return int(p.before) + p.by.Iterations() }

// Done implements fullbatch.Optimiser.
func (p *stages) Done() bool { return p.by.Done() && !p.measuring }

// Tell implements fullbatch.Optimiser.
func (p *stages) Tell(f float64, g []float64) {
	if !p.measuring {
		p.by.Tell(f, g)
		p.measuring = p.by.Done() && p.stage < p.last && p.by.Reason() != lbfgs.NotFinite
		return
	}
	p.measuring = false
	metric := mixed(p.objective.moments, p.objective.rows, p.objective.labels, mixtureStep*float64(p.stage+1))
	if metric == nil { // the errors vanish: the search has ended
		p.last = p.stage
		return
	}
	p.before += uint64(p.by.Iterations())
	p.stage++
	p.metric = metric
	p.objective.setMetric(p.stage, metric)
	p.by.RestartAt(p.by.Best(), p.stageOptions())
}

// State implements fullbatch.Optimiser.
func (p *stages) State(l *fields.List) {
	l.Uint64(&p.stage, &p.before, &p.last)
	l.Bool(&p.measuring)
	n := p.objective.labels
	l.Known(&p.metric, n*n)
	most := uint64(p.options.Iterations) + p.stage*uint64(p.length)
	l.Check(p.stage <= p.last && p.last <= p.most && p.before <= most && (p.stage > 0) == (p.metric != nil) &&
		(p.stage > 0 || p.before == 0) && num.Finite64(p.metric),
		"the saved state has stage %d of %d after %d iterations, which is not possible", p.stage, p.last, p.before)
	if l.Reading() {
		if p.metric != nil {
			p.objective.setMetric(p.stage, p.metric)
		}
		p.by.Restart(p.stageOptions())
	}
	p.by.State(l)
	l.Check(p.by.Iterations() <= p.stageOptions().Iterations,
		"the saved state has iteration %d of stage %d, which is not possible", p.by.Iterations(), p.stage)
	l.Check(!p.measuring || p.by.Done() && p.stage < p.last, "the saved state has a stage that ends too early")
	l.Check(p.last == p.most || p.by.Done() && p.stage == p.last, "the saved state has no stage after stage %d",
		p.last)
	l.Check(p.measuring || !p.by.Done() || p.stage == p.last || p.by.Reason() == lbfgs.NotFinite,
		"the saved state has an end before the last stage")
}

// mixed returns a·C⁻¹ + (1-a)·I for the covariance C of errors whose moments are sums over rows; nil: C has no inverse,
// or it is not finite.
func mixed(moments []float64, rows float64, labels int, a float64) []float64 {
	c := ledoitWolf(moments, rows, labels)
	if err := linalg.Cholesky(c); err != nil {
		return nil
	}
	inverse := linalg.New(labels, labels)
	for i := range labels {
		inverse.Set(i, i, 1)
	}
	linalg.SolveLower(inverse, c)
	linalg.SolveUpper(inverse, c.T())
	metric := inverse.V
	for i := range metric {
		metric[i] *= a
	}
	for i := range labels {
		metric[i*labels+i] += 1 - a
		for k := range i { // rounding leaves a difference
			metric[k*labels+i] = metric[i*labels+k]
		}
	}
	if !num.Finite64(metric) {
		return nil
	}
	return metric
}

// ledoitWolf returns the covariance of errors as Ledoit and Wolf 2004 estimate it, of the moments that addMoments sums.
func ledoitWolf(moments []float64, rows float64, labels int) linalg.Matrix {
	share := 1 / rows
	mean, third := make([]float64, labels), make([]float64, labels)
	for c := range labels {
		mean[c], third[c] = float64(moments[1+c]*share), float64(moments[1+labels+c]*share)
	}
	fourth, products := float64(moments[1+2*labels]*share), moments[2+2*labels:]
	raw, s := linalg.New(labels, labels), linalg.New(labels, labels) // Σ e eᵀ / rows, and S
	second, trace := 0.0, 0.0
	for c := range labels {
		for k, x := range products[:c+1] {
			square := float64(x * share)
			raw.Set(c, k, square)
			raw.Set(k, c, square)
			covariance := square - float64(mean[c]*mean[k])
			s.Set(c, k, covariance)
			s.Set(k, c, covariance)
		}
		products = products[c+1:]
		second += raw.At(c, c)
		trace += s.At(c, c)
	}
	// mean ‖e - ē‖⁴, with ‖e - ē‖² = ‖e‖² - 2 ēᵀe + ‖ē‖²
	m2 := num.Dot64(mean, mean)
	quadratic := 0.0
	for c := range labels {
		quadratic += float64(mean[c] * num.Dot64(raw.V[c*labels:][:labels], mean))
	}
	centred := fourth + float64(4*quadratic) + float64(m2*m2) - float64(4*num.Dot64(mean, third)) +
		float64(2*float64(m2*second)) - float64(4*float64(m2*m2))
	mu := trace / float64(labels)
	norm, off := num.Dot64(s.V, s.V), 0.0
	for c := range labels {
		for k := range labels {
			x := s.At(c, k)
			if c == k {
				x -= mu
			}
			off += float64(x * x)
		}
	}
	b := 1.0
	if d := float64(rows * off); d > 0 {
		b = min(1, max(0, (centred-norm)/d))
	}
	for c := range labels {
		for k := range labels {
			x := float64((1 - b) * s.At(c, k))
			if c == k {
				x += float64(b * mu)
			}
			s.Set(c, k, x)
		}
	}
	return s
}
