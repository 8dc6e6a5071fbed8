package ndf

import (
	"errors"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
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
		Doc: "neural decision forests (Rota Bulò and Kontschieder 2014): trees whose split nodes are small neural networks, " +
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
	tree := int64(treeHead+64) + 2*leaves*32 + 4*leaves*int64(m.Labels) + 4*leaves*(1+3*int64(inputs)+int64(parameters(inputs, c.hidden().most)))
	model := int64(c.Trees) * tree
	return algorithms.Footprint{State: 2 * model, Model: model}
}
