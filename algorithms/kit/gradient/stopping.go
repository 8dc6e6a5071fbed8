package gradient

import (
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// VectorOf is a part of what is trained: Θ, or numbers of an algorithm's own such as q.
type VectorOf[T float32 | float64] struct {
	Data    []T
	Version uint64 // how often Data has changed
}

// Vector is a vector of a Descent.
type Vector = VectorOf[float32]

func (v *VectorOf[T]) state(l *fields.List) {
	l.Uint64(&v.Version)
	switch data := any(v.Data).(type) {
	case []float32:
		l.Float32s(data)
	case []float64:
		l.Float64s(data)
	}
}

// bytes returns the numbers as a variable has them.
func (v *VectorOf[T]) bytes() []byte {
	switch data := any(v.Data).(type) {
	case []float32:
		return num.Bytes32(data)
	case []float64:
		return num.Bytes64(data)
	}
	return nil
}

// appendVars appends vectors as variables. Their IDs count from first.
func appendVars[T float32 | float64](vars []round.Var, first uint16, vectors []VectorOf[T]) []round.Var {
	for i := range vectors {
		vars = append(vars, round.Var{ID: first + uint16(i), Version: vectors[i].Version, Data: vectors[i].bytes()})
	}
	return vars
}

// Validated is a copy of the vectors at a validation.
type Validated[T float32 | float64] struct {
	Any     bool // there is one
	Step    uint64
	Loss    float64 // of the validation rows; +Inf where there is none
	Vectors []VectorOf[T]
}

func newValidated[T float32 | float64](vectors []VectorOf[T]) Validated[T] {
	s := Validated[T]{Loss: math.Inf(1), Vectors: slices.Clone(vectors)}
	for i := range s.Vectors {
		s.Vectors[i].Data = make([]T, len(vectors[i].Data))
	}
	return s
}

func (s *Validated[T]) take(step uint64, loss float64, vectors []VectorOf[T]) {
	s.Any, s.Step, s.Loss = true, step, loss
	for i := range vectors {
		s.Vectors[i].Version = vectors[i].Version
		copy(s.Vectors[i].Data, vectors[i].Data)
	}
}

func (s *Validated[T]) state(l *fields.List) {
	l.Bool(&s.Any)
	if !s.Any {
		return
	}
	l.Uint64(&s.Step)
	l.Float64(&s.Loss)
	for i := range s.Vectors {
		s.Vectors[i].state(l)
	}
}

// StopRule says when training stops early.
type StopRule struct {
	Validates bool
	// Patience is after how many validations without improvement training stops.
	Patience uint64
	// Margin is by how many standard errors of the paired difference a validation must be
	// better than the reference to be an improvement; 0: by anything.
	Margin float64
}

// StoppingOf is early stopping: the vectors of the least validation loss (among ties the
// earliest), and the validations since the last improvement. The zero value never validates.
type StoppingOf[T float32 | float64] struct {
	StopRule
	Best      Validated[T]
	Reference Validated[T] // of the last improvement; only with a margin
	Stale     uint64       // validations since the last improvement
	Loss      float64      // of the last validation
	At        uint64       // step of the last validation; 0: none yet
	Bar       float64      // a greater loss is no improvement; 0: no bar. It is not part of State
	reduce    round.Reduce // of the round, used again each time
}

// Stopping is the early stopping of a Descent.
type Stopping = StoppingOf[float32]

// NewStopping returns early stopping of a job that trains vectors.
func NewStopping[T float32 | float64](r StopRule, vectors []VectorOf[T]) *StoppingOf[T] {
	s := &StoppingOf[T]{StopRule: r}
	if r.Validates {
		s.Best = newValidated(vectors)
		if r.Margin > 0 {
			s.Reference = newValidated(vectors)
		}
	}
	return s
}

// Next makes r, whose Vars have the present vectors, a validation: with a margin also of the
// reference, on the same rows.
func (s *StoppingOf[T]) Next(r *round.Round) {
	r.Op, r.Kind, s.reduce.Shape.F64, r.How = OpValidate, "validation", 2, &s.reduce
	if s.Reference.Any {
		r.Op, s.reduce.Shape.F64 = OpCompare, 5
		r.Vars = appendVars(r.Vars, varReference, s.Reference.Vectors)
	}
}

// Fold takes the sums of a validation at a step. Without validation rows nothing is decided.
func (s *StoppingOf[T]) Fold(sum []float64, step uint64, vectors []VectorOf[T]) {
	rows := sum[0]
	if !(rows > 0) {
		return
	}
	loss := sum[1] / rows
	if s.Loss, s.At = loss, step; s.Bar > 0 && loss > s.Bar {
		s.Stale++
		return
	}
	improved := s.improved(loss, sum)
	if loss < s.Best.Loss {
		s.Best.take(step, loss, vectors)
	}
	if !improved {
		s.Stale++
		return
	}
	s.Stale = 0
	if s.Margin > 0 {
		s.Reference.take(step, loss, vectors)
	}
}

// improved reports whether a validation resets the patience: where its loss is the
// least so far, or, with a margin, where it beats the reference by more than so many
// standard errors of the mean difference.
func (s *StoppingOf[T]) improved(loss float64, sum []float64) bool {
	if !s.Reference.Any {
		return loss < s.Best.Loss
	}
	rows := sum[0]
	gain := sum[2] / rows
	variance := max(0, sum[3]/rows-float64(gain*gain))
	if squares := sum[4]; squares != rows { // samples have weights: so many of equal weights vary as much
		rows = float64(rows*rows) / squares
	}
	return gain > s.Margin*math.Sqrt(variance/rows)
}

// Over reports whether the patience is at its end.
func (s *StoppingOf[T]) Over() bool { return s.Stale >= s.Patience }

// State lists the fields of a training state.
func (s *StoppingOf[T]) State(l *fields.List) {
	if !s.Validates {
		return
	}
	l.Uint64(&s.Stale, &s.At)
	l.Float64(&s.Loss)
	s.Best.state(l)
	if s.Margin > 0 {
		s.Reference.state(l)
	}
	l.Check(s.Best.Any || !s.Reference.Any, "the saved state has a reference loss but no best validation")
}

// PlateauRule says when training stops by its own loss. What it looks at is the mean over the
// mini-batches of an interval of what the optimiser minimises: their loss, and the penalty of
// weight decay.
type PlateauRule struct {
	// PlateauPatience is a number of intervals. Training stops if the loss of so many intervals in a row
	// is not below the least earlier loss by PlateauFall. If it is 0, the loss does not stop the training.
	PlateauPatience uint64
	PlateauFall     float64
}

// Plateau is the training loss of the present interval and of earlier intervals.
type Plateau struct {
	Rows  float64 // of the interval's mini-batches
	Sum   float64 // of their losses
	Best  float64 // the least mean of an interval; +Inf: none yet
	Stale uint64  // intervals in a row without a fall
}

// add takes the losses of a mini-batch.
func (p *Plateau) add(rows, sum float64) {
	p.Rows += rows
	p.Sum += sum
}

// close ends an interval; one without rows counts for nothing.
func (p *Plateau) close(r *PlateauRule) {
	if p.Rows == 0 {
		return
	}
	loss := p.Sum / p.Rows
	p.Rows, p.Sum = 0, 0
	if p.Stale++; loss <= p.Best-r.PlateauFall {
		p.Stale = 0
	}
	p.Best = min(p.Best, loss)
}

// over reports whether the patience is at its end.
func (p *Plateau) over(r *PlateauRule) bool {
	return r.PlateauPatience > 0 && p.Stale >= r.PlateauPatience
}

func (p *Plateau) state(l *fields.List) {
	l.Float64(&p.Rows, &p.Sum, &p.Best)
	l.Uint64(&p.Stale)
}
