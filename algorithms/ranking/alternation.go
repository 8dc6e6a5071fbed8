package ranking

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/internal/linalg"
)

// The stages of an alternation: which sums over the training rows it needs next.
const (
	stageGram     uint8 = iota // AᵀA and Aᵀ(l - A u)
	stageResidual              // Aᵀ(l - A u)
	stageWeights               // BᵀB and Bᵀ(l - B v), with B = [K^1 u, ..., K^n u]
	stageRefine                // Bᵀ(l - B v)
	stageCosts                 // the distances from the intervals
	stageDone
)

// alternation is the EM algorithm of section 3.4 of Yan et al. 2007 as a state machine: it
// takes sums over the rows, one stage after the other. m is the number of landmarks.
type alternation struct {
	cfg  *Config
	m, n int

	stage   uint8
	now     point
	labels  point  // whose predictions, cut to the intervals, are the rows' numbers; none in the first round of EM
	before  point  // the loop began with
	refined uint64 // residuals that the solution has had
	loop    uint64 // of the M-step
	loops   uint64 // in all
	rounds  uint64 // of EM that are done
	damped  uint64 // factors that needed more than λ on the diagonal
	factor  linalg.Matrix
	trace   []float64 // the objective before each solution, and at the end
	costs   float64   // Σ of squared distances from the intervals, at the end
}

func newAlternation(c *Config, m int) *alternation {
	n := c.Kernels
	a := &alternation{cfg: c, m: m, n: n, now: newPoint(m, n), labels: newPoint(m, n), before: newPoint(m, n)}
	for o := range a.now.v {
		a.now.v[o] = 1 / float64(n)
	}
	a.before.set(a.now)
	return a
}

// pairs returns the number of pairs of n values, each with itself too.
func pairs(n int) int { return n * (n + 1) / 2 }

// size returns how many sums the stage has: the squared residuals, then a vector, then the
// products of pairs on and below the diagonal; at the end the squared distances in their place.
func (a *alternation) size() int {
	switch a.stage {
	case stageGram:
		return 1 + a.m + pairs(a.m)
	case stageResidual:
		return 1 + a.m
	case stageWeights:
		return 1 + a.n + pairs(a.n)
	case stageRefine:
		return 1 + a.n
	}
	return 2
}

// fold takes the sums of the stage.
func (a *alternation) fold(sum []float64) {
	switch a.stage {
	case stageGram:
		g := linalg.New(a.m, a.m)
		unpack(g, sum[1+a.m:])
		a.foldGram(sum[0], sum[1:1+a.m], g)
	case stageResidual:
		a.step(a.now.u, sum[1:])
		a.refine(stageWeights)
	case stageWeights:
		g := linalg.New(a.n, a.n)
		unpack(g, sum[1+a.n:])
		a.begin(sum[0], a.now.v, sum[1:1+a.n], g, stageRefine)
	case stageRefine:
		a.step(a.now.v, sum[1:])
		if a.refine(stageGram); a.stage == stageGram {
			a.endLoop()
		}
	case stageCosts:
		a.note(sum[0])
		a.costs, a.stage = sum[1], stageDone
	}
}

// foldGram is fold of stageGram. g is AᵀA, and is overwritten.
func (a *alternation) foldGram(squares float64, right []float64, g linalg.Matrix) {
	a.begin(squares, a.now.u, right, g, stageResidual)
}

// begin begins a solution: it notes the objective, factors g + λI and takes the first step.
func (a *alternation) begin(squares float64, x, right []float64, g linalg.Matrix, next uint8) {
	a.note(squares)
	a.factorise(g)
	a.step(x, right)
	a.refined, a.stage = 0, next
}

// note appends the objective to the trace; squares is the sum of its squared residuals.
func (a *alternation) note(squares float64) {
	a.trace = append(a.trace, squares+float64(a.cfg.Lambda*(dot(a.now.u, a.now.u)+dot(a.now.v, a.now.v))))
}

// factorise factors g + λI in place; g is symmetric. Where that is not positive definite as it is
// rounded, more than λ is added, ten times as much each time: the step is then too short, never too
// long, and the objective falls still.
func (a *alternation) factorise(g linalg.Matrix) {
	diagonal := make([]float64, g.Rows)
	for i := range diagonal {
		diagonal[i] = g.At(i, i)
	}
	a.factor = g
	for ridge := a.cfg.Lambda; !math.IsInf(ridge, 1); ridge *= 10 {
		for i, v := range diagonal {
			g.Set(i, i, v+ridge)
			for j := range i {
				g.Set(i, j, g.At(j, i))
			}
		}
		if linalg.Cholesky(g) == nil {
			return
		}
		if ridge == a.cfg.Lambda {
			a.damped++
		}
	}
}

