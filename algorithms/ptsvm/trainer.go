package ptsvm

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The stages of a job.
const (
	stageScaling uint8 = iota
	stageChoices       // machines of all choices of gamma
	stageValidation
	stageTraining
	stageDone
	stages
)

// trainer is the leader's half.
type trainer struct {
	learner.Base
	cfg              *Config
	manifest         *dataset.Manifest
	features, labels int
	shards           int
	fit              *scaling.Fit

	stage    uint8
	best     uint64    // index of choices
	loss     float64   // of the validation rows
	machines []float64 // of the last collected round; nil if there was none

	gammas []float64
}

func newTrainer(c *Config, m *dataset.Manifest) *trainer {
	return &trainer{cfg: c, manifest: m, features: m.Features, labels: m.Labels, shards: len(m.Shards),
		fit: scaling.NewFit(c.Scaling, m)}
}

// Start implements learner.Trainer.
func (t *trainer) Start() {
	t.fit.Begin()
	t.scaled()
}

// scaled goes on if features can be scaled.
func (t *trainer) scaled() {
	switch {
	case !t.fit.Done():
	case t.validates():
		t.stage = stageChoices
	default:
		t.stage = stageTraining
	}
}

// validates reports whether validation chooses gamma.
func (t *trainer) validates() bool { return t.cfg.Gamma == 0 }

// size returns how many values the machines of a stage have, which are known then.
func (t *trainer) size() int {
	n := pairs(t.labels) * (t.features + machineMore)
	if t.stage == stageValidation {
		n *= len(choices)
	}
	return n
}

// State implements learner.Trainer.
func (t *trainer) State(l *fields.List) {
	l.Byte(&t.stage)
	l.Check(t.stage < stages, "the saved state has stage %d, which does not exist", t.stage)
	l.Uint64(&t.best)
	l.Float64(&t.loss)
	t.fit.State(l)
	l.Known(&t.machines, t.size())
	l.Check((t.stage == stageScaling) != t.fit.Done() && (t.machines != nil) == (t.stage == stageValidation ||
		t.stage == stageDone) && t.best < uint64(len(choices)) && t.loss >= 0 && t.loss <= math.MaxFloat64,
		"the saved state has stage %d, which is not possible", t.stage)
	l.Check(t.validates() && (t.stage >= stageTraining || t.best == 0 && t.loss == 0) ||
		!t.validates() && t.best == 0 && t.loss == 0 && t.stage != stageChoices && t.stage != stageValidation,
		"the saved state has stage %d and choice %d of gamma, which is not possible", t.stage, t.best)
	l.Check(bounded(t.machines), "the saved state has a value that is too great")
}

// bounded reports whether a model can have all values.
func bounded(v []float64) bool {
	for _, x := range v {
		if !(math.Abs(x) <= greatest) {
			return false
		}
	}
	return true
}

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	r := &round.Round{Tasks: t.shards, Scope: round.Sharded, Roles: dataset.Train}
	switch t.stage {
	case stageScaling:
		t.fit.Next(r)
	case stageValidation:
		r.Op, r.Kind, r.How, r.Roles = opValidate, "validation", round.Sums(1+len(choices)), dataset.Validation
		r.Vars = []round.Var{{ID: varMachines, Data: num.Bytes64(t.machines)}}
	case stageChoices, stageTraining:
		t.gammas = choices
		version := uint64(0)
		if t.stage == stageTraining {
			t.gammas, version = []float64{t.chosen()}, 1
			r.Roles |= dataset.Validation
		}
		r.Op, r.Kind, r.Scope, r.How = opTrain, "machines", round.Whole, &round.Gather{}
		r.Tasks = len(t.gammas) * pairs(t.labels)
		r.Vars = t.fit.AppendVar([]round.Var{{ID: varGammas, Version: version, Data: num.Bytes64(t.gammas)}})
	default:
		return nil, nil
	}
	return r, nil
}

// chosen returns the given or the chosen gamma.
func (t *trainer) chosen() float64 {
	if t.validates() {
		return choices[t.best]
	}
	return t.cfg.Gamma
}

// Fold implements round.Trainer.
func (t *trainer) Fold(r *round.Result) error {
	switch t.stage {
	case stageScaling:
		if err := t.fit.Fold(r.Sum.F64); err != nil {
			return err
		}
		t.scaled()
	case stageValidation:
		sum := r.Sum.F64
		for i, loss := range sum[1:] {
			if loss < sum[1+t.best] {
				t.best = uint64(i)
			}
		}
		if sum[0] > 0 {
			t.loss = max(0, sum[1+t.best]/sum[0])
		}
		t.machines, t.stage = nil, stageTraining
	default:
		return t.collected(r.Gathered)
	}
	return nil
}

// collected takes the machines.
func (t *trainer) collected(all [][]byte) error {
	size := t.features + machineMore
	machines := make([]float64, 0, len(all)*size)
	for i, b := range all {
		if len(b) == 0 {
			return algorithms.Nothing(t.manifest)
		}
		if len(b) != 8*size {
			return fmt.Errorf("%s: machine %d has %d bytes, want %d", Name, i, len(b), 8*size)
		}
		machines = append(machines, num.Float64s(append(make([]byte, 0, len(b)), b...))...)
	}
	if !bounded(machines) {
		return fmt.Errorf("%s: a machine has a value that is too great: scale the features", Name)
	}
	t.machines = machines
	if t.stage++; t.stage != stageValidation {
		t.stage = stageDone
	}
	return nil
}

// Progress implements round.Trainer. Steps are the rounds after the scaling.
func (t *trainer) Progress() round.Progress {
	p := round.Progress{Steps: 1, Loss: -1, Validation: t.loss,
		Phase: [...]string{"scaling", "choices of gamma", "validation", "training", "done"}[t.stage]}
	if t.validates() {
		p.Steps = 3
		p.Step = uint64(max(t.stage, 1) - 1)
		if t.stage >= stageTraining {
			p.ValidatedAt = 2
		}
	} else if t.stage == stageDone {
		p.Step = 1
	}
	p.MostSteps = p.Steps
	return p
}

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	if t.stage != stageDone {
		return nil, fmt.Errorf("%s: there is no model yet", Name)
	}
	m := newModel(t.features, t.labels)
	m.set(t.machines)
	return &m, nil
}
