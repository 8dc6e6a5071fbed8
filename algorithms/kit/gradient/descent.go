package gradient

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Phase is what the next round of a Descent computes.
type Phase uint8

// The phases of a job, in the order in which they begin.
const (
	PhaseScaling Phase = iota
	PhaseStep
	PhaseOwn // the algorithm's own rounds at the end of an interval
	PhaseValidation
	PhaseDone
	// the algorithm's own round on the validation rows, after the last validation; its number is the last one so that
	// states keep theirs
	PhaseChoice
	phases
)

// Settings decide the course of a Descent.
type Settings struct {
	Rule
	StopRule
	PlateauRule
	Scaling   string // a kind of package scaling
	BatchSize int    // rows of a mini-batch
	Steps     uint64 // gradient steps, at most
	Interval  uint64 // steps from one validation to the next, and of the algorithm's own rounds
	Refit     bool   // after early stopping train again, on the validation rows too, for as many steps as were best
	Terms     int    // how many losses a row's is the sum of, whose mean is meant: the trees of a forest; 1

	// OwnKind is the Round.Kind of the algorithm's own rounds at the end of each interval, such
	// as "leaf update"; "": it has none. With OwnFirst they come before the first step too.
	OwnKind  string
	OwnFirst bool

	// ChoiceKind is the Round.Kind of the algorithm's own round after the last validation, on the
	// validation rows and with the best vectors; "": it has none. It comes before a refit.
	ChoiceKind string

	// FreshMoments: each interval begins with moments of 0.
	FreshMoments bool
}

// Descent is the trainer of an algorithm whose Θ goes down a gradient, all but the model: it
// computes the scaling, then takes steps, validates at the end of each interval and after the
// last step, stops early and refits. An algorithm embeds it in its learner.Trainer. In PhaseOwn
// the algorithm's own Next completes the round that Next returns, and its own Fold takes the
// result in place of Fold; after the last such round of an interval it calls Resume. So it does in
// PhaseChoice, after which it calls Chosen.
type Descent struct {
	learner.Base
	Settings
	Function  Function
	Vectors   []Vector // Θ, then the algorithm's own
	Fit       *scaling.Fit
	Optimizer *Optimizer
	Stopping  *Stopping
	Plateau   Plateau

	// Restart, if set, puts the algorithm's own vectors to where training begins.
	Restart func()
	// Flat, if set, reports that the gradient is exactly zero until the next rounds of its own. The
	// steps till then count, without rounds: neither Θ nor the moments move.
	Flat func() bool

	// Idle, if set, returns which output units must not move in a step; nil: all move.
	Idle func(step uint64) []bool

	Phase     Phase
	Refitting bool
	Before    uint64  // steps before the refit
	Step      uint64  // steps done, since the refit began where there is one
	Samples   uint64  // rows processed
	Loss      float64 // mean loss of the last rows trained on; noLoss: there were none of a weight above 0

	key    num.Key // of the first Θ
	shards int
	// weighted is true if samples have weights.
	weighted bool
	input    scaling.Values // while a step is folded
	next     struct {       // what Next returns, used again each time
		round  round.Round
		reduce round.Reduce
		vars   []round.Var
	}
}

// noLoss is the loss before the first rows.
const noLoss = -1

// NewDescent returns the descent of a job on a dataset, with the algorithm's own vectors beside
// Θ, whose first values come from streams of the key. It has not started.
func NewDescent(set Settings, f Function, key num.Key, m *dataset.Manifest, own ...[]float32) *Descent {
	d := &Descent{
		Settings: set, Function: f, Vectors: []Vector{{Data: make([]float32, Parameters(f))}},
		Fit: scaling.NewFit(set.Scaling, m), Optimizer: NewOptimizer(set.Rule, f),
		Plateau: Plateau{Best: math.Inf(1)}, Loss: noLoss,
		key: key, shards: len(m.Shards), weighted: m.HasWeights,
	}
	for _, v := range own {
		d.Vectors = append(d.Vectors, Vector{Data: v})
	}
	d.next.vars = make([]round.Var, 0, 2*len(d.Vectors)+1)
	d.Stopping = NewStopping(set.StopRule, d.Vectors)
	return d
}

