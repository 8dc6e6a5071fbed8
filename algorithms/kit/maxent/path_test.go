package maxent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/lbfgs"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/num"
)

// pathCourse takes a path to its end on a function with the path's decay: ½·Σ s_i (x_i - 1)² + ½·Least·‖x‖². The path
// is cut after each evaluation. It returns the decay of each evaluation, and iterations and best point after it.
func pathCourse(t *testing.T, p *path, size int, options lbfgs.Options) (*path, []string) {
	t.Helper()
	var course []string
	for !p.Done() {
		decay, f, g := p.objective.Least, 0.0, make([]float64, size)
		for i, x := range p.Point() {
			slope := float64(int(1) << i)
			f += slope * (x - 1) * (x - 1) / 2
			g[i] = slope*(x-1) + decay*x
		}
		p.Tell(f+decay*num.Dot64(p.Point(), p.Point())/2, g)
		course = append(course, fmt.Sprint(decay, p.Iterations(), p.Best()))
		if p.StageDone() {
			p.Advance(0, false)
		}
		state, err := fields.Append(nil, 1, p.State)
		if err != nil {
			t.Fatal(err)
		}
		next := newPath(&Objective{Features: size, Labels: 1}, p.decays, usualScaled, options)
		if err := fields.Read(state, 1, next.State); err != nil {
			t.Fatal(err)
		}
		p = next
	}
	return p, course
}

// TestPathRepeats: a refit on the same function has the same course as the search before, up to the
// iteration that it repeats, whichever that is.
func TestPathRepeats(t *testing.T) {
	testkit.WithoutRace(t)
	const size = 12
	for _, options := range []lbfgs.Options{{Iterations: 300, Gradient: 1e-3}, {Iterations: 60, Gradient: 1e-9},
		{Iterations: 15, Gradient: 1e-9}} {
		for _, decays := range [][]float64{pathDecays, fixedDecay} {
			begin := func() *path { return newPath(&Objective{Features: size, Labels: 1}, decays, usualScaled, options) }
			p, whole := pathCourse(t, begin(), size, options)
			if len(decays) > 1 && options.Iterations == 300 && int(p.stage)+1 != len(decays) {
				t.Fatalf("%+v: the search ends in stage %d", options, p.stage)
			}
			for n := 1; n <= p.Iterations(); n += 3 { // 19 and 40 among them: ends of stages, and others
				again, _ := pathCourse(t, begin(), size, options)
				again.Repeat(uint64(n))
				again, course := pathCourse(t, again, size, options)
				if again.Iterations() != n || !slices.Equal(course, courseOf(whole, course)) {
					t.Fatalf("%+v: iteration %d of %d is repeated by %d iterations\n%q", options, n, p.Iterations(),
						again.Iterations(), course)
				}
			}
		}
	}
}

// courseOf returns the part of whole that a repetition takes: all of it up to the repetition's end, without stages that
// took no iteration.
func courseOf(whole, repeated []string) []string {
	var part []string
	for _, x := range whole {
		if len(part) < len(repeated) && repeated[len(part)] == x {
			part = append(part, x)
		}
	}
	return part
}

// TestPathAdvances: above the usual decay the path ends with the patience; from there on it ends with a stage that
// lowers the validation loss nowhere, and the decays below need a clear gain.
func TestPathAdvances(t *testing.T) {
	for _, c := range []struct {
		stage  uint64
		best   uint64 // iteration
		stale  bool
		over   bool
		margin float64
	}{
		{stage: 0, best: 0},
		{stage: 2, best: 3},
		{stage: 2, best: 50, stale: true, over: true},
		{stage: 5, best: 101, stale: true, margin: weakMargin},
		{stage: 5, best: 100, over: true},
		{stage: 5, best: 0, margin: weakMargin},
		{stage: 6, best: 121, stale: true, margin: weakMargin},
		{stage: 6, best: 120, stale: true, over: true},
		{stage: 10, best: 201, over: true},
	} {
		p := newPath(&Objective{Features: 3, Labels: 1}, pathDecays, usualScaled, lbfgs.Options{Iterations: 900})
		for i := range c.stage {
			p.ends = append(p.ends, 20*(i+1))
		}
		p.begin(c.stage, 20*c.stage)
		margin := p.Advance(c.best, c.stale)
		if margin != c.margin || p.Done() != c.over || !c.over &&
			(p.stage != c.stage+1 || p.objective.Least != pathDecays[p.stage]) {
			t.Errorf("%+v: margin %v, over %v, stage %d with decay %v", c, margin, p.Done(), p.stage, p.objective.Least)
		}
	}
}

// TestPathCountsRefused: a stage with more iterations than it may have, as many as make the path's number small again
// among them.
func TestPathCountsRefused(t *testing.T) {
	options := lbfgs.Options{Iterations: 60}
	begin := func() *path { return newPath(&Objective{Features: 3, Labels: 1}, pathDecays, usualScaled, options) }
	b, err := fields.Append(nil, 1, begin().State)
	if err != nil {
		t.Fatal(err)
	}
	at := 1 + 2 + 3*8 + 3 // version, repeated, over, stage, before and ends; the search's reason and flags
	for n, right := range map[uint64]bool{0: true, 20: true, 21: false, math.MaxUint64: false} {
		binary.LittleEndian.PutUint64(b[at:], n)
		p := begin()
		if err := fields.Read(b, 1, p.State); right != (err == nil) || err != nil && !errors.Is(err, fields.ErrState) {
			t.Errorf("%d iterations: %v", n, err)
		}
		if right && p.Iterations() != int(n) {
			t.Errorf("%d iterations are read as %d", n, p.Iterations())
		}
	}
}

// TestPathStatesRefused: states that no search can be in.
func TestPathStatesRefused(t *testing.T) {
	options := lbfgs.Options{Iterations: 60}
	for name, damage := range map[string]func(p *path){
		"a refit that is over":    func(p *path) { p.repeated, p.over, p.ends = true, true, []uint64{4} },
		"no such stage":           func(p *path) { p.stage = uint64(len(pathDecays)) },
		"a stage without ends":    func(p *path) { p.stage = 2 },
		"ends that fall":          func(p *path) { p.stage, p.before, p.ends = 2, 5, []uint64{9, 5} },
		"too many iterations":     func(p *path) { p.stage, p.before, p.ends = 1, 60, []uint64{60} },
		"another beginning":       func(p *path) { p.stage, p.before, p.ends = 1, 3, []uint64{5} },
		"nothing to repeat":       func(p *path) { p.repeated = true },
		"a stage of nothing":      func(p *path) { p.repeated, p.ends = true, []uint64{0, 4} },
		"an end without anything": func(p *path) { p.repeated, p.ends = true, []uint64{4, 4} },
		"a stage behind the last": func(p *path) { p.repeated, p.stage, p.ends = true, 1, []uint64{4} },
		"more before than there":  func(p *path) { p.repeated, p.stage, p.before, p.ends = true, 1, 5, []uint64{4, 8} },
	} {
		p := newPath(&Objective{Features: 3, Labels: 1}, pathDecays, usualScaled, options)
		damage(p)
		b, err := fields.Append(nil, 1, p.State)
		if err != nil {
			t.Fatal(err)
		}
		if err := fields.Read(b, 1, newPath(&Objective{Features: 3, Labels: 1}, pathDecays, usualScaled, options).
			State); !errors.Is(err, fields.ErrState) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
