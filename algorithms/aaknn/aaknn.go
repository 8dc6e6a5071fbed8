// Package aaknn is AA-kNN of Geng 2016: a row is predicted the mean label distribution of the k
// training rows that are nearest to it.
//
// Distances are Euclidean, of features that may be scaled; all neighbours weigh the same; of rows
// at the same distance, rows with lower original numbers are nearer. With k auto, a round predicts
// each training row from the others, and finds the number of neighbours with the least K-L.
//
// Of targets in bounds, the mean of the neighbours' targets is predicted, and k auto finds the least squared error.
// Package gldknn has its algorithm, for targets alone, from here.
package aaknn

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// New returns the algorithm.
func New() algorithms.Algorithm {
	return Variant{
		Name: Name,
		About: algorithms.About{
			Class:   "AAKNN",
			Summary: "k nearest neighbours",
			When:    "Use it if you must explain each prediction by similar training samples.",
			Paper:   `Geng 2016, "Label Distribution Learning"`,
		},
		Doc: "the AA-kNN of Geng 2016: the mean label distribution of the k nearest training samples, which the model " +
			"keeps",
		Predicts: algorithms.Distribution,
		Paper:    "the k of Geng 2016",
		Loss:     "K-L, or squared error of targets",
	}.Make()
}

// Variant has what algorithms with this model do not share.
type Variant struct {
	Name     string
	About    algorithms.About
	Doc      string
	Predicts algorithms.Output
	// Paper says where the k of preset paper is from, and Loss what k auto minimises.
	Paper, Loss string
}

// Make returns the algorithm.
func (v Variant) Make() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name:       v.Name,
		About:      v.About,
		Doc:        v.Doc,
		Predicts:   v.Predicts,
		Targets:    true,
		Unweighted: "it has no loss: it predicts the mean of the nearest samples",
		Settings:   settingsOf(v.Paper, v.Loss),
		Fill:       (*Config).fill,
		Fits:       (*Config).fits,
		Trainer:    func(j *learner.Job[Config]) (learner.Trainer, error) { return newTrainer(j), nil },
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return &kernel{config: j.Config, labels: j.Manifest.Labels, targets: j.Manifest.LabelType.Bounds != nil}, nil
		},
		StateVersion: 1,
		Model:        learner.Decoder((*model).tensors),
		Memory:       memory,
	})
}

// memory estimates the memory of a trainer: the training rows, in a state and in the model.
func memory(c *Config, m *dataset.Manifest) algorithms.Footprint {
	encoded, tensors := rows.Bytes(m, &wanted)
	f := algorithms.Footprint{
		State: encoded + stateBytes, Model: tensors + 4*modelSettings,
		Node: int64(8 * scaling.MostSums(c.Scaling, m)), Nodes: int64(len(m.Shards)),
	}
	if c.Scaling != scaling.None {
		f.State += 16*int64(m.Features) + 17
		f.Model += 16 * int64(m.Features)
	}
	return f
}