// Theta returns the parameters.
func (d *Descent) Theta() []float32 { return d.Vectors[0].Data }

// Start puts the descent at its beginning: of the job, or of the refit.
func (d *Descent) Start() {
	d.Function.Initialise(d.Theta(), d.key)
	if d.Restart != nil {
		d.Restart()
	}
	d.Phase = PhaseScaling
	d.Fit.Begin()
	if d.Fit.Done() {
		d.train()
	}
}

// train begins once inputs can be scaled.
func (d *Descent) train() {
	if d.OwnFirst {
		d.Phase = PhaseOwn
		return
	}
	d.resume()
}

// resume goes on to the next gradient step.
func (d *Descent) resume() {
	d.Phase = PhaseStep
	if d.Flat != nil && d.Flat() {
		d.Step = min(d.limit(), (d.Step/d.Interval+1)*d.Interval)
		d.stepped()
	}
}

// stepped goes on after a gradient step. An incomplete last interval has no rounds of the algorithm's own.
func (d *Descent) stepped() {
	switch {
	case d.Step%d.Interval == 0 && d.OwnKind != "":
		d.Phase = PhaseOwn
	case d.Step%d.Interval == 0 || d.ended():
		d.Resume()
	default:
		d.Phase = PhaseStep
	}
}

// Resume goes on at the end of an interval, after the algorithm's own rounds.
func (d *Descent) Resume() {
	d.Plateau.close(&d.PlateauRule)
	switch {
	case d.validates():
		d.Phase = PhaseValidation
	case d.ended() || d.Plateau.over(&d.PlateauRule):
		d.finish()
	default:
		d.resume()
	}
}

// finish goes on after the last step, and its validation if there is one.
func (d *Descent) finish() {
	switch best := d.Stopping.Best.Any && !d.Refitting; {
	case best && d.ChoiceKind != "":
		d.Phase = PhaseChoice
	case best:
		d.Chosen()
	default:
		d.Phase = PhaseDone
	}
}

// validates reports whether the present vectors may become the model: not in a refit, and not
// before the first gradient step, when Θ is still what it was drawn as.
func (d *Descent) validates() bool {
	return d.Validates && !d.Refitting && d.Optimizer.Updates > 0
}

// validated goes on after a validation.
func (d *Descent) validated() {
	if !d.ended() && !d.Stopping.Over() && !d.Plateau.over(&d.PlateauRule) {
		d.resume()
	} else {
		d.finish()
	}
}

// Chosen goes on after the last validation that found a best one, and the round of a choice where there is one.
func (d *Descent) Chosen() {
	if d.Refit {
		d.refit()
		return
	}
	d.Phase = PhaseDone
}

// refit begins again, on all rows that are not test rows, for as many steps as were
// best.
func (d *Descent) refit() {
	d.Refitting, d.Before, d.Step, d.Plateau = true, d.Step, 0, Plateau{Best: math.Inf(1)}
	for i := range d.Vectors {
		d.Vectors[i].Version++
	}
	d.Optimizer.Reset()
	d.Start()
}

// limit is the greatest number of steps, since the refit began where there is one.
func (d *Descent) limit() uint64 {
	if d.Refitting {
		return d.Stopping.Best.Step
	}
	return d.Steps
}

func (d *Descent) ended() bool { return d.Step >= d.limit() }

