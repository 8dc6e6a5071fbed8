package rprop

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
)

func options(iterations int) Options {
	return Options{Iterations: iterations, First: 0.1, Least: 1e-9, Most: 50, Grow: 1.2, Shrink: 0.5}
}

// TestSteps follows one variable: growth, a change of sign without a move, the first move after it.
func TestSteps(t *testing.T) {
	m := New([]float64{1}, options(10))
	for i, x := range []struct{ derivative, point, step float64 }{
		{3, 0.9, 0.1},      // the first step
		{1e-9, 0.78, 0.12}, // the sign stays: longer
		{-5, 0.78, 0.06},   // it changes: shorter, no move
		{-5, 0.84, 0.06},   // the derivative before counts as 0
		{-1, 0.912, 0.072}, // the sign stays
		{0, 0.912, 0.072},  // at the minimum
		{math.NaN(), 0.912, 0.072},
		{-1, 0.984, 0.072},
	} {
		m.Tell(0, []float64{x.derivative})
		if math.Abs(m.Point()[0]-x.point) > 1e-12 || math.Abs(m.step[0]-x.step) > 1e-12 || m.Iterations() != i+1 {
			t.Errorf("iteration %d: point %v, step %v, want %v, %v", i, m.Point()[0], m.step[0], x.point, x.step)
		}
	}
}

// TestBounds: a step stays within its bounds.
func TestBounds(t *testing.T) {
	o := options(200)
	o.Most, o.Least = 2, 0.05
	m := New([]float64{0}, o)
	for range 50 {
		m.Tell(0, []float64{-1})
	}
	if m.step[0] != 2 {
		t.Errorf("step %v", m.step[0])
	}
	for i := range 50 {
		m.Tell(0, []float64{1 - 2*float64(i/2%2)}) // signs in pairs: a change every second time
	}
	if m.step[0] < 0.05 || m.step[0] > 2 {
		t.Errorf("step %v", m.step[0])
	}
}

// TestFindsAMinimum of a badly scaled convex function, and goes on to the same bits from the state
// after any iteration.
func TestFindsAMinimum(t *testing.T) {
	gradient := func(x []float64) []float64 {
		g := make([]float64, len(x))
		for i := range x {
			g[i] = math.Pow(10, float64(3*i)) * (x[i] - float64(i+1))
		}
		g[0] += 0.3 * (x[0] - 1 + x[1] - 2)
		g[1] += 0.3 * (x[0] - 1 + x[1] - 2)
		return g
	}
	m := New(make([]float64, 4), options(400))
	for !m.Done() {
		state, err := fields.Append(nil, 1, m.State)
		if err != nil {
			t.Fatal(err)
		}
		again := New(make([]float64, 4), options(400))
		if err := fields.Read(state, 1, again.State); err != nil {
			t.Fatal(err)
		}
		g := gradient(m.Point())
		m.Tell(0, g)
		again.Tell(0, g)
		a, _ := fields.Append(nil, 1, m.State)
		b, _ := fields.Append(nil, 1, again.State)
		if !bytes.Equal(a, b) {
			t.Fatalf("iteration %d: a restored minimiser goes elsewhere", m.Iterations())
		}
		m = again
	}
	for i, x := range m.Best() {
		if math.Abs(x-float64(i+1)) > 1e-6 {
			t.Errorf("variable %d is %v", i, x)
		}
	}
}

// TestScaleOfTheGradient: only signs count.
func TestScaleOfTheGradient(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	a, b := New(make([]float64, 5), options(50)), New(make([]float64, 5), options(50))
	g := make([]float64, 5)
	for range 50 {
		for i := range g {
			g[i] = r.NormFloat64()
		}
		a.Tell(1, g)
		for i := range g {
			g[i] *= 1e-200
		}
		b.Tell(2, g)
	}
	for i, x := range a.Best() {
		if x != b.Best()[i] {
			t.Errorf("variable %d: %v and %v", i, x, b.Best()[i])
		}
	}
}

// TestDamagedState: a state with a step out of its bounds, or too many iterations, is refused.
func TestDamagedState(t *testing.T) {
	m := New(make([]float64, 2), options(3))
	for name, damage := range map[string]func(){"step": func() {
		m.step[1] = 51
	}, "not a number": func() { m.step[1] = math.NaN() }, "iterations": func() { m.iterations = 4 }} {
		m = New(make([]float64, 2), options(3))
		damage()
		state, err := fields.Append(nil, 1, m.State)
		if err != nil {
			t.Fatal(err)
		}
		if err := fields.Read(state, 1, New(make([]float64, 2), options(3)).State); !errors.Is(err, fields.ErrState) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
