package boost

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Phase is what the next round of a job computes.
type Phase uint8

// The phases of a job: of a boosting round, PhaseGrow and PhaseValidate.
const (
	PhaseStart Phase = iota
	PhaseGrow
	PhaseValidate
	PhaseDone
	phases
)

// Course is how far a boosting job is: its trees, its validations, and what follows from them. A trainer embeds it.
type Course struct {
	// What the settings say.
	MaxRounds, Patience int
	Validates, Refit    bool
	Weighted            bool // samples have weights
	Form                Form

	Phase     Phase
	Refitting bool
	Rows      uint64    // trained on
	Weight    float64   // of these rows
	First     []float64 // F before the first round, by label
	Trees     History
	Loss      float64 // of the training rows before the last boosting round; negative: none yet

	before     uint64 // boosting rounds before the refit
	samples    uint64 // rows of all boosting rounds
	bestRound  uint64 // boosting rounds of the least validation loss; 0: none yet
	bestLoss   float64
	validated  uint64 // boosting rounds at the last validation
	validation float64
}

// Roles are the rows that training sees.
func (t *Course) Roles() dataset.Roles {
	if t.Refitting {
		return dataset.Train | dataset.Validation
	}
	return dataset.Train
}

// AppendVars appends the variables that say F of every row: First and the trees.
func (t *Course) AppendVars(vars []round.Var) []round.Var {
	base := uint64(0)
	if t.Refitting {
		base = refitVersions
	}
	vars = append(vars, round.Var{ID: varStart, Version: base + 1, Data: num.Bytes64(t.First)})
	return t.Trees.AppendVars(vars, base)
}

// Starts is how many numbers SumDegrees sums.
func (t *Course) Starts() int {
	if t.Weighted {
		return 2 + len(t.First)
	}
	return 1 + len(t.First)
}

// FoldStart takes the sums of SumDegrees. With mean, F begins at the mean of the degrees.
func (t *Course) FoldStart(sums []float64, mean bool) error {
	rows, degrees, weight := sums[0], sums[1:1+len(t.First)], sums[0]
	if t.Weighted {
		weight = sums[1+len(t.First)]
	}
	switch {
	case !(rows > 0) && t.Weighted:
		return fmt.Errorf("%w with a weight above 0", algorithms.ErrNoRows)
	case !(rows > 0):
		return algorithms.ErrNoRows
	}
	t.Rows, t.Weight, t.Phase = uint64(rows), weight, PhaseGrow
	if mean {
		for c, sum := range degrees {
			t.First[c] = num.Log(max(sum/weight, leastDegree))
		}
	}
	return nil
}

// Add adds the encoded trees of a boosting round.
func (t *Course) Add(encoded []byte) {
	t.Trees.Add(encoded)
	t.samples += t.Rows
	if t.Validates && !t.Refitting {
		t.Phase = PhaseValidate
		return
	}
	t.grown()
}

// grown begins what comes after a boosting round: the next one, the refit on all rows but the test rows,
// or the end.
func (t *Course) grown() {
	stopped := !t.Refitting && t.bestRound > 0 && t.stale() >= uint64(t.Patience)
	switch {
	case t.Trees.Rounds < t.limit() && !stopped:
		t.Phase = PhaseGrow
	case t.Refit && !t.Refitting && t.bestRound > 0:
		t.Phase, t.Refitting, t.before, t.Trees = PhaseStart, true, uint64(t.Trees.Rounds), History{}
	default:
		t.Phase = PhaseDone
	}
}

// limit is the greatest number of boosting rounds, since the refit began if there is one.
func (t *Course) limit() int {
	if t.Refitting {
		return int(t.bestRound)
	}
	return t.MaxRounds
}

// stale is the number of validations since the best one.
func (t *Course) stale() uint64 { return t.validated - t.bestRound }

// FoldValidation takes the weight of the rows and the sum of their losses. Without validation rows nothing is
// decided.
func (t *Course) FoldValidation(sums []float64) {
	if rows := sums[0]; rows > 0 {
		t.validated, t.validation = uint64(t.Trees.Rounds), sums[1]/rows
		if t.bestRound == 0 || t.validation < t.bestLoss {
			t.bestRound, t.bestLoss = t.validated, t.validation
		}
	}
	t.grown()
}

