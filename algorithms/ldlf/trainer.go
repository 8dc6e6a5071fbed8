package ldlf

import (
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/round"
)

// errNoRows says that a split leaves nothing to train on.
var errNoRows = errors.New("ldlf: no training rows")

// trainer is the coordinator's half: see algorithms.Trainer. Next only describes
// the state; Fold changes it, up to the next round that has something to compute.
type trainer struct {
	learner.Base
	cfg    *Config
	size   sizes
	shards int
	seed   uint64
	f      featureFunction
	phi    []uint32
	*state

	round   round.Round // what Next returns, used again each time
	vars    [5]round.Var
	g       []float32  // the gradient of a part of Θ
	columns [2]float64 // varColumns of the round
}

func newTrainer(c *Config, seed uint64, m *dataset.Manifest) *trainer {
	z := newSizes(c, m.Features, m.Labels)
	f := newLinear(c, z, m.Sparse)
	return &trainer{
		cfg: c, size: z, shards: len(m.Shards), seed: seed, f: f, phi: drawPhi(z, seed),
		state: newState(c, z, f.parameters()),
		g:     make([]float32, min(f.parameters(), max(1, gradientValues/z.outputs)*z.outputs)),
	}
}

// gradientValues is about how many parameters the optimiser moves at once: their gradient
// is 16 KiB, which the first level of the cache keeps.
const gradientValues = 1 << 12

// Start implements learner.Trainer.
func (t *trainer) Start() { t.start() }

// start puts the trainer at the beginning of a pass: of the job, or of the refit.
func (t *trainer) start() {
	t.f.initialise(t.theta, num.NewKey(t.seed, "ldlf/theta"))
	switch t.cfg.Scaling {
	case scalingStandard:
		t.phase = phaseSums
	case scalingMinMax:
		t.phase = phaseExtremes
	default:
		t.train()
	}
}

// train begins Algorithm 1.
func (t *trainer) train() {
	if t.cfg.LeafFirst {
		t.phase = phaseLeaves
		return
	}
	t.resume()
}

// resume goes on to the next gradient step. While every q is uniform a step has a
// gradient of exactly zero: it counts, but neither Θ nor the moments move.
func (t *trainer) resume() {
	t.phase = phaseStep
	if isUniform(t.q, t.size.labels) {
		set := uint64(t.cfg.LeafBatches)
		t.step = min(t.limit(), (t.step/set+1)*set)
		t.stepped()
	}
}

// stepped goes on after a gradient step: to a leaf update when a set of
// mini-batches is complete (an incomplete last set gets none, as in Algorithm 1).
func (t *trainer) stepped() {
	switch {
	case t.step%uint64(t.cfg.LeafBatches) == 0:
		t.phase = phaseLeaves
	case !t.ended():
		t.phase = phaseStep
	case t.validates(): // a last state that no leaf update has just validated
		t.phase = phaseValidate
	default:
		t.phase = phaseDone
	}
}

// updated goes on after a leaf update.
func (t *trainer) updated() {
	switch {
	case t.validates():
		t.phase = phaseValidate
	case t.ended():
		t.phase = phaseDone
	default:
		t.resume()
	}
}

// validates reports whether the present state may be kept: not in a refit, and not
// from before the first gradient step, when Θ is still what it was drawn as.
func (t *trainer) validates() bool {
	return t.cfg.ValidationFraction > 0 && !t.refits() && t.updates > 0
}

// validated goes on after a validation.
func (t *trainer) validated() {
	switch {
	case !t.ended() && t.stale < uint64(t.cfg.Patience):
		t.resume()
	case t.cfg.Refit && t.best.any:
		t.refit()
	default:
		t.phase = phaseDone
	}
}

// refit begins again, on all rows that are not test rows, for as many steps as were
// best.
func (t *trainer) refit() {
	t.passes, t.before = 1, t.step
	t.step, t.updates, t.column = 0, 0, 0
	t.thetaVersion++
	t.qVersion++
	clear(t.first)
	clear(t.second)
	fillUniform(t.q, t.size.labels)
	t.start()
}

func (t *trainer) refits() bool { return t.passes > 0 }

// limit is the greatest number of steps of this pass.
func (t *trainer) limit() uint64 {
	if t.refits() {
		return t.best.step
	}
	return uint64(t.cfg.Steps)
}

func (t *trainer) ended() bool { return t.step >= t.limit() }

// learns returns the roles of the rows that this pass learns from.
func (t *trainer) learns() dataset.Roles {
	if t.refits() {
		return dataset.Train | dataset.Validation
	}
	return dataset.Train
}

// Progress implements round.Trainer. Loss is the mean over rows and trees of
// Eq. 3 less the labels' entropy, on the last mini-batch or window. Losses that rounding
// made negative are told as 0.
func (t *trainer) Progress() round.Progress {
	p := round.Progress{
		Step: t.before + t.step, Steps: t.before + t.limit(), MostSteps: t.mostSteps(), BestStep: t.best.step, Samples: t.samples,
		Loss: -1, Validation: max(0, t.validation), ValidatedAt: t.validatedAt, Phase: t.phase.String(),
	}
	if t.samples > 0 {
		p.Loss = max(0, t.loss)
	}
	if t.best.any {
		p.BestLoss = max(0, t.best.loss)
	}
	if t.refits() {
		p.Refit = t.limit()
	}
	return p
}

// mostSteps is how many steps a job with early stopping takes at the most; 0 where it is
// known how many it takes.
func (t *trainer) mostSteps() uint64 {
	switch {
	case t.cfg.ValidationFraction == 0 || t.refits():
		return 0
	case t.cfg.Refit:
		return 2 * t.limit()
	case uint64(t.cfg.Patience)*uint64(t.cfg.LeafBatches) >= t.limit(): // no earlier than at the end
		return 0
	}
	return t.limit()
}

// Model implements algorithms.Trainer: the state of the best validation; the last one
// where there was none, or after a refit.
func (t *trainer) Model() (algorithms.Model, error) {
	if t.phase != phaseDone {
		return nil, fmt.Errorf("ldlf: no model yet: the job is at step %d of %d (%s)", t.step, t.cfg.Steps, t.phase)
	}
	theta, q := t.theta, t.q
	if t.best.any && !t.refits() {
		theta, q = t.best.theta, t.best.q
	}
	return newModel(t.size, t.cfg.Scaling, t.input, t.phi, theta, q), nil
}
