package lbfgs

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/internal/num"
)

// function returns a value and writes the gradient to g.
type function func(g, x []float64) float64

// run minimises f, at most so many evaluations.
func run(t testing.TB, m *Minimiser, f function, most int) {
	t.Helper()
	g := make([]float64, len(m.Point()))
	for range most {
		if m.Done() {
			return
		}
		m.Tell(f(g, m.Point()), g)
	}
	t.Fatalf("%d evaluations, %d iterations: value %v, slope %v", m.Evaluations(), m.Iterations(), m.Value(), m.Slope())
}

// rosenbrock is the function of Rosenbrock 1960 in n variables, whose minimum is 0 at ones.
func rosenbrock(g, x []float64) float64 {
	sum := 0.0
	clear(g)
	for i := range len(x) - 1 {
		a, b := x[i+1]-x[i]*x[i], 1-x[i]
		sum += 100*a*a + b*b
		g[i] += -400*a*x[i] - 2*b
		g[i+1] += 200 * a
	}
	return sum
}

// powell is the singular function of Powell 1962, whose Hessian is singular at the minimum.
func powell(g, x []float64) float64 {
	a, b, c, d := x[0]+10*x[1], x[2]-x[3], x[1]-2*x[2], x[0]-x[3]
	g[0] = 2*a + 40*d*d*d
	g[1] = 20*a + 4*c*c*c
	g[2] = 10*b - 8*c*c*c
	g[3] = -10*b - 40*d*d*d
	return a*a + 5*b*b + c*c*c*c + 10*d*d*d*d
}

func TestKnownMinima(t *testing.T) {
	for _, c := range []struct {
		name  string
		f     function
		start []float64
		want  []float64
		near  float64
		most  int
	}{
		{"rosenbrock 2", rosenbrock, []float64{-1.2, 1}, []float64{1, 1}, 1e-7, 100},
		{"rosenbrock 10", rosenbrock, slices.Repeat([]float64{-1.2, 1}, 5), slices.Repeat([]float64{1}, 10), 1e-7, 300},
		{"powell", powell, []float64{3, -1, 0, 1}, []float64{0, 0, 0, 0}, 5e-3, 150},
	} {
		m := New(c.start, Options{Gradient: 1e-9})
		run(t, m, c.f, c.most)
		for i, x := range m.Best() {
			if math.Abs(x-c.want[i]) > c.near {
				t.Errorf("%s: variable %d is %v after %d evaluations (%v)", c.name, i, x, m.Evaluations(), m.Reason())
			}
		}
	}
}

// quadratic is ½ xᵀAx - bᵀx with A = RᵀR + diag, and its minimum by Cholesky.
func quadratic(r *rand.Rand, n int, condition float64) (function, []float64) {
	root := mat.NewDense(n, n, nil)
	for i := range n {
		for j := range n {
			root.Set(i, j, r.NormFloat64())
		}
	}
	var a mat.SymDense
	a.SymOuterK(1, root)
	for i := range n {
		a.SetSym(i, i, a.At(i, i)+float64(n)/condition)
	}
	b := mat.NewVecDense(n, nil)
	for i := range n {
		b.SetVec(i, r.NormFloat64())
	}
	var c mat.Cholesky
	c.Factorize(&a)
	var x mat.VecDense
	if err := c.SolveVecTo(&x, b); err != nil {
		panic(err)
	}
	return func(g, at []float64) float64 {
		v := mat.NewVecDense(n, slices.Clone(at))
		var av mat.VecDense
		av.MulVec(&a, v)
		for i := range g {
			g[i] = av.AtVec(i) - b.AtVec(i)
		}
		return mat.Dot(v, &av)/2 - mat.Dot(v, b)
	}, x.RawVector().Data
}

func TestQuadratics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "n")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		f, want := quadratic(r, n, 10)
		start := make([]float64, n)
		for i := range start {
			start[i] = 10 * r.NormFloat64()
		}
		m := New(start, Options{Gradient: 1e-8})
		g := make([]float64, n)
		before := math.Inf(1)
		for range 2000 {
			if m.Done() {
				break
			}
			m.Tell(f(g, m.Point()), g)
			if m.Value() > before {
				t.Fatalf("the value rose from %v to %v", before, m.Value())
			}
			before = m.Value()
		}
		if m.Reason() != Gradient && m.Reason() != NoStep {
			t.Fatalf("%v after %d evaluations", m.Reason(), m.Evaluations())
		}
		for i, x := range m.Best() {
			if math.Abs(x-want[i]) > 1e-5*(1+math.Abs(want[i])) {
				t.Fatalf("variable %d is %v, not %v (%v)", i, x, want[i], m.Reason())
			}
		}
	})
}

// TestStepsSatisfyWolfe holds every accepted step against the conditions themselves.
func TestStepsSatisfyWolfe(t *testing.T) {
	m := New(slices.Repeat([]float64{-1.2, 1}, 4), Options{Gradient: 1e-10})
	g := make([]float64, 8)
	for !m.Done() {
		f0, g0, d := m.f, slices.Clone(m.g), slices.Clone(m.direction)
		step, begun, iterations := m.search.step, m.begun, m.iterations
		f := rosenbrock(g, m.Point())
		m.Tell(f, g)
		if !begun || m.iterations == iterations {
			continue
		}
		slope0, slope := num.Dot64(g0, d), num.Dot64(g, d)
		if f > f0+1e-3*step*slope0 || math.Abs(slope) > 0.9*math.Abs(slope0) {
			t.Errorf("iteration %d: f %v to %v, slope %v to %v, step %v", m.iterations, f0, f, slope0, slope, step)
		}
	}
	if m.Reason() != Gradient {
		t.Errorf("the end: %v, slope %v", m.Reason(), m.Slope())
	}
}

