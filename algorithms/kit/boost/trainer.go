package boost

import (
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// stateFormat is the version of the fields of a state.
const stateFormat = 2

// trainer implements round.Trainer. A boosting round is a collected round, whose units are
// trees, and a summed one, which validates.
type trainer struct {
	learner.Base
	Course
	variant *Variant
	cfg     *Config
	shards  int

	round round.Round
	vars  []round.Var
}

func newTrainer(v *Variant, c *Config, m *dataset.Manifest) *trainer {
	return &trainer{
		variant: v, cfg: c, shards: len(m.Shards),
		Course: Course{MaxRounds: c.Rounds, Patience: c.Patience, Validates: c.validates(), Refit: c.Refit,
			Weighted: m.HasWeights, Form: newForm(v, c, m.Features, m.Labels), First: make([]float64, m.Labels), Loss: -1},
	}
}

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	r := &t.round
	*r = round.Round{Tasks: t.shards, Scope: round.Sharded, Roles: t.Roles()}
	if t.Phase == PhaseGrow || t.Phase == PhaseValidate {
		t.vars = t.AppendVars(t.vars[:0])
		r.Vars = t.vars
	}
	switch t.Phase {
	case PhaseStart:
		r.Op, r.Kind, r.How = opStart, "mean", round.Sums(t.Starts())
	case PhaseGrow:
		r.Op, r.Kind, r.Tasks, r.Scope, r.How = opGrow, "tree", t.Form.trees, round.Whole, &round.Gather{}
	case PhaseValidate:
		r.Op, r.Kind, r.How, r.Roles = opValidate, "validation", round.Sums(2), dataset.Validation
	default:
		return nil, nil
	}
	return r, nil
}

// Fold implements round.Trainer.
func (t *trainer) Fold(res *round.Result) error {
	switch {
	case t.Phase == PhaseGrow:
		return t.foldTrees(res.Gathered)
	case t.Phase == PhaseStart:
		return t.FoldStart(res.Sum.F64, t.cfg.Start == startMean)
	case t.Phase == PhaseValidate:
		t.FoldValidation(res.Sum.F64)
		return nil
	}
	return errors.New("training is over: results can no longer be added")
}

// foldTrees takes the trees of a boosting round.
func (t *trainer) foldTrees(parts [][]byte) error {
	if len(parts) != t.Form.trees {
		return fmt.Errorf("got %d trees, want %d", len(parts), t.Form.trees)
	}
	var encoded []byte
	for i, part := range parts {
		tree, err := t.Form.Decode(part)
		if err != nil {
			return fmt.Errorf("tree %d of round %d: %w", i, t.Trees.Rounds, err)
		}
		t.Loss = tree.Loss
		encoded = AppendTree(encoded, part)
	}
	t.Add(encoded)
	return nil
}

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	used, err := t.Used()
	if err != nil {
		return nil, err
	}
	trees, err := t.Trees.decoded(&t.Form, used)
	if err != nil {
		return nil, err
	}
	return newModel(trees, t.Form.features, t.First, factor(t.variant, t.cfg, t.Form.labels)), nil
}

// State implements learner.Trainer.
func (t *trainer) State(l *fields.List) { t.List(l) }

// memory estimates the memory of a trainer: all trees, once as they are and once while they
// are joined, encoded or decoded.
func memory(v *Variant, c *Config, m *dataset.Manifest) algorithms.Footprint {
	leaves := min(c.Leaves, max(1, m.Rows/max(1, c.LeafRows)))
	trees := int64(c.Rounds) * int64(v.trees(m.Labels))
	model := trees*int64(4+forest.TreeBytes(2*leaves-1, leaves*v.width(m.Labels))) + 8*int64(m.Labels+4)
	return algorithms.Footprint{State: 2*model + 64, Model: model, Node: 8 * int64(2+m.Labels),
		Nodes: int64(len(m.Shards))}
}
