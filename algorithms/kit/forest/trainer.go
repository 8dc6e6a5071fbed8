package forest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
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

// Grown is a tree that a unit grew, in the form that the trainer collects.
type Grown interface {
	// AppendBinary appends the tree's encoded form, whose length is Size.
	AppendBinary(b []byte) []byte
	Size() int
	// Training returns the number of samples that the tree was grown on, and their mean K-L
	// divergence from their leaves, in nats.
	Training() (samples uint32, loss float64)
}

// Collected is the part of a trainer that all forests of collected trees share: one round with
// a unit for each tree (Algorithm 2 of Chen et al. 2018), its progress, and the state.
type Collected[T Grown] struct {
	Count int // trees that the job asks for
	Trees []T // once they are collected
	// Decode reads an encoded tree, whose memory the tree may keep.
	Decode func(b []byte) (T, error)
	// Peek returns what Grown.Training returns of an encoded tree.
	Peek func(b []byte) (samples uint32, loss float64, err error)

	digests []string // of the encoded trees that are known
}

// OpGrow is the operation of the round: unit i grows tree i on the whole dataset's training
// rows.
const OpGrow uint8 = 1

// Next implements round.Trainer.
func (t *Collected[T]) Next() (*round.Round, error) {
	if t.Trees != nil {
		return nil, nil
	}
	return &round.Round{Op: OpGrow, Kind: "tree", Tasks: t.Count, Scope: round.Whole, How: &round.Gather{},
		Roles: dataset.Train}, nil
}

// Fold implements round.Trainer. It drops each result once the tree is decoded, so
// that at most one tree is in memory twice.
func (t *Collected[T]) Fold(res *round.Result) error {
	if len(res.Gathered) != t.Count {
		return fmt.Errorf("forest: got %d trees, want %d", len(res.Gathered), t.Count)
	}
	trees := make([]T, len(res.Gathered))
	for i, encoded := range res.Gathered {
		tree, err := t.Decode(encoded)
		if err != nil {
			return fmt.Errorf("tree %d: %w", i, err)
		}
		trees[i], res.Gathered[i] = tree, nil
	}
	t.Trees, t.digests = trees, slices.Clone(res.Digests)
	return nil
}

// Pieces implements algorithms.Composite: the encoded trees.
func (t *Collected[T]) Pieces() []round.Chunk {
	list := make([]round.Chunk, len(t.Trees))
	for i, tree := range t.Trees {
		p := &piece{tree: tree}
		if i < len(t.digests) {
			p.digest = t.digests[i]
		}
		list[i] = p
	}
	return list
}

// piece is a tree as a round.Piece. It is encoded whenever somebody asks for its bytes.
type piece struct {
	tree   Grown
	mu     sync.Mutex
	digest string // empty: not known yet
}

// Digest implements round.Piece.
func (p *piece) Digest() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.digest == "" {
		sum := sha256.Sum256(p.encode())
		p.digest = hex.EncodeToString(sum[:])
	}
	return p.digest
}

// Bytes implements round.Piece.
func (p *piece) Bytes() ([]byte, error) { return p.encode(), nil }

func (p *piece) encode() []byte { return p.tree.AppendBinary(make([]byte, 0, p.tree.Size())) }

// Compose decodes the trees of a forest, one after the other, so that only one is in memory twice.
func Compose[T Grown](pieces []round.Chunk, decode func(b []byte) (T, error)) ([]T, error) {
	trees := make([]T, len(pieces))
	for i, p := range pieces {
		encoded, err := p.Bytes()
		if err == nil {
			trees[i], err = decode(encoded)
		}
		if err != nil {
			return nil, fmt.Errorf("tree %d: %w", i, err)
		}
	}
	return trees, nil
}

// Progress implements round.Trainer: a step is a tree, a sample a draw.
func (t *Collected[T]) Progress() round.Progress {
	p := round.Progress{Steps: uint64(t.Count), Step: uint64(len(t.Trees)), Loss: -1, Phase: "growing trees"}
	if t.Trees == nil {
		return p
	}
	p.Loss = 0
	for _, tree := range t.Trees {
		samples, loss := tree.Training()
		p.Samples += uint64(samples)
		p.Loss += loss
	}
	p.Loss /= float64(len(t.Trees))
	return p
}

// StepLosses implements curve.Stepped: after each tree, the mean loss of the trees so far.
func (t *Collected[T]) StepLosses() []float64 {
	losses, sum := make([]float64, len(t.Trees)), 0.0
	for i, tree := range t.Trees {
		_, loss := tree.Training()
		sum += loss
		losses[i] = sum / float64(i+1)
	}
	return losses
}

// ResultProgress implements round.TaskReporter: the result is an encoded tree.
func (t *Collected[T]) ResultProgress(encoded []byte) (round.Progress, error) {
	samples, loss, err := t.Peek(encoded)
	return round.Progress{Step: 1, Steps: 1, Samples: uint64(samples), Loss: loss}, err
}

// RoundProgress implements round.TaskReporter.
func (t *Collected[T]) RoundProgress(units []round.TaskProgress) round.Progress {
	p := round.Progress{Steps: uint64(t.Count), Loss: -1, Phase: "growing trees"}
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

// State implements learner.Trainer: the encoded trees, once they are collected.
func (t *Collected[T]) State(l *fields.List) {
	if !l.Tail(t.Trees != nil) {
		return
	}
	size := 0
	for _, tree := range t.Trees {
		size += 8 + tree.Size()
	}
	l.Grow(size)
	for i := range t.Count {
		size, encode := 0, func(dst []byte) []byte { return dst }
		if i < len(t.Trees) {
			size, encode = t.Trees[i].Size(), t.Trees[i].AppendBinary
		}
		l.Part(size, encode, func(encoded []byte) error {
			tree, err := t.Decode(bytes.Clone(encoded))
			t.Trees = append(t.Trees, tree)
			return err
		})
	}
}