// Next implements round.Trainer. It only describes the state. In PhaseOwn and PhaseChoice the round has
// no operation, steps or shape yet.
func (d *Descent) Next() (*round.Round, error) {
	r, how := &d.next.round, &d.next.reduce
	*how = round.Reduce{}
	*r = round.Round{Tasks: d.shards, How: how, Scope: round.Sharded, Roles: dataset.Train}
	if d.Refitting {
		r.Roles |= dataset.Validation
	}
	if d.Phase != PhaseScaling && d.Phase != PhaseDone {
		vectors := d.Vectors
		if d.Phase == PhaseChoice {
			vectors = d.Stopping.Best.Vectors
		}
		d.next.vars = d.Fit.AppendVar(appendVars(d.next.vars[:0], varVectors, vectors))
		r.Vars = d.next.vars
	}
	switch d.Phase {
	case PhaseScaling:
		d.Fit.Next(r)
	case PhaseStep:
		r.Op, r.Kind, r.Tasks = OpStep, "step", algorithms.BatchUnits(d.BatchSize, d.shards)
		how.Steps = [2]uint64{d.Step, d.Step + 1}
		how.Shape = d.Function.GradientShape()
		how.Shape.F64 += GradientAt
	case PhaseOwn:
		r.Kind, r.Tasks = d.OwnKind, algorithms.BatchUnits(d.BatchSize, d.shards)
	case PhaseValidation:
		r.Roles = dataset.Validation
		d.Stopping.Next(r)
	case PhaseChoice:
		r.Kind, r.Roles = d.ChoiceKind, dataset.Validation
	case PhaseDone:
		return nil, nil
	}
	return r, nil
}

// Fold implements round.Trainer, but in PhaseOwn and PhaseChoice.
func (d *Descent) Fold(r *round.Result) error {
	switch d.Phase {
	case PhaseScaling:
		if err := d.Fit.Fold(r.Sum.F64); err != nil {
			return err
		}
		if d.Fit.Done() {
			d.train()
		}
	case PhaseStep:
		return d.foldStep(r.Sum)
	case PhaseValidation:
		d.Stopping.Fold(r.Sum.F64, d.Step, d.Vectors)
		d.validated()
	default:
		return fmt.Errorf("results of tasks cannot be added in phase %q", d.phaseName())
	}
	return nil
}

// foldStep takes the gradient step: the mean over the rows drawn and their terms of what the
// units summed. A step whose rows all have the weight 0 counts, but moves nothing.
func (d *Descent) foldStep(sum *round.Partial) error {
	rows := sum.F64[0]
	if d.FreshMoments && d.Step%d.Interval == 0 {
		d.Optimizer.Reset()
	}
	switch {
	case rows == 0 && d.weighted:
		d.Step++
		d.stepped()
		return nil
	case rows == 0:
		return algorithms.ErrNoRows
	}
	share := 1 / (rows * float64(d.Terms))
	d.input = d.Fit.Values()
	if d.PlateauPatience > 0 {
		d.Plateau.add(rows, sum.F64[1]/float64(d.Terms)+float64(rows*d.Optimizer.Penalty(d.Theta())))
	}
	if !d.move(sum, float32(share)) {
		return fmt.Errorf("a parameter of the model is no longer finite after step %d: try a lower learning_rate than %v",
			d.Step+1, d.Rate)
	}
	d.Step++
	d.Vectors[0].Version++
	d.Loss = sum.F64[1] * share
	if d.weighted {
		rows = float64(d.BatchSize) // the sum says nothing of their number
	}
	d.Samples += uint64(rows)
	d.stepped()
	return nil
}

// move takes the optimiser's step; it reports whether all of Θ is finite.
func (d *Descent) move(sum *round.Partial, share float32) (finite bool) {
	if d.Idle != nil {
		if idle := d.Idle(d.Step); idle != nil {
			return d.Optimizer.MoveBut(idle, d.Theta(), d.Function, sum, share, &d.input, d.Step)
		}
	}
	return d.Optimizer.Move(d.Theta(), d.Function, sum, share, &d.input, d.Step)
}

// Trained returns the vectors of the model: those of the best validation; the last ones where
// there was none, or after a refit.
func (d *Descent) Trained() ([]Vector, error) {
	switch {
	case d.Phase != PhaseDone:
		return nil, fmt.Errorf("there is no model yet: the job is at step %d of %d (%s)", d.Step, d.Steps, d.phaseName())
	case d.weighted && d.Loss == noLoss && d.Flat == nil: // otherwise, the gradient may have been zero in all steps
		return nil, fmt.Errorf("%w: all samples of all mini-batches have the weight 0; remove samples of weight 0 from the "+
			"data, or increase batch_size", algorithms.ErrNoWeights)
	case d.Stopping.Best.Any && !d.Refitting:
		return d.Stopping.Best.Vectors, nil
	}
	return d.Vectors, nil
}

