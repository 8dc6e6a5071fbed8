package curve

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
)

// Recorder makes a curve of what a Trainer says of its progress after each round. A point
// is complete once the next step is seen: until then it is a function of the Trainer's
// state, so that a recorder with the curve and the Trainer of any round goes on to the
// same points.
type Recorder struct {
	limit     int
	curve     *Curve
	last      Point // of the step seen last, not in the curve yet; without a loss it never gets there
	has       bool  // there is one
	committed Mark  // up to where Rest leaves out
}

// Mark is a place in a recorder's curve; zero: its beginning.
type Mark struct {
	any  bool
	step uint64 // of the last point before it
}

// NewRecorder returns a recorder of at most limit points that continues c, which it owns
// from then on; nil: there are no points yet. Rest leaves out what c holds.
func NewRecorder(limit int, c *Curve) *Recorder {
	if c == nil {
		return &Recorder{limit: limit, curve: New()}
	}
	r := &Recorder{limit: limit, curve: c}
	r.committed = r.mark()
	return r
}

// Observe takes the progress after a round, or at the beginning of a Trainer that
// continues; millis are those of running, or Unknown. A step whose losses are not known at
// its end has no point.
func (r *Recorder) Observe(p algorithms.Progress, millis int64) {
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

// Stepped is what a Trainer implements that takes several steps in one round, as a forest
// that collects its trees does: StepLosses returns the training loss after each step so far,
// from step 1 on.
type Stepped interface{ StepLosses() []float64 }

// Follow is Observe of a Trainer's progress after a round, and of the steps within it, whose
// times are not known.
func (r *Recorder) Follow(t algorithms.Trainer, millis int64) {
	p := t.Progress()
	from := r.last.Step
	if s, ok := t.(Stepped); ok && p.Step > from+1 {
		losses := s.StepLosses()
		for step := from + 1; step < min(p.Step, uint64(len(losses))); step++ {
			r.Observe(algorithms.Progress{Step: step, Steps: p.Steps, Loss: losses[step-1]}, Unknown)
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

// Curve returns the curve so far, without the step that is not complete. The recorder
// goes on using it.
func (r *Recorder) Curve() *Curve { return r.curve }

// Rest returns what Extend makes the curve so far of the one that is kept elsewhere, and
// what to tell Kept once it is kept with it.
func (r *Recorder) Uncommitted() (*Curve, Mark) {
	rest := *r.curve
	from := 0
	for r.committed.any && from < len(rest.points) && rest.points[from].Step <= r.committed.step {
		from++
	}
	rest.points = rest.points[from:len(rest.points):len(rest.points)]
	return &rest, r.mark()
}

// Kept says that a rest is kept for good: the next ones begin behind it.
func (r *Recorder) Committed(m Mark) { r.committed = m }

// mark returns the end of the curve so far.
func (r *Recorder) mark() Mark {
	if p := r.curve.lastPoint(); p != nil {
		return Mark{true, p.Step}
	}
	return Mark{}
}

// pointOf returns the point of a progress.
func pointOf(p algorithms.Progress) Point {
	next := Point{Step: p.Step, Training: math.NaN(), Validation: math.NaN(), Millis: Unknown}
	if known(p.Loss) {
		next.Training = p.Loss
	}
	if p.ValidatedAt == p.Step && p.Step > 0 && known(p.Validation) {
		next.Validation = p.Validation
	}
	return next
}

// beginsRefit reports whether a refit begins, whose step is that of the end before it, which
// the last validation is of: there is no point of its own.
func beginsRefit(p algorithms.Progress) bool { return p.Refit > 0 && p.Step == p.Steps-p.Refit }

// known reports whether a loss is one: not negative, and finite.
func known(loss float64) bool { return loss >= 0 && !math.IsInf(loss, 1) }
