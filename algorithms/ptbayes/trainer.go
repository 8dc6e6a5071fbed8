package ptbayes

import (
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The stages of a job.
const (
	stageSums uint8 = iota
	stageSquares
	stageValidation
	stageDone
	stages
)

// trainer is the leader's half.
type trainer struct {
	learner.Base
	cfg      *Config
	manifest *dataset.Manifest
	shards   int

	stage  uint8
	chosen bool    // validation has chosen, and the validation rows are training rows
	best   uint64  // index of choices
	loss   float64 // of the validation rows
	values []float64
	of     *moments // views of values
}

func newTrainer(c *Config, m *dataset.Manifest) *trainer {
	of := momentsOf(m.Features, m.Labels)
	t := &trainer{cfg: c, manifest: m, shards: len(m.Shards), values: make([]float64, of.size()), of: of}
	of.view(t.values)
	return t
}

// State implements learner.Trainer.
func (t *trainer) State(l *fields.List) {
	l.Byte(&t.stage)
	l.Bool(&t.chosen)
	l.Uint64(&t.best)
	l.Float64(&t.loss)
	l.Float64s(t.values)
	l.Check(t.stage < stages && t.best < uint64(len(choices)) && (t.chosen || t.best == 0) &&
		!(t.chosen && (t.stage == stageValidation || !t.validates())) && (t.stage != stageValidation || t.validates()) &&
		(t.stage != stageDone || t.chosen == t.validates()),
		"the saved state has stage %d, which is not possible", t.stage)
	l.Check(num.Finite64(t.values) && t.loss >= 0, "one of its values is not finite")
	if l.Reading() && t.stage > stageSums {
		whole := 0.0
		for _, w := range t.of.weight {
			l.Check(w >= 0, "a label has the weight %v", w)
			whole += w
		}
		l.Check(t.of.rows[0] > 0 && whole > 0, "there are %v samples with the weight %v", t.of.rows[0], whole)
	}
}

// validates reports whether validation chooses the smoothing.
func (t *trainer) validates() bool { return t.cfg.Smoothing == 0 }

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	r := &round.Round{Tasks: t.shards, Scope: round.Sharded, Roles: dataset.Train}
	version := uint64(0)
	if t.chosen {
		r.Roles, version = dataset.Train|dataset.Validation, 2
	}
	switch t.stage {
	case stageSums:
		r.Op, r.Kind, r.How = opSums, "means", round.Sums(t.of.first())
		return r, nil
	case stageSquares:
		r.Op, r.Kind, r.How = opSquares, "variances", round.Sums(t.of.second())
	case stageValidation:
		version++
		r.Roles = dataset.Validation
		r.Op, r.Kind, r.How = opValidate, "validation", round.Sums(1+len(choices))
	default:
		return nil, nil
	}
	r.Vars = []round.Var{{ID: varMoments, Version: version, Data: num.Bytes64(t.values)}}
	return r, nil
}

// Fold implements round.Trainer.
func (t *trainer) Fold(r *round.Result) error {
	sum := r.Sum.F64
	switch t.stage {
	case stageSums:
		if sum[0] == 0 {
			return algorithms.Nothing(t.manifest)
		}
		clear(t.values)
		copy(t.values, sum)
		whole := 0.0
		for _, w := range t.of.weight {
			whole += w
		}
		if whole == 0 {
			return errors.New("no sample of any label was drawn: use more samples, or samples=weighted")
		}
		t.of.divide()
		t.stage = stageSquares
	case stageSquares:
		copy(t.values[t.of.first():], sum)
		t.of.divideSecond()
		if t.stage = stageDone; t.validates() && !t.chosen {
			t.stage = stageValidation
		}
	case stageValidation:
		for i, loss := range sum[1:] {
			if loss < sum[1+t.best] {
				t.best = uint64(i)
			}
		}
		if sum[0] > 0 {
			t.loss = max(0, sum[1+t.best]/sum[0])
		}
		t.chosen, t.stage = true, stageSums
	}
	return nil
}

// Progress implements round.Trainer. Steps are rounds.
func (t *trainer) Progress() round.Progress {
	p := round.Progress{Step: uint64(t.stage), Steps: 2, Loss: -1, Validation: t.loss,
		Phase: [...]string{"means", "variances", "validation", "done"}[t.stage]}
	switch {
	case t.validates() && t.chosen:
		p.Step, p.Steps, p.ValidatedAt = min(3+uint64(t.stage), 5), 5, 3
	case t.validates():
		p.Steps = 5
	default:
		p.Step = min(p.Step, 2)
	}
	p.MostSteps = p.Steps
	return p
}

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	if t.stage != stageDone {
		return nil, fmt.Errorf("%s: there is no model yet", Name)
	}
	smoothing := t.cfg.Smoothing
	if t.validates() {
		smoothing = choices[t.best]
	}
	m := newModel(t.of.features, t.of.labels)
	m.set(t.of, smoothing)
	return &m, nil
}
