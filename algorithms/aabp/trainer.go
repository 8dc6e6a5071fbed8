package aabp

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/gradient"
	"github.com/coppice-ldl/coppice/algorithms/softmax"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/round"
)

// trainer is the coordinator's half: a gradient.Descent and nothing else.
type trainer struct {
	*gradient.Descent
	cfg              *Config
	features, labels int
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
