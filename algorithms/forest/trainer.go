package forest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/round"
)

// ErrState is wrapped by every error about a trainer's state.
var ErrState = errors.New("forest: not a state of this job")

// stateFormat is the version byte of a trainer's state.
const stateFormat = 1

// trainer implements round.Trainer: one collected round with a unit for each
// tree (Algorithm 2 of Chen et al. 2018).
type trainer struct {
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

// AppendState implements round.Trainer: the format byte, then, once they are
// collected, the encoded trees, each after its length (u64).
func (t *trainer) AppendState(dst []byte) ([]byte, error) {
	dst = append(dst, stateFormat)
	size := 0
	for _, tree := range t.trees {
		size += 8 + tree.Size()
	}
	dst = slices.Grow(dst, size)
	for _, tree := range t.trees {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(tree.Size()))
		dst = tree.AppendBinary(dst)
	}
	return dst, nil
}

// restore reads what AppendState wrote for the same job.
func (t *trainer) restore(b []byte) error {
	if len(b) == 0 || b[0] != stateFormat {
		return fmt.Errorf("%w: this program reads format %d", ErrState, stateFormat)
	}
	b = b[1:]
	if len(b) == 0 {
		return nil
	}
	var encoded [][]byte
	for len(b) > 0 && len(encoded) <= t.cfg.Trees {
		if len(b) < 8 || binary.LittleEndian.Uint64(b) > uint64(len(b)-8) {
			return fmt.Errorf("%w: tree %d is cut short", ErrState, len(encoded))
		}
		n := int(binary.LittleEndian.Uint64(b))
		encoded = append(encoded, bytes.Clone(b[8:8+n]))
		b = b[8+n:]
	}
	if err := t.Fold(&round.Result{Collected: encoded}); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	return nil
}
