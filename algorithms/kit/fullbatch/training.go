// Package fullbatch is the leader's half of a fit that evaluates a function and its gradient on
// all training rows at every step, in float64: one summed round an evaluation, and a round on
// the validation rows every few iterations. What is minimised is an Objective, by which method
// an Optimiser says: L-BFGS of package lbfgs, or another. After early stopping a refit may train once more, on the
// validation rows too.
//
// The workers' half is the algorithm's own. An evaluation (OpEvaluate) sums the rows, their
// losses and what the objective asks for; a validation (gradient.OpValidate) the rows and their
// losses.
package fullbatch

import (
	"errors"
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// OpEvaluate is the operation (Round.Op) of an evaluation: F64 holds the rows, the sum of their
// losses, both weighted, the number of rows if they have weights, and the objective's sums.
const OpEvaluate uint8 = 220

// SumsAt is the number of F64 values of an evaluation that are not the objective's.
const SumsAt = 3

// Rows returns the number of rows of an evaluation.
func Rows(sums []float64) uint64 {
	if sums[2] > 0 {
		return uint64(sums[2])
	}
	return uint64(sums[0])
}

// Objective is the function that a Training minimises. The workers sum over rows; the
// objective makes the function and its gradient of the sums.
type Objective interface {
	// Sums is how many values an evaluation sums beside the rows and their losses.
	Sums() int
	// AppendVars appends the values by which a kernel evaluates the function, and
	// validates, at point x. Equal versions are equal points. The values stay valid
	// until the next call.
	AppendVars(vars []round.Var, x []float64, version uint64) []round.Var
	// Fold sets g to the gradient at point x and returns the function there. rows is above 0.
	Fold(g, x []float64, rows, losses float64, sums []float64) float64
}

// Optimiser looks for a minimum, one evaluation at a time: lbfgs.Minimiser is one.
type Optimiser interface {
	// Point returns the point at which Tell wants the function. It is valid until Tell.
	Point() []float64
	// Tell hands over the function and its gradient at Point.
	Tell(f float64, g []float64)
	// Best returns the point after the last iteration, or the first point. It is valid
	// until Tell.
	Best() []float64
	// Iterations returns how many iterations are done: an iteration is one or more
	// evaluations, and sets Best.
	Iterations() int
	// Done reports whether there is nothing more to evaluate.
	Done() bool
	// State lists the fields of the state.
	State(l *fields.List)
}

// Repeater is an Optimiser that a refit can use: it searches again, for another function of the same
// variables.
type Repeater interface {
	Optimiser
	// Repeat begins again at the first point. The search ends where the one before was after so many of its
	// iterations, at least 1: after as many, or before that where it finds a minimum.
	Repeat(iterations uint64)
}

// Stager is a Repeater that minimises one function after the other, in stages.
type Stager interface {
	Repeater
	// StageDone reports whether the stage has ended and Advance must be called.
	StageDone() bool
	// Advance ends the stage. It begins the next stage, or ends the search: Done is then true. best is the iteration of
	// the least validation loss so far; 0 if nothing was validated. stale is true if the patience is at its end. margin is
	// the share by which the next stage must lower the validation loss before its losses count; 0: any fall counts.
	Advance(best uint64, stale bool) (margin float64)
}

// Phase is what the next round of a Training computes.
type Phase uint8

// The phases of a job, in the order in which they begin.
const (
	PhaseScaling Phase = iota
	PhaseOwn           // the algorithm's own rounds before the first evaluation
	PhaseEvaluate
	PhaseValidation
	PhaseDone
	phases
)

// Settings decide the course of a Training.
type Settings struct {
	gradient.StopRule
	Scaling  string // a kind of package scaling
	Steps    uint64 // iterations of the optimiser, at most
	Interval uint64 // iterations from one validation to the next
	// Refit: after early stopping train again, on the validation rows too, for as many iterations as were
	// best. The optimiser is a Repeater.
	Refit bool
	// OwnKind is the Round.Kind of the algorithm's own rounds before the first evaluation, such as
	// "means"; "": it has none.
	OwnKind string
	// Derived is the Reduce.DerivedVersion of evaluations: 1 where the kernel derives
	// something of the rows alone, else 0. A refit, which has other rows, has the next version.
	Derived uint64
}

// Training is the trainer of an algorithm that evaluates all training rows at each step, all
// but the model: it computes the scaling, then evaluates, validates after every Interval-th
// iteration and after the last one, stops early and refits. An algorithm embeds it in its
// learner.Trainer. In PhaseOwn the algorithm's own Next completes the round that Next
// returns, and its own Fold takes the result in place of Fold; after the last such round it calls
// Resume.
type Training struct {
	learner.Base
	Settings
	Objective Objective
	Optimiser Optimiser
	Fit       *scaling.Fit
	Stopping  *gradient.StoppingOf[float64]

	// Restart, if set, makes the algorithm's own rounds begin again, before a refit.
	Restart func()

	Phase       Phase
	Refitting   bool
	Before      uint64 // iterations before the refit
	Evaluations uint64
	Samples     uint64  // rows processed
	Loss        float64 // mean loss of the training rows at Best

	shards  int
	slope   []float64                     // the gradient, while an evaluation is folded
	vectors [1]gradient.VectorOf[float64] // Best, as Stopping keeps it
	round   round.Round                   // what Next returns, used again each time
	vars    []round.Var
}

// New returns the training of a job on a dataset, which begins where the optimiser
// does. The objective may read the scaling of fit, which is the training's.
func New(set Settings, o Objective, by Optimiser, fit *scaling.Fit, m *dataset.Manifest) *Training {
	t := &Training{Settings: set, Objective: o, Optimiser: by, Fit: fit, shards: len(m.Shards),
		slope: make([]float64, len(by.Point()))}
	t.Stopping = gradient.NewStopping(set.StopRule, t.best())
	return t
}

// best returns the optimiser's best point as the vectors that Stopping keeps.
func (t *Training) best() []gradient.VectorOf[float64] {
	t.vectors[0].Data = t.Optimiser.Best()
	return t.vectors[:]
}

// Start puts the training at its beginning: of the job, or of the refit.
func (t *Training) Start() {
	t.Phase = PhaseScaling
	t.Fit.Begin()
	if t.Fit.Done() {
		t.scaled()
	}
}

// scaled goes on once inputs can be scaled.
func (t *Training) scaled() {
	if t.Phase = PhaseOwn; t.OwnKind == "" {
		t.Resume()
	}
}

// Resume goes on to the next evaluation, or to the refit.
func (t *Training) Resume() {
	if s, ok := t.Optimiser.(Stager); ok && !t.Optimiser.Done() && (s.StageDone() || t.stale()) {
		best := &t.Stopping.Best
		if margin := s.Advance(best.Step, t.stale()); margin > 0 {
			t.Stopping.Stale, t.Stopping.Bar = 0, best.Loss*(1-margin)
		}
	}
	switch {
	case !t.ended():
		t.Phase = PhaseEvaluate
	case t.refits() && !t.Refitting:
		t.refit()
	default:
		t.Phase = PhaseDone
	}
}

// ended reports whether there is nothing more to evaluate, until the refit begins or in it.
func (t *Training) ended() bool {
	return t.Optimiser.Done() || t.stale()
}

// stale reports whether the last validations have shown no improvement.
func (t *Training) stale() bool { return t.Validates && !t.Refitting && t.Stopping.Over() }

// refits reports whether the job has a refit, once the validations are over.
func (t *Training) refits() bool { return t.Refit && t.Stopping.Best.Any }

// refit begins again, on all rows that are not test rows.
func (t *Training) refit() {
	t.Refitting, t.Before = true, t.iterations()
	t.Optimiser.(Repeater).Repeat(t.Stopping.Best.Step)
	if t.Restart != nil {
		t.Restart()
	}
	t.Start()
}

// roles returns the roles of the rows that are trained on.
func (t *Training) roles() dataset.Roles {
	if t.Refitting {
		return dataset.Train | dataset.Validation
	}
	return dataset.Train
}

// iterations returns the optimiser's number.
func (t *Training) iterations() uint64 { return uint64(t.Optimiser.Iterations()) }

// Next implements round.Trainer. It only describes the state. In PhaseOwn the round has no
// operation or shape yet.
func (t *Training) Next() (*round.Round, error) {
	r := &t.round
	*r = round.Round{Tasks: t.shards, Scope: round.Sharded, Roles: t.roles()}
	switch t.Phase {
	case PhaseScaling:
		t.Fit.Next(r)
	case PhaseOwn:
		r.Kind = t.OwnKind
	case PhaseEvaluate:
		r.Op, r.Kind = OpEvaluate, "evaluation"
		r.How = &round.Reduce{Shape: round.Shape{F64: SumsAt + t.Objective.Sums()}, DerivedVersion: t.derived()}
		t.vars = t.Objective.AppendVars(t.vars[:0], t.Optimiser.Point(), 2*t.Evaluations)
		r.Vars = t.vars
	case PhaseValidation:
		r.Roles = dataset.Validation
		t.vars = t.Objective.AppendVars(t.vars[:0], t.Optimiser.Best(), 2*t.iterations()+1)
		r.Vars = t.vars
		t.Stopping.Next(r)
	case PhaseDone:
		return nil, nil
	}
	return r, nil
}

// derived returns the version of what is derived of the rows that are trained on.
func (t *Training) derived() uint64 {
	if t.Derived > 0 && t.Refitting {
		return t.Derived + 1
	}
	return t.Derived
}

// Fold implements round.Trainer, but in PhaseOwn.
func (t *Training) Fold(r *round.Result) error {
	switch t.Phase {
	case PhaseScaling:
		if err := t.Fit.Fold(r.Sum.F64); err != nil {
			return err
		}
		if t.Fit.Done() {
			t.scaled()
		}
	case PhaseEvaluate:
		return t.evaluated(r.Sum.F64)
	case PhaseValidation:
		t.Stopping.Fold(r.Sum.F64, t.iterations(), t.best())
		t.Resume()
	default:
		return fmt.Errorf("results of tasks cannot be added in phase %q", t.phaseName())
	}
	return nil
}

// evaluated takes the sums of an evaluation.
func (t *Training) evaluated(sum []float64) error {
	rows := sum[0]
	switch {
	case rows == 0 && sum[2] > 0:
		return algorithms.ErrNoWeights
	case rows == 0:
		return algorithms.ErrNoRows
	}
	before := t.iterations()
	f := t.Objective.Fold(t.slope, t.Optimiser.Point(), rows, sum[1], sum[SumsAt:])
	if t.Evaluations == 0 && f-f != 0 {
		return errors.New("the loss is not finite at the start of training")
	}
	t.Optimiser.Tell(f, t.slope)
	t.Evaluations++
	t.Samples += Rows(sum)
	if t.Evaluations == 1 || t.iterations() > before {
		t.Loss = sum[1] / rows
	}
	if t.validates(before) {
		t.Phase = PhaseValidation
		return nil
	}
	t.Resume()
	return nil
}

// validates reports whether the best point is validated now, after an evaluation before which so
// many iterations were done: at the end of an interval, of a stage, and of the search.
func (t *Training) validates(before uint64) bool {
	n := t.iterations()
	if !t.Validates || t.Refitting || n == 0 {
		return false
	}
	s, staged := t.Optimiser.(Stager)
	return n > before && n%t.Interval == 0 || (t.Optimiser.Done() || staged && s.StageDone()) && t.Stopping.At != n
}

// Trained returns the point of the model: that of the best validation; the last one where
// there was none, or after a refit. It is valid until Fold.
func (t *Training) Trained() ([]float64, error) {
	switch {
	case t.Phase != PhaseDone:
		return nil, fmt.Errorf("there is no model yet: the job is at iteration %d of %d (%s)", t.iterations(), t.Steps,
			t.phaseName())
	case t.Stopping.Best.Any && !t.Refitting:
		return t.Stopping.Best.Vectors[0].Data, nil
	}
	return t.Optimiser.Best(), nil
}

// State lists the fields of a training state, from which the job goes on to the same bits.
func (t *Training) State(l *fields.List) {
	l.Byte((*uint8)(&t.Phase))
	if t.Refit {
		l.Bool(&t.Refitting)
		l.Uint64(&t.Before)
	}
	l.Uint64(&t.Evaluations, &t.Samples)
	l.Float64(&t.Loss, &t.Stopping.Bar)
	t.Fit.State(l)
	t.Optimiser.State(l)
	t.Stopping.State(l)
	_, staged := t.Optimiser.(Stager)
	l.Check(t.Stopping.Bar == 0 || staged && t.Validates && !math.IsNaN(t.Stopping.Bar),
		"the saved state has a validation loss of %v to fall below, which is not possible", t.Stopping.Bar)
	l.Check(t.occurs(), "the saved state has phase %d, which this job does not have", t.Phase)
	n := t.iterations()
	l.Check(n <= t.limit() && t.Before <= t.Steps && t.Before+n <= t.Evaluations,
		"the saved state has impossible numbers: iteration %d of %d after %d evaluations", n, t.limit(), t.Evaluations)
	validated := n
	if t.Refitting {
		validated = t.Before
	}
	l.Check(t.Stopping.At <= validated && t.Stopping.Best.Step <= validated,
		"the saved state has its last validation at iteration %d, which is not possible", t.Stopping.At)
	l.Check(!t.Stopping.Best.Any || t.Stopping.Best.Step > 0,
		"the saved state has its best validation before the first iteration")
}

// limit is the greatest number of iterations, since the refit began where there is one.
func (t *Training) limit() uint64 {
	if t.Refitting {
		return t.Stopping.Best.Step
	}
	return t.Steps
}

// occurs reports whether a run of the job can be in the phase.
func (t *Training) occurs() bool {
	begins := t.Evaluations == 0 || t.Refitting && t.iterations() == 0
	switch {
	case t.Phase >= phases, (t.Phase == PhaseScaling) == t.Fit.Done(), t.Refitting && !t.refits(), !t.Refitting &&
		t.Before > 0:
		return false
	case t.Phase <= PhaseOwn:
		return begins && (t.Phase == PhaseScaling || t.OwnKind != "")
	case t.Phase == PhaseValidation:
		return t.Validates && !t.Refitting && t.iterations() > 0
	case t.Phase == PhaseDone:
		return t.ended() && (t.Refitting || !t.refits())
	}
	s, staged := t.Optimiser.(Stager)
	return !t.ended() && !(staged && s.StageDone())
}

// phaseName is the word for the phase in progress and errors.
func (t *Training) phaseName() string {
	return [...]string{"scaling", t.OwnKind, "training", "validation", "done", "unknown"}[min(t.Phase, phases)]
}

// Progress implements round.Trainer. Steps are iterations. Losses that rounding made negative
// are told as 0.
func (t *Training) Progress() round.Progress {
	best := &t.Stopping.Best
	steps := t.Before + t.limit()
	p := round.Progress{
		Step: t.Before + t.iterations(), Steps: steps, MostSteps: steps, BestStep: best.Step, Samples: t.Samples, Loss: -1,
		Validation: max(0, t.Stopping.Loss), ValidatedAt: t.Stopping.At, Phase: t.phaseName(),
	}
	if t.Evaluations > 0 {
		p.Loss = max(0, t.Loss)
	}
	if best.Any {
		p.BestLoss = max(0, best.Loss)
	}
	switch {
	case t.Refitting && t.Phase == PhaseDone: // before the last iteration, where the search found a minimum
		p.Steps, p.Refit = p.Step, t.iterations()
	case t.Refitting:
		p.Refit = t.limit()
	case t.Refit:
		p.MostSteps = 2 * t.Steps
	}
	return p
}

// Memory estimates the memory of a training of n variables. The optimiser keeps so many bytes of them,
// and an evaluation sums so many values, apart from the rows and their losses.
func Memory(set *Settings, n int, optimiser int64, sums int, m *dataset.Manifest) algorithms.Footprint {
	vector := 8 * int64(n)
	f := algorithms.Footprint{State: optimiser + 2*vector + 256,
		Node: 8 * int64(max(SumsAt+sums, scaling.MostSums(set.Scaling, m))), Nodes: int64(len(m.Shards))}
	if set.Validates {
		f.State += vector
	}
	if set.Scaling != scaling.None {
		f.State += 16 * int64(m.Features)
	}
	return f
}
