package boost

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// stateFormat is the version of the fields of a state.
const stateFormat = 2

// phase is what the next round computes.
type phase uint8

// The phases of a job: of a boosting round, phaseGrow and phaseValidate.
const (
	phaseStart phase = iota
	phaseGrow
	phaseValidate
	phaseDone
	phases
)

// trainer implements round.Trainer. A boosting round is a collected round, whose units are
// trees, and a summed one, which validates.
type trainer struct {
	learner.Base
	variant *Variant
	cfg     *Config
	form    form
	shards  int

	phase      phase
	refitting  bool
	before     uint64    // boosting rounds before the refit
	rows       uint64    // trained on
	samples    uint64    // rows of all boosting rounds
	start      []float64 // F before the first round, by label
	trees      history
	loss       float64 // of the training rows before the last boosting round; negative: none yet
	bestRound  uint64  // boosting rounds of the least validation loss; 0: none yet
	bestLoss   float64
	validated  uint64 // boosting rounds at the last validation
	validation float64

	round round.Round
	vars  []round.Var
}

func newTrainer(v *Variant, c *Config, m *dataset.Manifest) *trainer {
	return &trainer{
		variant: v, cfg: c, form: newForm(v, c, m.Features, m.Labels), shards: len(m.Shards),
		start: make([]float64, m.Labels), loss: -1,
	}
}

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	r := &t.round
	*r = round.Round{Tasks: t.shards, Scope: round.Sharded, Roles: dataset.Train}
	base := uint64(0)
	if t.refitting {
		r.Roles |= dataset.Validation
		base = refitVersions
	}
	if t.phase == phaseGrow || t.phase == phaseValidate {
		t.vars = append(t.vars[:0], round.Var{ID: varStart, Version: base + 1, Data: num.Bytes64(t.start)})
		t.vars = t.trees.appendVars(t.vars, base)
		r.Vars = t.vars
	}
	switch t.phase {
	case phaseStart:
		r.Op, r.Kind, r.How = opStart, "mean", round.Sums(1+t.form.labels)
	case phaseGrow:
		r.Op, r.Kind, r.Tasks, r.Scope, r.How = opGrow, "tree", t.form.trees, round.Whole, &round.Gather{}
	case phaseValidate:
		r.Op, r.Kind, r.How, r.Roles = opValidate, "validation", round.Sums(2), dataset.Validation
	default:
		return nil, nil
	}
	return r, nil
}

// Fold implements round.Trainer.
func (t *trainer) Fold(res *round.Result) error {
	switch {
	case t.phase == phaseGrow:
		return t.foldTrees(res.Gathered)
	case t.phase == phaseStart:
		return t.foldStart(res.Sum.F64)
	case t.phase == phaseValidate:
		t.foldValidation(res.Sum.F64)
		return nil
	}
	return errors.New("training is over: results can no longer be added")
}

// foldStart takes the rows and the sums of their degrees.
func (t *trainer) foldStart(sums []float64) error {
	rows := sums[0]
	if !(rows > 0) {
		return algorithms.ErrNoRows
	}
	t.rows, t.phase = uint64(rows), phaseGrow
	if t.cfg.Start == startMean {
		for c, sum := range sums[1:] {
			t.start[c] = num.Log(max(sum/rows, leastDegree))
		}
	}
	return nil
}

// foldTrees takes the trees of a boosting round.
func (t *trainer) foldTrees(parts [][]byte) error {
	if len(parts) != t.form.trees {
		return fmt.Errorf("got %d trees, want %d", len(parts), t.form.trees)
	}
	var encoded []byte
	for i, part := range parts {
		tree, err := t.form.decode(part)
		if err != nil {
			return fmt.Errorf("tree %d of round %d: %w", i, t.trees.rounds, err)
		}
		t.loss = tree.Loss
		encoded = appendTree(encoded, part)
	}
	t.trees.add(encoded)
	t.samples += t.rows
	switch {
	case t.cfg.validates() && !t.refitting:
		t.phase = phaseValidate
	default:
		t.grown()
	}
	return nil
}

// grown begins what comes after a boosting round: the next one, the refit on all rows but the test rows,
// or the end.
func (t *trainer) grown() {
	stopped := !t.refitting && t.bestRound > 0 && t.stale() >= uint64(t.cfg.Patience)
	switch {
	case t.trees.rounds < t.limit() && !stopped:
		t.phase = phaseGrow
	case t.cfg.Refit && !t.refitting && t.bestRound > 0:
		t.phase, t.refitting, t.before, t.trees = phaseStart, true, uint64(t.trees.rounds), history{}
	default:
		t.phase = phaseDone
	}
}

// limit is the greatest number of boosting rounds, since the refit began if there is one.
func (t *trainer) limit() int {
	if t.refitting {
		return int(t.bestRound)
	}
	return t.cfg.Rounds
}

// stale is the number of validations since the best one.
func (t *trainer) stale() uint64 { return t.validated - t.bestRound }

// foldValidation takes the rows and the sum of their losses. Without validation rows nothing is
// decided.
func (t *trainer) foldValidation(sums []float64) {
	if rows := sums[0]; rows > 0 {
		t.validated, t.validation = uint64(t.trees.rounds), sums[1]/rows
		if t.bestRound == 0 || t.validation < t.bestLoss {
			t.bestRound, t.bestLoss = t.validated, t.validation
		}
	}
	t.grown()
}