// Progress implements round.Trainer: a step is a boosting round.
func (t *Course) Progress() round.Progress {
	p := round.Progress{
		Step: t.before + uint64(t.Trees.Rounds), Steps: t.before + uint64(t.limit()), BestStep: t.bestRound,
		BestLoss: max(0, t.bestLoss),
		Samples:  t.samples, Loss: t.Loss, Validation: max(0, t.validation), ValidatedAt: t.validated,
		Phase: [...]string{"mean", "growing trees", "validation", "done"}[t.Phase],
	}
	switch {
	case t.Refitting:
		p.Refit = t.bestRound
	case t.Refit:
		p.MostSteps = 2 * p.Steps
	case t.Validates && t.Patience < t.MaxRounds:
		p.MostSteps = p.Steps
	}
	if t.Phase == PhaseDone {
		p.Steps = p.Step
	}
	return p
}

// Used is the number of boosting rounds of the model: of the best validation, or all if there was
// none or after a refit. It is an error if training is not over.
func (t *Course) Used() (int, error) {
	switch {
	case t.Phase != PhaseDone:
		return 0, fmt.Errorf("there is no model yet: the job is at round %d of %d", t.Trees.Rounds, t.MaxRounds)
	case t.bestRound > 0 && !t.Refitting:
		return int(t.bestRound), nil
	}
	return t.Trees.Rounds, nil
}

// List lists the fields of a state.
func (t *Course) List(l *fields.List) {
	l.Byte((*byte)(&t.Phase))
	l.Bool(&t.Refitting)
	l.Uint64(&t.before, &t.Rows, &t.samples, &t.bestRound, &t.validated)
	l.Float64(&t.Loss, &t.bestLoss, &t.validation)
	l.Float64s(t.First)
	if t.Weighted {
		l.Float64(&t.Weight)
		l.Check(t.Weight >= 0 && finite(t.Weight) && (t.Weight > 0) == (t.Rows > 0),
			"the saved state has the weight %v of %d samples", t.Weight, t.Rows)
	} else {
		t.Weight = float64(t.Rows)
	}
	l.Part(t.Trees.Bytes(), t.Trees.AppendTo, func(b []byte) error { return t.Trees.read(&t.Form, b) })
	rounds, most := uint64(t.Trees.Rounds), uint64(t.MaxRounds)
	l.Check(t.Phase < phases, "the saved state has the unknown phase %d", t.Phase)
	l.Check(rounds <= most && t.before <= most && t.validated <= max(t.before, rounds) && t.bestRound <= t.validated,
		"the saved state has impossible numbers of rounds: round %d of %d, %d before the refit, validated at round %d, "+
			"best at round %d",
		rounds, t.MaxRounds, t.before, t.validated, t.bestRound)
	l.Check(finite(t.Loss) && finite(t.bestLoss) && finite(t.validation),
		"the saved state has losses that are not finite: %v, %v and %v", t.Loss, t.bestLoss, t.validation)
	l.Check(t.lawful(), "the saved state has phase %d in round %d, which is not possible", t.Phase, rounds)
	for _, f := range t.First {
		l.Check(f >= -64 && f <= 0, "the start value of a label's summed trees is %v, want -64 to 0", f)
	}
}

// lawful reports whether a run of the job can be in the phase.
func (t *Course) lawful() bool {
	rounds := t.Trees.Rounds
	switch {
	case t.Refitting && !(t.Refit && t.bestRound > 0 && t.validated <= t.before && rounds <= t.limit()),
		!t.Refitting && t.before > 0:
		return false
	case t.Phase == PhaseStart:
		return rounds == 0 && (t.Rows > 0) == t.Refitting
	case t.Phase == PhaseGrow:
		return t.Rows > 0 && rounds < t.limit()
	case t.Phase == PhaseValidate:
		return t.Rows > 0 && rounds > 0 && t.Validates && !t.Refitting
	case t.Refitting:
		return t.Rows > 0 && rounds == t.limit()
	}
	return t.Rows > 0 && rounds > 0 && !(t.Refit && t.bestRound > 0)
}

// First returns the variable Course.First of a round.
func First(v round.Vars) []float64 { return num.Float64s(v.Get(varStart)) }
