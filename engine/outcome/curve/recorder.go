package curve

import (
	"math"

	"github.com/coppice-ldl/coppice/engine/round"
)

// Recorder makes a curve from a Trainer's progress after each round. A point is complete,
// and added to the curve, when the next step begins. Until then it is a function of the
// Trainer's state: a new recorder with the curve and the Trainer of any round records the
// same points.
type Recorder struct {
	limit     int
	curve     *Curve
	last      Point // of the current step, not in the curve yet; not added if it has no loss
	has       bool  // last is set
	committed Mark  // the points before it are committed
}

// Mark is a position in a recorder's curve; the zero Mark is its beginning.
type Mark struct {
	any  bool
	step uint64 // of the last point before it
}

// NewRecorder returns a recorder of at most limit points that continues c, whose points are
// committed already, and owns c; nil: there are no points yet.
func NewRecorder(limit int, c *Curve) *Recorder {
	if c == nil {
		return &Recorder{limit: limit, curve: New()}
	}
	r := &Recorder{limit: limit, curve: c}
	r.committed = r.mark()
	return r
}

// Observe records the progress after a round, or of a Trainer that continues from a state.
// millis are milliseconds of running, or Unknown. A step without known losses at its end has
// no point.
func (r *Recorder) Observe(p round.Progress, millis int64) {
	next := pointOf(p)
	begins := beginsRefit(p)
	if r.has && begins && next.Step == r.last.Step && next.validated() {
		r.last.Validation = next.Validation // by which training ended
	}
	if r.has && (begins || next.Step != r.last.Step) {
		r.complete()
	}
	if begins || r.has && next.same(&r.last) {
		return
	}
	next.Millis = millis
	if n := len(r.curve.points); n > 0 && millis != Unknown {
		next.Millis = max(millis, r.curve.points[n-1].Millis)
	}
	r.last, r.has = next, true
}

// complete adds the last point.
func (r *Recorder) complete() {
	r.has = false
	if r.last.known() {
		r.curve.add(r.last, r.limit)
	}
}

// Stepped is implemented by Trainers that take several steps in one round, such as a forest
// that collects its trees. StepLosses returns the training loss after each step so far, from
// step 1 on.
type Stepped interface{ StepLosses() []float64 }

// Follow calls Observe with a Trainer's progress after a round, and before that with each
// step of the round, whose times are unknown.
func (r *Recorder) Follow(t round.Trainer, millis int64) {
	p := t.Progress()
	from := r.last.Step
	if s, ok := t.(Stepped); ok && p.Step > from+1 {
		losses := s.StepLosses()
		for step := from + 1; step < min(p.Step, uint64(len(losses))); step++ {
			r.Observe(round.Progress{Step: step, Steps: p.Steps, Loss: losses[step-1]}, Unknown)
		}
	}
	r.Observe(p, millis)
}

// End adds the last point: the job is done.
func (r *Recorder) End() {
	if !r.has {
		return
	}
	if r.complete(); !r.last.known() {
		return
	}
	if n := len(r.curve.points); n == 0 || r.curve.points[n-1].Step != r.last.Step {
		r.curve.points = append(r.curve.points, r.last)
	}
}

// Curve returns the curve so far, without the current step. The recorder continues to use it.
func (r *Recorder) Curve() *Curve { return r.curve }

// Uncommitted returns the points that are not committed yet, as a curve for Extend, and the
// Mark to call Committed with once they are.
func (r *Recorder) Uncommitted() (*Curve, Mark) {
	rest := *r.curve
	from := 0
	for r.committed.any && from < len(rest.points) && rest.points[from].Step <= r.committed.step {
		from++
	}
	rest.points = rest.points[from:len(rest.points):len(rest.points)]
	return &rest, r.mark()
}

// Committed says that the points before m are committed: Uncommitted leaves them out.
func (r *Recorder) Committed(m Mark) { r.committed = m }

// mark returns the end of the curve so far.
func (r *Recorder) mark() Mark {
	if p := r.curve.lastPoint(); p != nil {
		return Mark{true, p.Step}
	}
	return Mark{}
}

// pointOf returns the point of a progress.
func pointOf(p round.Progress) Point {
	next := Point{Step: p.Step, Training: math.NaN(), Validation: math.NaN(), Millis: Unknown}
	if known(p.Loss) {
		next.Training = p.Loss
	}
	if p.ValidatedAt == p.Step && p.Step > 0 && known(p.Validation) {
		next.Validation = p.Validation
	}
	return next
}

// beginsRefit reports whether p is the beginning of a refit. Its step is also the last step
// before the refit, which has the point.
func beginsRefit(p round.Progress) bool { return p.Refit > 0 && p.Step == p.Steps-p.Refit }

// known reports whether a loss is known: finite and not negative.
func known(loss float64) bool { return loss >= 0 && !math.IsInf(loss, 1) }
