package dldl

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
	scaling          string
	features, labels int
}

// beginTrainer makes the trainer of a job.
func beginTrainer(j *learner.Job[Config]) (learner.Trainer, error) {
	t := newTrainer(j.Config, j.Seed, j.Manifest)
	return t, j.Config.Network.Initial.Give(t.Function, j.WeightsFile)
}

// fitsWeights returns an error if the weights to begin from are not of the job's network.
func fitsWeights(c *Config, m *dataset.Manifest, file []byte) error {
	return c.Network.Initial.Fits(newFunction(c, 0, m).Layers, file)
}

func newTrainer(c *Config, seed uint64, m *dataset.Manifest) *trainer {
	f := newFunction(c, seed, m)
	d := gradient.NewDescent(descentSettings(c, f), f, num.NewKey(seed, "dldl/theta"), m)
	return &trainer{Descent: d, scaling: c.Scaling, features: m.Features, labels: m.Labels}
}

// newKernel returns the workers' half.
func newKernel(c *Config, seed uint64, m *dataset.Manifest) *softmax.Kernel {
	return &softmax.Kernel{Name: Name, Kernel: gradient.Kernel{
		Function: newFunction(c, seed, m), Outputs: m.Labels,
		Draws: gradient.Batches{Key: num.NewKey(seed, "dldl/batch"), Size: c.BatchSize},
	}}
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
	m := &model{scaling: t.scaling}
	m.Features, m.Labels, m.Function = t.features, t.labels, t.Function
	m.Weights = gradient.Weights{Theta: v[0].Data, Input: t.Fit.Values()}
	return m, nil
}
