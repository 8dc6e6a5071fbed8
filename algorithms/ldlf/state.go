package ldlf

import "math"

// phase is what the trainer's next round computes.
type phase uint8

// The phases of a job, in the order in which they begin.
const (
	phaseSums     phase = iota // scaling: sums
	phaseSquares               // standard scaling: squared deviations
	phaseExtremes              // min-max scaling
	phaseStep                  // a gradient step
	phaseLeaves                // an iteration of Eq. 12
	phaseValidate
	phaseDone
	phases
)

func (p phase) String() string {
	return [...]string{"scaling", "scaling", "scaling", "training", "leaf update", "validation", "done", "unknown"}[p]
}

// kind is the word for the units of the phase's rounds.
func (p phase) kind() string {
	switch p {
	case phaseStep:
		return "step"
	case phaseDone:
		return ""
	}
	return p.String()
}

// state is all that a trainer remembers: AppendState writes it, field by field.
type state struct {
	phase        phase
	passes       uint64 // passes done: 1 while the job refits
	before       uint64 // mini-batches of the pass before
	step         uint64 // mini-batches done in this pass, those without gradient included
	updates      uint64 // gradient steps taken in this pass: Adam's t
	thetaVersion uint64 // how often Θ has changed
	qVersion     uint64 // how often q has changed
	leafUpdates  uint64 // leaf updates done
	iteration    uint64 // of the leaf update under way
	column       uint64 // min-max scaling: columns done
	samples      uint64 // rows processed
	stale        uint64 // validations since the patience was last reset
	loss         float64

	theta  []float32
	first  []float32 // SGD's v, Adam's m
	second []float32 // Adam's v; nil with SGD
	q      []float32 // trees×leaves×labels
	input  []float64 // shifts, then scales; nil without scaling

	best      kept // of the least validation loss; among ties, the earliest
	reference kept // that last reset the patience; only with a margin
}

// kept is a state that was validated.
type kept struct {
	any          bool
	loss         float64 // K-L of the validation rows
	step         uint64
	thetaVersion uint64
	qVersion     uint64
	theta        []float32
	q            []float32
}

func newState(c *Config, z sizes, parameters int) *state {
	s := &state{
		loss:  -1,
		theta: make([]float32, parameters),
		first: make([]float32, parameters),
		q:     uniformQ(z),
	}
	if c.Optimizer == optimizerAdam {
		s.second = make([]float32, parameters)
	}
	if c.Scaling != scalingNone {
		s.input = make([]float64, 2*z.features)
	}
	if c.ValidationFraction > 0 {
		s.best = newKept(parameters, len(s.q))
	}
	if c.ValidationFraction > 0 && c.ValidationMargin > 0 {
		s.reference = newKept(parameters, len(s.q))
	}
	return s
}

func newKept(theta, q int) kept {
	return kept{loss: math.Inf(1), theta: make([]float32, theta), q: make([]float32, q)}
}

// keep copies the present state, of the given validation loss, to k.
func (s *state) keep(k *kept, loss float64) {
	k.any, k.loss, k.step = true, loss, s.step
	k.thetaVersion, k.qVersion = s.thetaVersion, s.qVersion
	copy(k.theta, s.theta)
	copy(k.q, s.q)
}
