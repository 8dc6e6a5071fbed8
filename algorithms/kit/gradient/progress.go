package gradient

import "github.com/coppice-ldl/coppice/engine/round"

// phaseName is the word for the phase in progress and errors.
func (d *Descent) phaseName() string {
	return [...]string{"scaling", "training", d.OwnKind, "validation", "done", d.ChoiceKind, "unknown"}[min(d.Phase, phases)]
}

// Progress implements round.Trainer. Loss is the mean over rows and terms on the last rows
// trained on. Losses that rounding made negative are told as 0.
func (d *Descent) Progress() round.Progress {
	best := &d.Stopping.Best
	p := round.Progress{
		Step: d.Before + d.Step, Steps: d.Before + d.limit(), MostSteps: d.mostSteps(), BestStep: best.Step, Samples: d.Samples,
		Loss: -1, Validation: max(0, d.Stopping.Loss), ValidatedAt: d.Stopping.At, Phase: d.phaseName(),
	}
	if d.Samples > 0 {
		p.Loss = max(0, d.Loss)
	}
	if best.Any {
		p.BestLoss = max(0, best.Loss)
	}
	if d.Refitting {
		p.Refit = d.limit()
	}
	return p
}

// mostSteps is how many steps a job with early stopping takes at the most; 0 where it is
// known how many it takes.
func (d *Descent) mostSteps() uint64 {
	switch {
	case d.PlateauPatience > 0:
		return d.limit()
	case !d.Validates || d.Refitting:
		return 0
	case d.Refit:
		return 2 * d.limit()
	case d.Patience*d.Interval >= d.limit(): // no earlier than at the end
		return 0
	}
	return d.limit()
}
