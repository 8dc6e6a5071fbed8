package forest

import (
	"errors"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
)

// stateFormat is the version of the fields of a state.
const stateFormat = 1

// trainer implements round.Trainer.
type trainer struct {
	learner.Base
	Collected[*Tree]
	features, labels int
}

// newTrainer returns the trainer of a forest for rows of so many features and labels.
func newTrainer(c *Config, features, labels int) *trainer {
	return &trainer{
		features: features, labels: labels,
		Collected: Collected[*Tree]{
			Count: c.Trees, Peek: PeekTree,
			Decode: decoder(features, labels),
		},
	}
}

// decoder returns what decodes trees for rows of so many features and labels.
func decoder(features, labels int) func([]byte) (*Tree, error) {
	return func(b []byte) (*Tree, error) { return DecodeTree(b, features, labels) }
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
		return nil, errors.New("forest: there is no model yet, because no trees are grown")
	}
	return newModel(t.Trees, t.features, t.labels), nil
}
