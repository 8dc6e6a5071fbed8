package ldlf

import (
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// errNoRows says that a split leaves nothing to train on.
var errNoRows = errors.New("ldlf: no training rows")

// trainer is the coordinator's half: see algorithms.Trainer. Next only describes
// the state; Fold changes it, up to the next round that has something to compute.
type trainer struct {
	cfg    *Config
	size   sizes
	shards int
	f      featureFunction
	phi    []uint32
	*state

	round   algorithms.Round // what Next returns, used again each time
	vars    [5]algorithms.Var
	g       []float32  // the gradient, in Θ's shape
	columns [2]float64 // varColumns of the round
}

func newTrainer(c *Config, seed uint64, m *dataset.Manifest) (*trainer, error) {
	if err := checkSize(c, m); err != nil {
		return nil, err
	}
	z := newSizes(c, m.Features, m.Labels)
	f := newLinear(c, z, m.Sparse)
	t := &trainer{
		cfg: c, size: z, shards: len(m.Shards), f: f, phi: drawPhi(z, seed),
		state: newState(c, z, f.parameters()),
		g:     make([]float32, f.parameters()),
	}
	return t, nil
}

// start puts the trainer at the beginning of a job.
func (t *trainer) start(seed uint64) {
	t.f.initialise(t.theta, num.NewKey(seed, "ldlf/theta"))
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
		t.step = min(uint64(t.cfg.Steps), (t.step/set+1)*set)
		t.stepped()
	}
}

// stepped goes on after a gradient step: to a leaf update when a set of
// mini-batches is complete (an incomplete last set gets none, as in Algorithm 1).
func (t *trainer) stepped() {
	switch {
	case t.step%uint64(t.cfg.LeafBatches) == 0:
		t.phase = phaseLeaves
	case t.ended():
		t.finish()
	default:
		t.phase = phaseStep
	}
}

// finish validates a last state that no leaf update has just validated.
func (t *trainer) finish() {
	t.phase = phaseDone
	if t.cfg.ValidationFraction > 0 {
		t.phase = phaseValidate
	}
}

// updated goes on after a leaf update.
func (t *trainer) updated() {
	switch {
	case t.cfg.ValidationFraction > 0:
		t.phase = phaseValidate
	case t.ended():
		t.phase = phaseDone
	default:
		t.resume()
	}
}

// validated goes on after a validation.
func (t *trainer) validated() {
	if t.ended() || t.best.any && t.best.stale >= uint64(t.cfg.Patience) {
		t.phase = phaseDone
		return
	}
	t.resume()
}

func (t *trainer) ended() bool { return t.step >= uint64(t.cfg.Steps) }

// Progress implements algorithms.Trainer. Loss is the mean over rows and trees of
// Eq. 3 less the labels' entropy, on the last mini-batch or window.
func (t *trainer) Progress() algorithms.Progress {
	return algorithms.Progress{
		Step: t.step, Steps: uint64(t.cfg.Steps), Samples: t.samples,
		Loss: t.loss, Phase: t.phase.String(),
	}
}

// Model implements algorithms.Trainer: the state of the best validation, or the
// last one where there was none.
func (t *trainer) Model() (algorithms.Model, error) {
	if t.phase != phaseDone {
		return nil, fmt.Errorf("ldlf: no model yet: the job is at step %d of %d (%s)", t.step, t.cfg.Steps, t.phase)
	}
	theta, q := t.theta, t.q
	if t.best.any {
		theta, q = t.best.theta, t.best.q
	}
	return newModel(t.size, t.cfg.Scaling, t.input, t.phi, theta, q), nil
}
