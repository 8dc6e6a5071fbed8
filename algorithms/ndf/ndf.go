// Package ndf implements neural decision forests (Rota Bulò and Kontschieder 2014, "Neural
// decision forests for semantic image labelling"): trees on bootstrap samples whose split nodes
// are small randomised multi-layer perceptrons.
//
// The terms are those of the paper's supplement. A split node sends a row x to the left with
// probability f_L = f(x; Θ) = σ(w₂·tanh(W₁ z + b₁) + b₂) and to the right with f_R = 1 - f_L,
// where z are some of the row's features, standardised at the node. Θ raises the likelihood
// Q(Θ) of the node's labels under the child posteriors π, which maximise it by Eq. 4 of the
// supplement; an ℓ1 penalty on the weights makes it Q_Reg(Θ). Labels are classes in the paper.
// Label distributions d are taken as d_c copies of each class:
//
//	log Q(Θ) = max_π Σ_s Σ_c d_sc ln(π_c^L f_L(x_s) + π_c^R f_R(x_s))
//
// The bootstrap sample of a tree is drawn with probabilities in proportion to the weights of the rows, if they have
// weights. So a row's loss is weighted by its draws.
//
// Rows with f_L > ½ go on to the left child. A leaf predicts the mean distribution of its
// training rows, and a forest the mean over its trees; with soft routing a tree predicts all of
// its leaves, weighted by the product of f along their paths.
//
// Trees are collected, encoded and restored by package forest. DESIGN.md says what decides the
// bits, and FORMAT.md describes the bytes.
package ndf

import (
	"errors"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Name is the word that selects the algorithm in a spec.
const Name = "ndf"

// stateFormat is the version of the fields of a state.
const stateFormat = 1

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "NDF",
			Summary: "forest whose split nodes are networks",
			When:    "Use it for a class for each pixel of an image.",
			Paper:   `Rota Bulò and Kontschieder 2014, "Neural decision forests for semantic image labelling"`,
		},
		Doc: "neural decision forests (Rota Bulò and Kontschieder 2014): trees whose split nodes are small neural " +
			"networks, " +
			"each trained on the samples that reach it",
		Predicts:     algorithms.Distribution,
		Settings:     settings,
		Fits:         func(c *Config, m *dataset.Manifest) error { return c.checkSizes(m) },
		Trainer:      func(j *learner.Job[Config]) (learner.Trainer, error) { return newTrainer(j.Config, j.Manifest), nil },
		StateVersion: stateFormat,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return &kernel{cfg: *j.Config, seed: j.Seed, trees: shapeOf(j.Config, j.Manifest)}, nil
		},
		Model:  func(tensors []algorithms.Tensor) (algorithms.Model, error) { return decodeModel(tensors) },
		Memory: memory,
	})
}

// trainer implements round.Trainer.
type trainer struct {
	learner.Base
	forest.Collected[*Tree]
	trees treeShape
}

func newTrainer(c *Config, m *dataset.Manifest) *trainer {
	t := &trainer{trees: shapeOf(c, m)}
	t.Collected = forest.Collected[*Tree]{Count: c.Trees, Peek: peekTree, Decode: t.trees.decode}
	return t
}

// Counters implements algorithms.Trainer.
func (t *trainer) Counters() map[string]uint64 {
	evaluations := uint64(0)
	for _, tree := range t.Trees {
		evaluations += tree.Evaluations
	}
	return map[string]uint64{"gain_evaluations": evaluations}
}

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	if t.Trees == nil {
		return nil, errors.New("ndf: there is no model yet, because no trees are grown")
	}
	return t.trees.model(t.Trees), nil
}

