package aabp

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
	return t, j.Config.Initial.Give(t.Function, j.WeightsFile)
}

// fitsWeights returns an error if the weights to begin from are not of the job's network.
func fitsWeights(c *Config, m *dataset.Manifest, file []byte) error {
	return c.Initial.Fits(newFunction(c, 0, m).Layers, file)
}

func newTrainer(c *Config, seed uint64, m *dataset.Manifest) *softmax.Trainer {
	d := gradient.NewDescent(descentSettings(c), newFunction(c, seed, m), num.NewKey(seed, "aa-bp/theta"), m)
	return &softmax.Trainer{Descent: d, Name: Name, Features: m.Features, Labels: m.Labels,
		NewModel: func(p softmax.Predictor) algorithms.Model {
			targets := m.LabelType.Bounds != nil
			if targets {
				p.Output = logistic
			}
			return &model{Predictor: p, hidden: c.Hidden, units: c.Units, kind: c.Scaling, targets: targets}
		}}
}
