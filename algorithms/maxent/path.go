package maxent

import (
	"github.com/coppice-ldl/coppice/algorithms/fields"
	"github.com/coppice-ldl/coppice/algorithms/lbfgs"
)

// pathDecays are the decays of a path, of the mean loss; the last stage has the objective's own.
var pathDecays = [...]float64{3, 1, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 0}

// stageIterations is how many iterations a stage takes at most, but for the last one.
const stageIterations = 20

// path looks for a minimum under one decay after the other, the greatest first: each stage begins at
// the best point of the stage before. It implements fullbatch.Optimiser. Early stopping takes the point of
// the least validation loss along the path, so that validation chooses the decay.
type path struct {
	objective *Objective
	by        *lbfgs.Minimiser
	options   lbfgs.Options // Iterations is the number of all stages
	stage     uint64
	before    uint64 // iterations of the stages before
}

func newPath(o *Objective, options lbfgs.Options) *path {
	p := &path{objective: o, options: options}
	p.by = lbfgs.New(make([]float64, o.Point()), p.stageOptions())
	o.Least = pathDecays[0]
	return p
}

// last reports whether this is the last stage.
func (p *path) last() bool { return p.stage+1 == uint64(len(pathDecays)) }

// stageOptions are those of the stage.
func (p *path) stageOptions() lbfgs.Options {
	o := p.options
	o.Iterations -= int(p.before)
	if !p.last() {
		o.Iterations = min(o.Iterations, stageIterations)
	}
	return o
}

// Point implements fullbatch.Optimiser.
func (p *path) Point() []float64 { return p.by.Point() }

// Best implements fullbatch.Optimiser.
func (p *path) Best() []float64 { return p.by.Best() }

// Iterations implements fullbatch.Optimiser.
func (p *path) Iterations() int { return int(p.before) + p.by.Iterations() }

// Done implements fullbatch.Optimiser. It holds after the last stage, or the last iteration: Tell begins the next
// stage where one ends before.
func (p *path) Done() bool { return p.by.Done() }

// Tell implements fullbatch.Optimiser.
func (p *path) Tell(f float64, g []float64) {
	p.by.Tell(f, g)
	if p.by.Done() && !p.last() && p.Iterations() < p.options.Iterations {
		p.before = uint64(p.Iterations())
		p.stage++
		p.by.Restart(p.stageOptions())
		p.objective.Least = pathDecays[p.stage]
	}
}

// State implements fullbatch.Optimiser.
func (p *path) State(l *fields.List) {
	l.Uint64(&p.stage, &p.before)
	most := uint64(p.options.Iterations)
	l.Check(p.stage < uint64(len(pathDecays)) && p.before <= min(most, p.stage*stageIterations), "stage %d of a path after %d iterations", p.stage, p.before)
	if l.Reading() {
		p.stage, p.before = min(p.stage, uint64(len(pathDecays)-1)), min(p.before, most)
		p.by.Restart(p.stageOptions())
		p.objective.Least = pathDecays[p.stage]
	}
	p.by.State(l)
}
