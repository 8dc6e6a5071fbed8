package forest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/fields"
	"github.com/coppice-ldl/coppice/algorithms/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/round"
)

// stateFormat is the version of the fields of a state.
const stateFormat = 1

// trainer implements round.Trainer: one collected round with a unit for each
// tree (Algorithm 2 of Chen et al. 2018).
type trainer struct {
	learner.Base
	cfg              *Config
	features, labels int

	trees []*Tree // once collected
	round round.Round
}

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	t.round = round.Round{Done: t.trees != nil}
	if !t.round.Done {
		t.round = round.Round{
			Op: opGrow, Kind: "tree", Units: t.cfg.Trees, Scope: round.Whole, How: round.Collect, Roles: dataset.Train,
		}
	}
	return &t.round, nil
}

// Fold implements round.Trainer. It drops each result once the tree is decoded, so
// that at most one tree is in memory twice.
func (t *trainer) Fold(res *round.Result) error {
	if len(res.Collected) != t.cfg.Trees {
		return fmt.Errorf("forest: %d trees were collected, %d are wanted", len(res.Collected), t.cfg.Trees)
	}
	trees := make([]*Tree, len(res.Collected))
	for i, encoded := range res.Collected {
		tree, err := DecodeTree(encoded, t.features, t.labels)
		if err != nil {
			return fmt.Errorf("tree %d: %w", i, err)
		}
		trees[i], res.Collected[i] = tree, nil
	}
	t.trees = trees
	return nil
}

// Progress implements round.Trainer: a step is a tree, a sample a draw.
func (t *trainer) Progress() round.Progress {
	p := round.Progress{Steps: uint64(t.cfg.Trees), Step: uint64(len(t.trees)), Loss: -1, Phase: "growing trees"}
	if t.trees == nil {
		return p
	}
	p.Loss = 0
	for _, tree := range t.trees {
		p.Samples += uint64(tree.samples[0])
		p.Loss += tree.Loss
	}
	p.Loss /= float64(len(t.trees))
	return p
}

// StepLosses implements curve.Stepped: after each tree, the mean loss of the trees so far.
func (t *trainer) StepLosses() []float64 {
	losses, sum := make([]float64, len(t.trees)), 0.0
	for i, tree := range t.trees {
		sum += tree.Loss
		losses[i] = sum / float64(i+1)
	}
	return losses
}

// ResultProgress implements algorithms.UnitReporter: the result is an encoded tree.
func (t *trainer) ResultProgress(encoded []byte) (round.Progress, error) {
	samples, loss, err := peekTree(encoded)
	return round.Progress{Step: 1, Steps: 1, Samples: uint64(samples), Loss: loss}, err
}

// RoundProgress implements algorithms.UnitReporter.
func (t *trainer) RoundProgress(units []round.UnitProgress) round.Progress {
	p := round.Progress{Steps: uint64(t.cfg.Trees), Loss: -1, Phase: "growing trees"}
	known, loss := 0, 0.0
	for i := range units {
		u := &units[i]
		if u.Done {
			p.Step++
		}
		if u.Known && u.Done {
			known++
			p.Samples += u.Samples
			loss += u.Loss
		}
	}
	if known > 0 {
		p.Loss = loss / float64(known)
	}
	return p
}

// Counters implements algorithms.Trainer.
func (t *trainer) Counters() map[string]uint64 {
	evaluations := uint64(0)
	for _, tree := range t.trees {
		evaluations += tree.Evaluations
	}
	return map[string]uint64{"gain_evaluations": evaluations}
}

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	if t.trees == nil {
		return nil, errors.New("forest: no tree has been collected yet")
	}
	return newModel(t.trees, t.features, t.labels), nil
}

// State implements learner.Trainer: the encoded trees, once they are collected.
func (t *trainer) State(l *fields.List) {
	if !l.Tail(t.trees != nil) {
		return
	}
	size := 0
	for _, tree := range t.trees {
		size += 8 + tree.Size()
	}
	l.Grow(size)
	for i := range t.cfg.Trees {
		tree := new(Tree)
		if i < len(t.trees) {
			tree = t.trees[i]
		}
		l.Part(tree.Size(), tree.AppendBinary, func(encoded []byte) error {
			tree, err := DecodeTree(bytes.Clone(encoded), t.features, t.labels)
			t.trees = append(t.trees, tree)
			return err
		})
	}
}
