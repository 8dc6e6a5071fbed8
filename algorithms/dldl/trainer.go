package dldl

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/softmax"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// beginTrainer makes the trainer of a job.
func beginTrainer(j *learner.Job[Config]) (learner.Trainer, error) {
	t := newTrainer(j.Config, j.Seed, j.Manifest)
	return t, j.Config.Network.Initial.Give(t.Function, j.WeightsFile)
}

// fitsWeights returns an error if the weights to begin from are not of the job's network.
func fitsWeights(c *Config, m *dataset.Manifest, file []byte) error {
	return c.Network.Initial.Fits(newFunction(c, 0, m).Layers, file)
}

func newTrainer(c *Config, seed uint64, m *dataset.Manifest) *softmax.Trainer {
	f := newFunction(c, seed, m)
	d := gradient.NewDescent(descentSettings(c, f), f, num.NewKey(seed, "dldl/theta"), m)
	return &softmax.Trainer{Descent: d, Name: Name, Features: m.Features, Labels: m.Labels,
		NewModel: func(p softmax.Predictor) algorithms.Model {
			return &model{Predictor: p, scaling: c.Scaling}
		}}
}

// newKernel returns the workers' half.
func newKernel(c *Config, seed uint64, m *dataset.Manifest) *softmax.Kernel {
	return &softmax.Kernel{Name: Name, Kernel: gradient.Kernel{
		Function: newFunction(c, seed, m), Outputs: m.Labels,
		Draws: gradient.Batches{Key: num.NewKey(seed, "dldl/batch"), Size: c.BatchSize},
	}}
}
