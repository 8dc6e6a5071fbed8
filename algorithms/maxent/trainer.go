package maxent

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/lbfgs"
	"github.com/coppice-ldl/coppice/algorithms/scaling"
	"github.com/coppice-ldl/coppice/dataset"
)

// Trainer is the leader's half of a fit by L-BFGS, which begins at W = 0. An algorithm that adds terms sets
// Objective.TermSums and Values, and may have rounds of its own before the first evaluation.
type Trainer struct {
	*fullbatch.Training
	Objective *Objective
}

// NewTrainer returns the trainer of a job; ownKind is fullbatch.Settings.OwnKind.
func NewTrainer(s *Settings, search Search, l2 float64, ownKind string, m *dataset.Manifest) *Trainer {
	fit := scaling.NewFit(s.Scaling, m)
	o := &Objective{Features: m.Features, Labels: m.Labels, Bias: s.Bias, L2: l2, Fit: fit}
	var by fullbatch.Optimiser
	options := lbfgs.Options{Iterations: s.Iterations, Gradient: search.Tolerance, Fall: search.Ftol}
	if search.Decay == DecayPath {
		by = newPath(o, options)
	} else {
		by = lbfgs.New(make([]float64, o.Point()), options)
	}
	set := s.Training()
	set.OwnKind = ownKind
	return &Trainer{fullbatch.New(set, o, by, fit, m), o}
}

// Model implements algorithms.Trainer.
func (t *Trainer) Model() (algorithms.Model, error) {
	x, err := t.Trained()
	if err != nil {
		return nil, err
	}
	return &Model{t.Objective.Features, t.Objective.Labels, t.Objective.Effective(nil, x)}, nil
}
