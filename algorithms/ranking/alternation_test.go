package ranking

import (
	"fmt"
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// problem returns all pairs of n random rows with intervals, and their features.
func problem(c *Config, n, features int) (*part, *dataset.Rows) {
	r := &dataset.Rows{N: n, Features: features, X: make([]float32, n*features), Row: make([]uint32, n)}
	s := num.NewStream(num.NewKey(9, "ranking/test"), 0, 0)
	for i := range r.X {
		r.X[i] = float32(s.Normal())
	}
	k := &kernel{cfg: *c}
	p := k.whole(r, deviationOf(r, nil), nil)
	for i := range n {
		r.Row[i] = uint32(i)
		p.low[i] = 20 + 10*float64(r.X[i*features]) + 3*s.Normal()
		p.high[i] = p.low[i] + 4*s.Float64()
	}
	return p, r
}

func config(lambda float64, loops, em int) *Config {
	c := settings.Default()
	c.Lambda, c.Loops, c.Rounds, c.Tolerance = lambda, loops, em, 0
	return c
}

// alternate runs an alternation on one part.
func alternate(c *Config, p *part) *alternation {
	a := newAlternation(c, p.m)
	for a.stage != stageDone {
		q := a.request()
		p.exact(a, &q)
	}
	return a
}

// twin is section 3.4 of Yan et al. 2007 with matrices and Householder QR of [A; √λ I].
type twin struct {
	k         [][][]float64
	low, high []float64
	lambda    float64
	u, v, l   []float64
}

func newTwin(c *Config, p *part) *twin {
	t := &twin{low: p.low, high: p.high, lambda: c.Lambda, u: make([]float64, p.m), v: make([]float64, len(p.k))}
	for o, k := range p.k {
		t.v[o] = 1 / float64(len(p.k))
		t.k = append(t.k, nil)
		for i := range p.m {
			t.k[o] = append(t.k[o], k[i*p.m:(i+1)*p.m])
		}
	}
	for i := range t.low {
		t.l = append(t.l, (t.low[i]+t.high[i])/2)
	}
	return t
}

// a is A, and b is B.
func (t *twin) a() [][]float64 {
	a := make([][]float64, len(t.l))
	for i := range a {
		a[i] = make([]float64, len(t.u))
		for o, v := range t.v {
			for j := range a[i] {
				a[i][j] += v * t.k[o][i][j]
			}
		}
	}
	return a
}

func (t *twin) b() [][]float64 {
	b := make([][]float64, len(t.l))
	for i := range b {
		b[i] = make([]float64, len(t.v))
		for o := range t.v {
			for j, u := range t.u {
				b[i][o] += u * t.k[o][i][j]
			}
		}
	}
	return b
}

// least returns the x of least ‖a·x - l‖² + λ‖x‖².
func (t *twin) least(test testing.TB, a [][]float64) []float64 {
	rows, columns := len(a), len(a[0])
	m, right := linalg.New(rows+columns, columns), linalg.New(rows+columns, 1)
	for i, row := range a {
		for j, x := range row {
			m.Set(i, j, x)
		}
		right.Set(i, 0, t.l[i])
	}
	for j := range columns {
		m.Set(rows+j, j, math.Sqrt(t.lambda))
	}
	x, err := linalg.LeastSquares(m, right, 0)
	if err != nil {
		test.Fatal(err)
	}
	return x.V
}

func (t *twin) predictions() []float64 {
	p := make([]float64, len(t.l))
	for i, row := range t.b() {
		for o, x := range row {
			p[i] += x * t.v[o]
		}
	}
	return p
}

func (t *twin) objective() float64 {
	sum := 0.0
	for i, p := range t.predictions() {
		sum += (t.l[i] - p) * (t.l[i] - p)
	}
	for _, all := range [][]float64{t.u, t.v} {
		for _, x := range all {
			sum += t.lambda * x * x
		}
	}
	return sum
}

// run returns the objectives before each solution, and at the end.
func (t *twin) run(test testing.TB, c *Config) (trace []float64) {
	for em := range c.Rounds {
		if em > 0 {
			for i, p := range t.predictions() {
				t.l[i] = min(max(p, t.low[i]), t.high[i])
			}
		}
		for range c.Loops {
			trace = append(trace, t.objective())
			t.u = t.least(test, t.a())
			trace = append(trace, t.objective())
			t.v = t.least(test, t.b())
		}
	}
	return append(trace, t.objective())
}

// TestTwin: the objectives of every step and the predictions are those of the twin.
func TestTwin(t *testing.T) {
	for _, lambda := range []float64{5e-4, 0.1} {
		c := config(lambda, 4, 3)
		p, _ := problem(c, 70, 3)
		w := newTwin(c, p)
		want, a := w.run(t, c), alternate(c, p)
		if len(a.trace) != len(want) || a.loops != 12 || a.rounds != 3 {
			t.Fatalf("%d objectives, want %d; %d loops, %d rounds", len(a.trace), len(want), a.loops, a.rounds)
		}
		for i, v := range a.trace {
			if math.Abs(v-want[i]) > 1e-7*want[i] {
				t.Errorf("λ %v: objective %d is %v, of the twin %v", lambda, i, v, want[i])
			}
		}
		got := make([]float64, len(p.l))
		p.predict(got, a.now)
		outside := 0.0
		for i, v := range w.predictions() {
			if math.Abs(got[i]-v) > 1e-5 {
				t.Errorf("λ %v: row %d has %v, of the twin %v", lambda, i, got[i], v)
			}
			d := min(max(v, p.low[i]), p.high[i]) - v
			outside += d * d
		}
		if math.Abs(a.costs-outside) > 1e-6*max(1, outside) {
			t.Errorf("λ %v: %v outside of the intervals, of the twin %v", lambda, a.costs, outside)
		}
	}
}

// TestNeverRises: each solution lowers the objective, and a new number within an interval too. The
// end is no higher than with normal equations that are solved from scratch and not refined.
func TestNeverRises(t *testing.T) {
	testkit.WithoutRace(t)
	for _, lambda := range []float64{1e-9, 5e-4, 1} {
		c := config(lambda, 12, 4)
		p, _ := problem(c, 120, 4)
		a := alternate(c, p)
		rises(t, fmt.Sprint("λ ", lambda), a.trace)
		if plain := plainCholesky(c, p); !(a.trace[2*c.Loops] <= plain*(1+1e-9)) {
			t.Errorf("λ %v: objective %v after an M-step, %v without refinement", lambda, a.trace[2*c.Loops], plain)
		}
	}
}

func rises(t *testing.T, name string, trace []float64) {
	t.Helper()
	for i := 1; i < len(trace); i++ {
		if !(trace[i] <= trace[i-1]*(1+1e-9)) {
			t.Errorf("%s: objective %d rises from %v to %v", name, i, trace[i-1], trace[i])
		}
	}
}

// plainCholesky returns the objective of an M-step whose solutions are (AᵀA + λI)⁻¹Aᵀl; +Inf where
// the matrix is not positive definite.
func plainCholesky(c *Config, p *part) float64 {
	w := newTwin(c, p)
	solved := func(a [][]float64) []float64 {
		m := len(a[0])
		g, x := linalg.New(m, m), make([]float64, m)
		flat := linalg.New(len(a), m)
		for i, row := range a {
			copy(flat.V[i*m:], row)
			linalg.AddScaled(x, w.l[i], row)
		}
		linalg.Gram(g, flat)
		for i := range m {
			g.Set(i, i, g.At(i, i)+c.Lambda)
		}
		if linalg.Cholesky(g) != nil {
			return nil
		}
		solve(g, x)
		return x
	}
	for range c.Loops {
		if w.u = solved(w.a()); w.u == nil {
			return math.Inf(1)
		}
		if w.v = solved(w.b()); w.v == nil {
			return math.Inf(1)
		}
	}
	return w.objective()
}

// TestOptimiser: Eq. 18 and Eq. 17 are the minima that an optimiser finds which knows the
// objective and its gradient alone.
func TestOptimiser(t *testing.T) {
	c := config(0.05, 1, 1)
	p, _ := problem(c, 14, 3)
	a := newAlternation(c, p.m)
	w := newTwin(c, p)
	q := a.request()
	p.setLabels(&q)
	for a.stage != stageWeights { // the solution for u
		q := a.request()
		p.exact(a, &q)
	}
	sameMinimum(t, "Eq. 18", w, w.a(), a.now.u)
	w.u = a.now.u
	matrix := w.b()
	for a.stage == stageWeights || a.stage == stageRefine {
		q := a.request()
		p.exact(a, &q)
	}
	sameMinimum(t, "Eq. 17", w, matrix, a.now.v)
}

// sameMinimum minimises ‖a·x - l‖² + λ‖x‖² and compares.
func sameMinimum(t *testing.T, name string, w *twin, a [][]float64, got []float64) {
	t.Helper()
	left := func(x []float64) []float64 {
		r := make([]float64, len(a))
		for i, row := range a {
			r[i] = w.l[i] - dot(row, x)
		}
		return r
	}
	gradient := func(g, x []float64) {
		r := left(x)
		for j := range g {
			g[j] = w.lambda * x[j]
			for i := range a {
				g[j] -= a[i][j] * r[i]
			}
		}
	}
	best := minimum(gradient, len(got))
	for i, x := range got {
		if math.Abs(x-best[i]) > 1e-8*max(1, math.Abs(x)) {
			t.Errorf("%s: value %d is %v, of the optimiser %v", name, i, x, best[i])
		}
	}
}

// minimum goes down conjugate directions (Hestenes and Stiefel 1952) of a quadratic function, of
// which it knows the gradient alone.
func minimum(gradient func(g, x []float64), n int) []float64 {
	x, g, next, ahead := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for range 100 { // restarts
		gradient(g, x)
		d := make([]float64, n)
		linalg.AddScaled(d, -1, g)
		for range n {
			copy(ahead, x)
			linalg.AddScaled(ahead, 1, d)
			gradient(next, ahead) // the change of the slope along d
			curve := dot(d, next) - dot(d, g)
			if curve <= 0 {
				break
			}
			linalg.AddScaled(x, -dot(d, g)/curve, d)
			gradient(next, x)
			share := (dot(next, next) - dot(next, g)) / dot(g, g)
			for i := range d {
				d[i] = share*d[i] - next[i]
			}
			copy(g, next)
		}
	}
	return x
}

// TestDamped: a matrix that is not positive definite as it is rounded gets more than λ, which is
// counted, and the objective falls still.
func TestDamped(t *testing.T) {
	c := config(1e-9, 3, 1)
	p, _ := problem(c, 60, 2)
	for _, k := range p.k {
		for i := range k {
			k[i] *= 1e6
		}
	}
	a := alternate(c, p)
	if a.damped == 0 {
		t.Error("no factor is damped")
	}
	rises(t, "damped", a.trace)
}

// TestDampedIsCountedOnce: a factor counts once if it needs more than λ, and not at all otherwise.
func TestDampedIsCountedOnce(t *testing.T) {
	a := newAlternation(config(0.5, 1, 1), 2)
	for i, c := range []struct {
		diagonal, beside float64
		want             uint64
	}{{2, 1, 0}, {1, 3, 1}, {1, 900, 2}, {3, 1, 2}} {
		g := linalg.New(2, 2)
		unpack(g, []float64{c.diagonal, c.beside, c.diagonal})
		if a.factorise(g); a.damped != c.want {
			t.Errorf("matrix %d: %d factors are damped, want %d", i, a.damped, c.want)
		}
	}
}

// TestEndOfLoops: an M-step ends once u and v both move by less than the tolerance, or after the greatest number of
// loops. EM ends after the greatest number of rounds, or after an M-step, not the first, of one loop that ends so.
func TestEndOfLoops(t *testing.T) {
	const still, moves = 0.25, 0.5
	for _, c := range []struct {
		u, v                 float64 // by which they move
		loop, rounds         uint64  // before
		stage                uint8
		loopThen, roundsThen uint64
	}{
		{still, still, 1, 0, stageGram, 0, 1}, // the next M-step
		{moves, still, 1, 0, stageGram, 2, 0}, // the next loop
		{still, moves, 1, 0, stageGram, 2, 0},
		{moves, moves, 1, 0, stageGram, 2, 0},
		{moves, moves, 3, 0, stageGram, 0, 1},  // the loops are over
		{still, still, 0, 0, stageGram, 0, 1},  // the first M-step ends after a loop
		{still, still, 0, 1, stageCosts, 1, 2}, // the second one does
		{still, still, 1, 1, stageGram, 0, 2},
		{moves, still, 0, 1, stageGram, 1, 1},
		{moves, moves, 3, 3, stageCosts, 4, 4}, // the rounds are over
		{still, still, 2, 3, stageCosts, 3, 4},
	} {
		cfg := config(1, 4, 4)
		cfg.Tolerance = moves
		a := newAlternation(cfg, 1)
		a.before.u[0], a.before.v[0] = 8, 8
		a.now.u[0], a.now.v[0] = 8+c.u, 8-c.v
		a.loop, a.rounds = c.loop, c.rounds
		a.endLoop()
		if a.stage != c.stage || a.loop != c.loopThen || a.rounds != c.roundsThen {
			t.Errorf("u moves by %v and v by %v in loop %d of round %d: stage %d, loop %d of round %d", c.u, c.v, c.loop,
				c.rounds, a.stage, a.loop, a.rounds)
		}
	}
}

// TestWidths: δ_o of the paper, and with the exponent's sign as it is printed.
func TestWidths(t *testing.T) {
	for word, want := range map[string][]float64{
		widthsWide:    {16, math.Pow(2, 3.6), math.Pow(2, 3.2), math.Pow(2, 2.8)},
		widthsPrinted: {1. / 16, math.Pow(2, -3.6), math.Pow(2, -3.2), math.Pow(2, -2.8)},
	} {
		c := settings.Default()
		c.Widths = word
		for o, w := range widths(c, 3) {
			if d := math.Sqrt(w) / 3; math.Abs(d-want[o]) > 1e-12*want[o] {
				t.Errorf("%s, kernel %d: %v, want %v", word, o, d, want[o])
			}
		}
	}
}
