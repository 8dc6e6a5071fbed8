package maxent

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/lbfgs"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
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
	options := lbfgs.Options{Iterations: s.Iterations, Gradient: search.Tolerance, Fall: search.Ftol}
	decays, usual := fixedDecay, usualRaw
	if s.Scaling != scaling.None {
		usual = usualScaled
	}
	if search.Decay == DecayPath {
		decays = decaysFrom(search.FirstDecay)
	}
	set := s.Training()
	set.OwnKind, set.Refit = ownKind, search.Refit
	return &Trainer{fullbatch.New(set, o, newPath(o, decays, usual, options), fit, m), o}
}

// Model implements algorithms.Trainer.
func (t *Trainer) Model() (algorithms.Model, error) {
	x, err := t.Trained()
	if err != nil {
		return nil, err
	}
	return &Model{t.Objective.Features, t.Objective.Labels, t.Objective.Effective(nil, x)}, nil
}

// Memory estimates the memory of a fit by L-BFGS whose kernel's terms sum so many values.
func (s *Settings) Memory(terms int, m *dataset.Manifest) algorithms.Footprint {
	n := Evaluation(m.Features, m.Labels)
	return s.MemoryOf(lbfgs.Bytes(n), n+terms, m)
}

// MemoryOf estimates the memory of a fit whose optimiser keeps so many bytes, and whose evaluations
// sum so many values, apart from the rows and their losses.
func (s *Settings) MemoryOf(optimiser int64, sums int, m *dataset.Manifest) algorithms.Footprint {
	n, set := Evaluation(m.Features, m.Labels), s.Training()
	f := fullbatch.Memory(&set, n, optimiser, sums, m)
	f.Model = 8*int64(n) + 12
	return f
}