// step adds the solution for the residual right - λx to x.
func (a *alternation) step(x, right []float64) {
	d := make([]float64, len(x))
	for i, r := range right {
		d[i] = r - float64(a.cfg.Lambda*x[i])
	}
	solve(a.factor, d)
	for i, v := range d {
		x[i] += v
	}
}

// solve replaces b by x with l·lᵀ·x = b.
func solve(l linalg.Matrix, b []float64) {
	row := func(i int) []float64 { return l.V[i*l.RowStep:][:i+1] }
	for i := range b {
		b[i] = (b[i] - dot(row(i)[:i], b[:i])) / row(i)[i]
	}
	for i := len(b) - 1; i >= 0; i-- {
		b[i] /= row(i)[i]
		linalg.AddScaled(b[:i], -b[i], row(i)[:i])
	}
}

// refine counts a refinement; after the last the next stage comes.
func (a *alternation) refine(next uint8) {
	if a.refined++; a.refined == uint64(a.cfg.Refinements) {
		a.stage, a.factor = next, linalg.Matrix{}
	}
}

// endLoop ends an inner loop and, where u and v no longer change or the loops are over, the
// M-step.
func (a *alternation) endLoop() {
	still := distance(a.now.u, a.before.u) < a.cfg.Tolerance && distance(a.now.v, a.before.v) < a.cfg.Tolerance
	a.before.set(a.now)
	a.loop++
	a.loops++
	if !still && a.loop < uint64(a.cfg.Loops) {
		return
	}
	a.rounds++
	if a.rounds == uint64(a.cfg.Rounds) || still && a.loop == 1 && a.rounds > 1 {
		a.stage = stageCosts
		return
	}
	a.labels.set(a.now)
	a.loop = 0
}

// request returns what the sums of the stage depend on.
func (a *alternation) request() request {
	return request{stage: a.stage, now: a.now, labels: a.labels, middles: a.rounds == 0}
}

// state lists the fields.
func (a *alternation) state(l *fields.List) {
	l.Byte(&a.stage)
	l.Check(a.stage <= stageDone, "stage %d is not possible", a.stage)
	l.Float64s(a.now.u, a.now.v, a.labels.u, a.labels.v, a.before.u, a.before.v)
	l.Uint64(&a.refined, &a.loop, &a.loops, &a.rounds, &a.damped)
	l.Float64(&a.costs)
	a.stateTrace(l)
	a.stateFactor(l)
	c := a.cfg
	ended := a.stage >= stageCosts
	l.Check(a.refined <= uint64(c.Refinements) && a.rounds <= uint64(c.Rounds) && a.loop <= uint64(c.Loops) &&
		a.loops <= uint64(c.Rounds)*uint64(c.Loops) &&
		(ended || a.rounds < uint64(c.Rounds)), "the saved state is at inner loop %d of round %d, which is not possible",
		a.loops, a.rounds)
}

// stateTrace lists the trace, two objectives for each loop at most, and one.
func (a *alternation) stateTrace(l *fields.List) {
	n := uint64(len(a.trace))
	l.Uint64(&n)
	l.Check(n <= uint64(mostTrace(a.cfg)), "%d objectives are not possible", n)
	if l.Reading() {
		a.trace = make([]float64, n)
	}
	l.Float64s(a.trace)
}

// mostTrace is the greatest number of objectives.
func mostTrace(c *Config) int { return 2*c.Rounds*c.Loops + 1 }

// stateFactor lists the factor while a solution is refined.
func (a *alternation) stateFactor(l *fields.List) {
	n := 0
	switch a.stage {
	case stageResidual:
		n = a.m
	case stageRefine:
		n = a.n
	}
	if n == 0 {
		return
	}
	packed := make([]float64, pairs(n))
	if !l.Reading() {
		pack(packed, a.factor)
	}
	l.Float64s(packed)
	if l.Reading() {
		a.factor = linalg.New(n, n)
		unpack(a.factor, packed)
	}
}

// pack sets dst to the part of a square matrix on and below the diagonal, row by row.
func pack(dst []float64, m linalg.Matrix) {
	at := 0
	for i := range m.Rows {
		at += copy(dst[at:], m.V[m.First+i*m.RowStep:][:i+1])
	}
}

// unpack sets a symmetric matrix to what pack made of it.
func unpack(m linalg.Matrix, src []float64) {
	for i := range m.Rows {
		row := src[:i+1]
		src = src[i+1:]
		for j, v := range row {
			m.Set(i, j, v)
			m.Set(j, i, v)
		}
	}
}