// memory estimates the memory of a trainer. A node is split while min_samples or more reach it, into two
// children that are not empty. The state is all trees, encoded and decoded; nothing is
// reduced.
func memory(c *Config, m *dataset.Manifest) algorithms.Footprint {
	draws := int64(max(1, c.draws(m.Rows)))
	leaves := min(draws, int64(1)<<c.MaxDepth, draws*int64(c.MaxDepth)/int64(max(1, c.MinSamples))+1)
	inputs := c.inputs(m.Features)
	tree := int64(treeHead+64) + 2*leaves*32 + 4*leaves*int64(m.Labels) +
		4*leaves*(1+3*int64(inputs)+int64(parameters(inputs, c.hidden().most)))
	model := int64(c.Trees) * tree
	return algorithms.Footprint{State: 2 * model, Model: model}
}

// settings lists what a spec may say, in the order of help texts. The supplement names neither sizes nor a
// solver. Preset auto has a share and an l1 that were chosen on training rows of the digits (DESIGN.md).
var settings = param.Table[Config]{
	param.Word("preset", "auto uses soft routing and the values with the best measured results. paper routes each "+
		"sample to one leaf of a tree",
		func(c *Config) *string { return &c.Preset }, param.Auto, param.Paper),
	param.Int("trees", "number of trees in the forest", 1, maxTrees, 10, func(c *Config) *int { return &c.Trees }),
	param.Int("max_depth", "maximum depth of a tree; the root has depth 0, and every node at the maximum depth is a leaf",
		1, maxDepth, 5,
		func(c *Config) *int { return &c.MaxDepth }),
	param.Int("min_samples", "minimum number of samples in a node that is split, repeated bootstrap draws included", 2,
		1<<26, 10, func(c *Config) *int {
			return &c.MinSamples
		}),
	param.Float("sampling_ratio", "size of each tree's bootstrap sample, as a fraction of the training samples",
		0.0001, 1, 1,
		func(c *Config) *float64 { return &c.SamplingRatio }),
	param.Float("share", "fraction of the features that the network of a node reads; each node draws its features at "+
		"random", 0.000001, 1, 0.7,
		func(c *Config) *float64 { return &c.Share }).Preset(param.Paper, 0.5),
	param.Text("hidden", "number of hidden units of a node's network: a number (0: a perceptron), a range such as 4-16 "+
		"from which the number is drawn, "+
		"or adaptive: a twentieth of the node's samples, from 2 to 32 (with adaptive-N at most N)",
		"a number up to 512, a range such as 4-16, adaptive or adaptive-N", "8", checkHidden, func(c *Config) *string {
			return &c.Hidden
		}),
	param.Int("starts", "number of random networks that a node starts with; only the network with the lowest loss is "+
		"trained", 1, maxStarts, 5, func(c *Config) *int {
		return &c.Starts
	}),
	param.Int("iters", "number of steps of Adam for the network of a node", 0, 2000, 100, func(c *Config) *int {
		return &c.Iters
	}),
	param.Float("learning_rate", "learning rate of Adam", 1e-12, 1e3, 0.05, func(c *Config) *float64 {
		return &c.LearningRate
	}),
	param.Float("l1", "factor of the ℓ1 penalty on the weights of a node's network, biases excluded. The penalty is "+
		"added to the node's loss, the mean cross-entropy of its samples", 0, 1e3, 1e-3,
		func(c *Config) *float64 { return &c.L1 }).Preset(param.Paper, 1e-4),
	param.Int("batch_above", "number of samples in a node above which its steps use mini-batches", 1, 1<<26, 4096,
		func(c *Config) *int {
			return &c.BatchAbove
		}),
	param.Int("batch_size", "number of samples in a mini-batch", 1, 1<<26, 1024, func(c *Config) *int {
		return &c.BatchSize
	}),
	param.Word("routing", "routing of a sample in predictions: hard (to one leaf of a tree) or soft (to all leaves, "+
		"weighted by the networks' outputs)",
		func(c *Config) *string {
			return &c.Routing
		}, routingHard, routingSoft).Preset(param.Auto, routingSoft).Says("auto: soft; paper: hard").InPaper(),
}
