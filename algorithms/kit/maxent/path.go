package maxent

import (
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/lbfgs"
)

// pathDecays are the decays of a path, of the mean loss; the last stage has the objective's own.
var pathDecays = []float64{3, 1, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 0}

// decaysFrom returns the decays of a path that begins at first.
func decaysFrom(first float64) []float64 {
	i := slices.IndexFunc(pathDecays, func(d float64) bool { return d < first })
	if i < 0 { // first is 0
		return fixedDecay
	}
	return append([]float64{first}, pathDecays[i:]...)
}

// fixedDecay is the course of a fit with the objective's own decay alone.
var fixedDecay = []float64{0}

// How many iterations a stage takes at most that is not the last: with a decay above the usual one, with the usual one,
// and below it.
const (
	strongIterations = 20
	usualIterations  = 200
	weakIterations   = 100
)

// weakMargin is the share by which a decay below the usual one must lower the validation loss.
const weakMargin = 0.002

var _ fullbatch.Stager = (*path)(nil)

// path looks for a minimum under one decay after the other, the greatest first: each stage begins at
// the best point of the stage before. It implements fullbatch.Optimiser. Early stopping takes the point of
// the least validation loss along the path, so that validation chooses the decay. Decays below the usual one are tried
// while they lower the validation loss clearly. A refit takes as many iterations in each stage as there were, up to the
// best point.
type path struct {
	objective *Objective
	decays    []float64
	usual     float64 // decay
	by        *lbfgs.Minimiser
	options   lbfgs.Options // Iterations is the number of all stages
	stage     uint64
	before    uint64 // iterations of the stages before
	over      bool   // true if smaller decays are not tried

	// ends are the iterations of the path at the end of each stage that has ended; in a refit, of the
	// search before, and the last is its best point.
	ends     []uint64
	repeated bool
}

func newPath(o *Objective, decays []float64, usual float64, options lbfgs.Options) *path {
	p := &path{objective: o, decays: decays, usual: usual, options: options}
	p.by = lbfgs.New(make([]float64, o.Point()), p.stageOptions())
	o.Least = decays[0]
	return p
}

// last reports whether this is the last stage.
func (p *path) last() bool {
	if p.repeated {
		return p.stage+1 == uint64(len(p.ends))
	}
	return p.stage+1 == uint64(len(p.decays))
}

// stageOptions are the options of the stage.
func (p *path) stageOptions() lbfgs.Options {
	o := p.options
	if p.repeated {
		o.Iterations = int(p.repeats(p.stage))
	} else {
		o.Iterations -= int(p.before)
	}
	switch decay := p.decays[p.stage]; {
	case p.stage+1 == uint64(len(p.decays)):
	case decay > p.usual:
		o.Iterations = min(o.Iterations, strongIterations)
	case decay == p.usual:
		o.Iterations = min(o.Iterations, usualIterations)
	default:
		o.Iterations = min(o.Iterations, weakIterations)
	}
	return o
}

// repeats returns how many iterations a stage takes in a refit.
func (p *path) repeats(stage uint64) uint64 {
	if stage == 0 {
		return p.ends[0]
	}
	return p.ends[stage] - p.ends[stage-1]
}

// Point implements fullbatch.Optimiser.
func (p *path) Point() []float64 { return p.by.Point() }

// Best implements fullbatch.Optimiser.
func (p *path) Best() []float64 { return p.by.Best() }

// Iterations implements fullbatch.Optimiser.
func (p *path) Iterations() int { return int(p.before) + p.by.Iterations() }

// Done implements fullbatch.Optimiser.
func (p *path) Done() bool {
	return p.over || p.by.Done() && (p.last() || !p.repeated && p.Iterations() >= p.options.Iterations)
}

// StageDone implements fullbatch.Stager. In a refit the next stage begins without Advance.
func (p *path) StageDone() bool { return !p.repeated && p.by.Done() && !p.Done() }

// Advance implements fullbatch.Stager.
func (p *path) Advance(best uint64, stale bool) (margin float64) {
	if strong := p.decays[p.stage] > p.usual; p.last() || strong && stale || !strong && best > 0 && best <= p.before {
		p.over = true
		return 0
	}
	n := uint64(p.Iterations())
	p.ends = append(p.ends, n)
	if p.begin(p.stage+1, n); p.decays[p.stage] < p.usual {
		return weakMargin
	}
	return 0
}

// Tell implements fullbatch.Optimiser.
func (p *path) Tell(f float64, g []float64) {
	p.by.Tell(f, g)
	if p.repeated && p.by.Done() && !p.last() {
		p.begin(p.stage+1, uint64(p.Iterations()))
	}
}

// begin begins a stage, after iterations of the stages before. A refit passes over the stages that take no iteration;
// the last one takes some.
func (p *path) begin(stage, before uint64) {
	p.stage, p.before = stage, before
	p.skip()
	p.by.Restart(p.stageOptions())
	p.objective.Least = p.decays[p.stage]
}

// skip passes over the stages of a refit that take no iteration. The last one takes some.
func (p *path) skip() {
	for p.repeated && p.repeats(p.stage) == 0 {
		p.stage++
	}
}

// Repeat implements fullbatch.Repeater: the last stage is the one that had the iteration.
func (p *path) Repeat(iterations uint64) {
	i, _ := slices.BinarySearch(p.ends, iterations)
	p.ends = append(p.ends[:i], iterations)
	p.repeated, p.over, p.stage, p.before = true, false, 0, 0
	p.skip()
	p.by.RestartAt(make([]float64, p.objective.Point()), p.stageOptions())
	p.objective.Least = p.decays[p.stage]
}

// State implements fullbatch.Optimiser.
func (p *path) State(l *fields.List) {
	l.Bool(&p.repeated)
	l.Bool(&p.over)
	l.Uint64(&p.stage, &p.before)
	ended := uint64(len(p.ends))
	l.Uint64(&ended)
	most := uint64(len(p.decays))
	l.Check(p.stage < most && ended <= most, "the saved state is in stage %d of the decay path, but %d stages have ended",
		p.stage, ended)
	if l.Reading() {
		p.ends = make([]uint64, ended)
	}
	for i := range p.ends {
		l.Uint64(&p.ends[i])
	}
	l.Check(p.occurs(), "the saved state has stage %d of the decay path after %d iterations, but stages end at %d",
		p.stage, p.before, p.ends)
	if l.Reading() {
		p.by.Restart(p.stageOptions())
		p.objective.Least = p.decays[p.stage]
	}
	p.by.State(l)
	if l.Reading() {
		n := p.by.Iterations()
		l.Check(n >= 0 && n <= p.stageOptions().Iterations, "iteration %d of stage %d of the decay path is not possible",
			n, p.stage)
	}
}

// occurs reports whether a search can have such stages.
func (p *path) occurs() bool {
	n, end := uint64(len(p.ends)), uint64(0)
	if n > 0 {
		end = p.ends[n-1]
	}
	switch most := uint64(p.options.Iterations); {
	case !slices.IsSorted(p.ends), p.over && p.repeated:
		return false
	case p.repeated:
		return p.stage < n && end <= most && p.repeats(n-1) > 0 && p.repeats(p.stage) > 0 &&
			p.before <= p.ends[p.stage]-p.repeats(p.stage)
	default:
		return p.stage == n && p.before == end && end < most
	}
}
