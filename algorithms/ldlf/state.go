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

// state is all that a trainer remembers: AppendState writes it, field by field.
type state struct {
	phase        phase
	step         uint64 // mini-batches done, those without gradient included
	updates      uint64 // gradient steps taken: Adam's t
	thetaVersion uint64 // the step that last changed Θ
	qVersion     uint64 // iterations of Eq. 12 done
	iteration    uint64 // of the leaf update under way
	column       uint64 // min-max scaling: columns done
	samples      uint64 // rows processed
	loss         float64

	theta  []float32
	first  []float32 // SGD's v, Adam's m
	second []float32 // Adam's v; nil with SGD
	q      []float32 // trees×leaves×labels
	input  []float64 // shifts, then scales; nil without scaling

	best best
}

// best is the state with the least validation loss; among ties, the earliest.
type best struct {
	any          bool
	loss         float64
	step         uint64
	stale        uint64 // validations since then
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
		s.best.theta = make([]float32, parameters)
		s.best.q = make([]float32, len(s.q))
		s.best.loss = math.Inf(1)
	}
	return s
}

// keepBest makes the present state, of the given validation loss, the best one.
func (s *state) keepBest(loss float64) {
	b := &s.best
	b.any, b.loss, b.step, b.stale = true, loss, s.step, 0
	b.thetaVersion, b.qVersion = s.thetaVersion, s.qVersion
	copy(b.theta, s.theta)
	copy(b.q, s.q)
}
