package fullbatch

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Progress implements round.Trainer. Steps are iterations. Losses that rounding made negative
// are told as 0.
func (t *Training) Progress() round.Progress {
	best := &t.Stopping.Best
	steps := t.Before + t.limit()
	p := round.Progress{
		Step: t.Before + t.iterations(), Steps: steps, MostSteps: steps, BestStep: best.Step, Samples: t.Samples, Loss: -1,
		Validation: max(0, t.Stopping.Loss), ValidatedAt: t.Stopping.At, Phase: t.phaseName(),
	}
	if t.Evaluations > 0 {
		p.Loss = max(0, t.Loss)
	}
	if best.Any {
		p.BestLoss = max(0, best.Loss)
	}
	switch {
	case t.Refitting && t.Phase == PhaseDone: // before the last iteration, where the search found a minimum
		p.Steps, p.Refit = p.Step, t.iterations()
	case t.Refitting:
		p.Refit = t.limit()
	case t.Refit:
		p.MostSteps = 2 * t.Steps
	}
	return p
}

// Memory estimates the memory of a training of n variables. The optimiser keeps so many bytes of them,
// and an evaluation sums so many values, apart from the rows and their losses.
func Memory(set *Settings, n int, optimiser int64, sums int, m *dataset.Manifest) algorithms.Footprint {
	vector := 8 * int64(n)
	f := algorithms.Footprint{State: optimiser + 2*vector + 256, Node: 8 * int64(max(SumsAt+sums, scaling.MostSums(set.Scaling, m))), Nodes: int64(len(m.Shards))}
	if set.Validates {
		f.State += vector
	}
	if set.Scaling != scaling.None {
		f.State += 16 * int64(m.Features)
	}
	return f
}
