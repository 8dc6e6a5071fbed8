package aabp

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/softmax"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// trainer is the coordinator's half: a gradient.Descent and nothing else.
type trainer struct {
	*gradient.Descent
	cfg              *Config
	features, labels int
}

// beginTrainer makes the trainer of a job.
func beginTrainer(j *learner.Job[Config]) (learner.Trainer, error) {
	t := newTrainer(j.Config, j.Seed, j.Manifest)
	return t, j.Config.Initial.Give(t.Function, j.WeightsFile)
}

// fitsWeights returns an error if the weights to begin from are not of the job's network.
func fitsWeights(c *Config, m *dataset.Manifest, file []byte) error {
	return c.Initial.Fits(newFunction(c, 0, m).Layers, file)
}

func newTrainer(c *Config, seed uint64, m *dataset.Manifest) *trainer {
	d := gradient.NewDescent(descentSettings(c), newFunction(c, seed, m), num.NewKey(seed, "aa-bp/theta"), m)
	return &trainer{Descent: d, cfg: c, features: m.Features, labels: m.Labels}
}

// Fold implements round.Trainer.
func (t *trainer) Fold(r *round.Result) error {
	if err := t.Descent.Fold(r); err != nil {
		return fmt.Errorf("%s: %w", Name, err)
	}
	return nil
}

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	v, err := t.Trained()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	p := softmax.Predictor{
		Features: t.features, Labels: t.labels, Function: t.Function, Weights: gradient.Weights{Theta: v[0].Data, Input: t.Fit.Values()},
	}
	return &model{Predictor: p, hidden: t.cfg.Hidden, units: t.cfg.Units, kind: t.cfg.Scaling}, nil
}