// TestStateAtEveryEvaluation cuts a run after each evaluation: the rest has the same bits.
func TestStateAtEveryEvaluation(t *testing.T) {
	start := slices.Repeat([]float64{-1.2, 1}, 3)
	whole, cut := New(start, Options{Gradient: 1e-9}), New(start, Options{Gradient: 1e-9})
	g := make([]float64, len(start))
	for !whole.Done() {
		if !slices.Equal(whole.Point(), cut.Point()) {
			t.Fatalf("evaluation %d is at another point", whole.Evaluations())
		}
		f := rosenbrock(g, whole.Point())
		whole.Tell(f, g)
		cut.Tell(f, g)
		b, err := fields.Append(nil, 1, cut.State)
		if err != nil {
			t.Fatal(err)
		}
		cut = New(make([]float64, len(start)), Options{Gradient: 1e-9})
		if err := fields.Read(b, 1, cut.State); err != nil {
			t.Fatal(err)
		}
	}
	if !cut.Done() || cut.Reason() != whole.Reason() || !slices.Equal(cut.Best(), whole.Best()) ||
		cut.Value() != whole.Value() {
		t.Errorf("the run that was cut ended at %v, the whole one at %v", cut.Best(), whole.Best())
	}
}

func TestStatesOfOthersAreRefused(t *testing.T) {
	m := New([]float64{-1.2, 1}, Options{})
	run(t, m, rosenbrock, 1000)
	b, err := fields.Append(nil, 1, m.State)
	if err != nil {
		t.Fatal(err)
	}
	if err := fields.Read(b, 1, New(make([]float64, 3), Options{}).State); err == nil {
		t.Error("a state of two variables was read into three")
	}
	b[1] = byte(reasons)
	if err := fields.Read(b, 1, New(make([]float64, 2), Options{}).State); err == nil {
		t.Error("an unknown reason was read")
	}
}

// TestWalls goes on where the function is not finite beyond some point.
func TestWalls(t *testing.T) {
	f := func(g, x []float64) float64 { // ln has no value from 1 on
		if x[0] >= 1 {
			g[0] = math.NaN()
			return math.Inf(1)
		}
		g[0] = 1/(1-x[0]) - 5
		return -math.Log(1-x[0]) - 5*x[0]
	}
	m := New([]float64{-30}, Options{Gradient: 1e-9})
	run(t, m, f, 200)
	if math.Abs(m.Best()[0]-0.8) > 1e-8 {
		t.Errorf("the minimum is at 0.8, not at %v (%v)", m.Best()[0], m.Reason())
	}
}

func TestEnds(t *testing.T) {
	flat := func(g, x []float64) float64 { clear(g); return 7 }
	wrong := func(g, x []float64) float64 { g[0] = -1; return x[0] } // the sign of the gradient is wrong
	nan := func(g, x []float64) float64 { g[0] = 0; return math.NaN() }
	square := func(g, x []float64) float64 { g[0] = 4 * x[0] * x[0] * x[0]; return x[0] * x[0] * x[0] * x[0] }
	for _, c := range []struct {
		f    function
		o    Options
		want Reason
	}{
		{flat, Options{}, Gradient},
		{wrong, Options{}, NoStep},
		{nan, Options{}, NotFinite},
		{square, Options{Iterations: 3}, Iterations},
		{square, Options{Fall: 1e-3}, Fall},
	} {
		m := New([]float64{3}, c.o)
		run(t, m, c.f, 200)
		if m.Reason() != c.want {
			t.Errorf("ended because %v, not because %v", m.Reason(), c.want)
		}
	}
	m := New([]float64{3}, Options{Iterations: 3})
	run(t, m, square, 200)
	if m.Iterations() != 3 {
		t.Errorf("%d iterations of 3", m.Iterations())
	}
}

func BenchmarkDirection(b *testing.B) {
	const n = 1869 * 5
	h := newMemory(n)
	x, g := make([]float64, n), make([]float64, n)
	x1, g1 := make([]float64, n), make([]float64, n)
	for k := range pairs {
		for i := range x1 {
			x1[i], g1[i] = float64((i*7+k)%11), float64((i*7+k)%11)/2
		}
		h.remember(x, g, x1, g1)
	}
	for b.Loop() {
		h.direction(x, g1)
	}
}

// TestFirstStep: the first step is 1 long, also after RestartAt, however small the gradient. After Restart it is no
// longer than the gradient.
func TestFirstStep(t *testing.T) {
	const small = 1e-2
	f := func(g, x []float64) float64 {
		g[0], g[1] = small*(x[0]-3), 2*small*x[1]
		return small * ((x[0]-3)*(x[0]-3)/2 + x[1]*x[1])
	}
	m := New([]float64{0, 1}, Options{})
	step := func() float64 {
		g, x := make([]float64, 2), slices.Clone(m.Point())
		m.Tell(f(g, x), g)
		return math.Hypot(m.Point()[0]-x[0], m.Point()[1]-x[1])
	}
	first := step()
	for m.Iterations() < 2 {
		step()
	}
	m.RestartAt([]float64{0, 1}, Options{})
	again := step()
	for m.Iterations() < 2 {
		step()
	}
	m.Restart(Options{})
	warm := step()
	if math.Abs(first-1) > 1e-12 || again != first || warm > math.Sqrt2*m.Slope() {
		t.Errorf("first steps are %v, %v and %v long, the gradient is %v", first, again, warm, m.Slope())
	}
}