// Progress implements round.Trainer: a step is a boosting round.
func (t *trainer) Progress() round.Progress {
	p := round.Progress{
		Step: t.before + uint64(t.trees.rounds), Steps: t.before + uint64(t.limit()), BestStep: t.bestRound,
		BestLoss: max(0, t.bestLoss),
		Samples:  t.samples, Loss: t.loss, Validation: max(0, t.validation), ValidatedAt: t.validated,
		Phase: [...]string{"mean", "growing trees", "validation", "done"}[t.phase],
	}
	switch {
	case t.refitting:
		p.Refit = t.bestRound
	case t.cfg.Refit:
		p.MostSteps = 2 * p.Steps
	case t.cfg.validates() && t.cfg.Patience < t.cfg.Rounds:
		p.MostSteps = p.Steps
	}
	if t.phase == phaseDone {
		p.Steps = p.Step
	}
	return p
}

// used is the number of boosting rounds of the model: of the best validation, or all if there was
// none or after a refit.
func (t *trainer) used() int {
	if t.bestRound > 0 && !t.refitting {
		return int(t.bestRound)
	}
	return t.trees.rounds
}

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	if t.phase != phaseDone {
		return nil, fmt.Errorf("there is no model yet: the job is at round %d of %d", t.trees.rounds, t.cfg.Rounds)
	}
	trees, err := t.decoded(t.used())
	if err != nil {
		return nil, err
	}
	return newModel(trees, t.form.features, t.start, factor(t.variant, t.cfg, t.form.labels)), nil
}

// decoded returns the trees of the first rounds.
func (t *trainer) decoded(rounds int) (trees []*forest.Tree, err error) {
	b := t.trees.appendTo(nil)
	for range rounds {
		if trees, b, err = t.form.next(trees, b); err != nil {
			return nil, err
		}
	}
	return trees, nil
}

// State implements learner.Trainer.
func (t *trainer) State(l *fields.List) {
	l.Byte((*byte)(&t.phase))
	l.Bool(&t.refitting)
	l.Uint64(&t.before, &t.rows, &t.samples, &t.bestRound, &t.validated)
	l.Float64(&t.loss, &t.bestLoss, &t.validation)
	l.Float64s(t.start)
	l.Part(t.trees.bytes(), t.trees.appendTo, t.readTrees)
	rounds := uint64(t.trees.rounds)
	l.Check(t.phase < phases, "the saved state has the unknown phase %d", t.phase)
	l.Check(rounds <= uint64(t.cfg.Rounds) && t.before <= uint64(t.cfg.Rounds) && t.validated <= max(t.before, rounds) &&
		t.bestRound <= t.validated,
		"the saved state has impossible numbers of rounds: round %d of %d, %d before the refit, validated at round %d, "+
			"best at round %d",
		rounds, t.cfg.Rounds, t.before, t.validated, t.bestRound)
	l.Check(finite(t.loss) && finite(t.bestLoss) && finite(t.validation),
		"the saved state has losses that are not finite: %v, %v and %v", t.loss, t.bestLoss, t.validation)
	l.Check(t.lawful(), "the saved state has phase %d in round %d, which is not possible", t.phase, rounds)
	for _, f := range t.start {
		l.Check(f >= -64 && f <= 0, "the start value of a label's summed trees is %v, want -64 to 0", f)
	}
}

// lawful reports whether a run of the job can be in the phase.
func (t *trainer) lawful() bool {
	rounds := t.trees.rounds
	switch {
	case t.refitting && !(t.cfg.Refit && t.bestRound > 0 && t.validated <= t.before && rounds <= t.limit()),
		!t.refitting && t.before > 0:
		return false
	case t.phase == phaseStart:
		return rounds == 0 && (t.rows > 0) == t.refitting
	case t.phase == phaseGrow:
		return t.rows > 0 && rounds < t.limit()
	case t.phase == phaseValidate:
		return t.rows > 0 && rounds > 0 && t.cfg.validates() && !t.refitting
	case t.refitting:
		return t.rows > 0 && rounds == t.limit()
	}
	return t.rows > 0 && rounds > 0 && !(t.cfg.Refit && t.bestRound > 0)
}

// readTrees reads encoded rounds.
func (t *trainer) readTrees(b []byte) (err error) {
	b = bytes.Clone(b)
	var trees []*forest.Tree
	for len(b) > 0 {
		var rest []byte
		if trees, rest, err = t.form.next(trees[:0], b); err != nil {
			return err
		}
		t.trees.add(b[: len(b)-len(rest) : len(b)-len(rest)])
		b = rest
	}
	return nil
}

// memory estimates the memory of a trainer: all trees, once as they are and once while they
// are joined, encoded or decoded.
func memory(v *Variant, c *Config, m *dataset.Manifest) algorithms.Footprint {
	leaves := min(c.Leaves, max(1, m.Rows/max(1, c.LeafRows)))
	trees := int64(c.Rounds) * int64(v.trees(m.Labels))
	model := trees*int64(4+forest.TreeBytes(2*leaves-1, leaves*v.width(m.Labels))) + 8*int64(m.Labels+4)
	return algorithms.Footprint{State: 2*model + 64, Model: model, Node: 8 * int64(2+m.Labels),
		Nodes: int64(len(m.Shards))}
}