// State lists the fields of a training state, from which the job goes on to the same bits.
func (d *Descent) State(l *fields.List) {
	l.Byte((*uint8)(&d.Phase))
	l.Bool(&d.Refitting)
	l.Uint64(&d.Before, &d.Step, &d.Samples)
	l.Float64(&d.Loss)
	d.Fit.State(l)
	for i := range d.Vectors {
		d.Vectors[i].state(l)
	}
	d.Optimizer.State(l)
	d.Stopping.State(l)
	if d.PlateauPatience > 0 {
		d.Plateau.state(l)
	}
	l.Check(d.occurs(), "the saved state has phase %d, which this job does not have", d.Phase)
	l.Check(d.Before <= d.Steps && d.Step <= d.limit() && d.limit() <= d.Steps && !(d.Phase == PhaseStep && d.ended()),
		"the saved state is at step %d of %d, which is not possible", d.Step, d.limit())
	l.Check(d.Stopping.At <= d.Before+d.Step, "the saved state has its last validation at step %d, which is not possible",
		d.Stopping.At)
}

// occurs reports whether a run of the job can be in the phase.
func (d *Descent) occurs() bool {
	switch {
	case d.Phase >= phases, (d.Phase == PhaseScaling) == d.Fit.Done(), d.Refitting && !(d.Refit && d.Stopping.Best.Any):
		return false
	case d.Phase == PhaseOwn:
		return d.OwnKind != ""
	case d.Phase == PhaseValidation:
		return d.validates()
	case d.Phase == PhaseChoice:
		return d.ChoiceKind != "" && d.Stopping.Best.Any && !d.Refitting
	}
	return true
}

// phaseName is the word for the phase in progress and errors.
func (d *Descent) phaseName() string {
	return [...]string{"scaling", "training", d.OwnKind, "validation", "done", d.ChoiceKind,
		"unknown"}[min(d.Phase, phases)]
}

// Progress implements round.Trainer. Loss is the mean over rows and terms on the last rows
// trained on. Losses that rounding made negative are told as 0.
func (d *Descent) Progress() round.Progress {
	best := &d.Stopping.Best
	p := round.Progress{
		Step: d.Before + d.Step, Steps: d.Before + d.limit(), BestStep: best.Step, Samples: d.Samples,
		Loss: noLoss, Validation: max(0, d.Stopping.Loss), ValidatedAt: d.Stopping.At, Phase: d.phaseName(),
	}
	if d.Loss != noLoss {
		p.Loss = max(0, d.Loss)
	}
	if best.Any {
		p.BestLoss = max(0, best.Loss)
	}
	if d.Refitting {
		p.Refit = d.limit()
	}
	// MostSteps stays 0 if it is known how many steps the job takes.
	switch {
	case d.PlateauPatience > 0:
		p.MostSteps = d.limit()
	case !d.Validates || d.Refitting:
	case d.Refit:
		p.MostSteps = 2 * d.limit()
	case d.Patience*d.Interval < d.limit(): // validations may end training before
		p.MostSteps = d.limit()
	}
	return p
}

// Memory estimates the memory of a Descent; the algorithm's own vectors have own values. Rounds of
// the algorithm's own may need larger nodes. Model has Θ and the scaling.
func Memory(set *Settings, f Function, m *dataset.Manifest, own int) algorithms.Footprint {
	n := Parameters(f)
	theta, vectors := 4*int64(n), 4*int64(n+own)
	a := algorithms.Footprint{State: vectors + theta + min(theta, 4*PartValues) + 256, Model: theta,
		Nodes: int64(len(m.Shards))}
	if set.Adam {
		a.State += theta
	}
	if set.Validates {
		a.State += vectors
		if set.Margin > 0 {
			a.State += vectors
		}
	}
	if set.Scaling != scaling.None {
		a.State += 16 * int64(m.Features)
		a.Model += 16 * int64(m.Features)
	}
	step := f.GradientShape()
	a.Node = 8*int64(GradientAt+step.F64) + 4*int64(step.F32) + 4*int64(step.Rows)*int64(1+step.Width)
	a.Node = max(a.Node, 8*int64(scaling.MostSums(set.Scaling, m)), 8*5)
	return a
}
