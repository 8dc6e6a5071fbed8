package jobs

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// foldsOf is a UnitReporter of folds whose result is its unit's number.
type foldsOf []round.Progress

func (f foldsOf) ResultProgress(part []byte) (round.Progress, error) { return f[part[0]], nil }
func (f foldsOf) RoundProgress(units []round.UnitProgress) round.Progress {
	return pipeline.SumFolds(units)
}

// told is a tally and what it said.
type told struct {
	tally
	work protocol.Work
	last round.Progress
}

func newTold(g round.UnitReporter, units int) *told {
	x := &told{}
	x.tally = tally{gatherer: g, count: func(w protocol.Work) {
		x.work = protocol.Work{Rounds: x.work.Rounds + w.Rounds, Steps: x.work.Steps + w.Steps, Samples: x.work.Samples + w.Samples}
	}, show: func(_ int, p round.Progress) { x.last = p }}
	x.Begin(&round.Round{Units: units})
	return x
}

// look shows how far the units are now.
func (x *told) look() round.Progress {
	x.shown, x.news = time.Time{}, true
	x.Look(time.Now())
	return x.last
}

// arrive has the part of a unit arrive.
func (x *told) arrive(unit int, before bool) {
	if p, ok := x.Read([]byte{byte(unit)}); ok {
		x.Have(unit, &p, before)
	}
}

// TestTallyCountsOnce: whatever workers report, in any order, of units that are
// computed twice or again, each unit counts once, and exactly once it is here.
func TestTallyCountsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.IntRange(1, 5).Draw(t, "units")
		ends := make(foldsOf, units)
		for u := range ends {
			steps := rapid.Uint64Range(1, 100).Draw(t, "steps")
			ends[u] = round.Progress{Step: steps, Steps: steps, Samples: 10 * steps, Loss: 0.5}
		}
		x := newTold(ends, units)
		var want protocol.Work
		known := make([]protocol.Work, units) // of earlier leaders
		recorded := make([]bool, units)
		for u := range ends {
			if recorded[u] = rapid.Bool().Draw(t, "recorded"); recorded[u] {
				x.Have(u, nil, true)
				x.arrive(u, true)
				continue
			}
			n := rapid.Uint64Range(0, ends[u].Step).Draw(t, "known")
			known[u] = protocol.Work{Rounds: n, Steps: n, Samples: 10 * n}
		}
		for range rapid.IntRange(0, 30).Draw(t, "reports") {
			u := rapid.IntRange(0, units-1).Draw(t, "unit")
			if recorded[u] {
				continue
			}
			n := rapid.Uint64Range(known[u].Steps, ends[u].Step).Draw(t, "step")
			x.Report(&protocol.Progress{Unit: uint32(u), Done: protocol.Work{Rounds: n, Steps: n, Samples: 10 * n}, Steps: 200, Loss: 1, Counted: known[u]})
			if p := x.look(); p.Step > p.Steps {
				t.Fatalf("step %d of %d", p.Step, p.Steps)
			}
		}
		sum := uint64(0)
		for u, end := range ends {
			sum += end.Step
			if recorded[u] {
				continue
			}
			w := protocol.Work{Rounds: end.Step, Steps: end.Step, Samples: end.Samples}
			x.Report(&protocol.Progress{Unit: uint32(u), Done: w, Steps: 200, Loss: 1, Counted: known[u]})
			x.arrive(u, false)
			x.arrive(u, false)
			more := w.Beyond(known[u])
			want = protocol.Work{Rounds: want.Rounds + more.Rounds, Steps: want.Steps + more.Steps, Samples: want.Samples + more.Samples}
		}
		if x.work != want {
			t.Fatalf("counted %+v, want %+v", x.work, want)
		}
		if p := x.look(); p.Step != sum || p.Steps != sum || p.Samples != 10*sum || math.Abs(p.Loss-0.5) > 1e-12 {
			t.Fatalf("at the end %+v, want %d steps", p, sum)
		}
	})
}

// TestTallyOfAFoldComputedAgain: progress does not fall back, and nothing counts twice.
func TestTallyOfAFoldComputedAgain(t *testing.T) {
	x := newTold(foldsOf{{Step: 100, Steps: 100, Samples: 1000, Loss: 0.25}, {Loss: -1}}, 2)
	report := func(step uint64) {
		x.Report(&protocol.Progress{Done: protocol.Work{Rounds: step, Steps: step, Samples: 10 * step}, Steps: 100, Loss: 1})
	}
	for _, step := range []uint64{60, 10, 30, 70} { // its worker died at 60
		report(step)
	}
	if p := x.look(); p.Step != 70 || p.Steps != 200 || x.work != (protocol.Work{Rounds: 70, Steps: 70, Samples: 700}) {
		t.Errorf("%+v, counted %+v", p, x.work)
	}
	report(40)
	if p := x.look(); p.Step != 70 {
		t.Errorf("fell back to step %d", p.Step)
	}
}

// TestTallyOfLies: what cannot be does no harm: no panic, no ratio above 1, and once
// the part is here progress is right.
func TestTallyOfLies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newTold(foldsOf{{Step: 5, Steps: 5, Samples: 50, Loss: 0.5}, {Step: 5, Steps: 5, Samples: 50, Loss: 0.5}}, 2)
		count := rapid.SampledFrom([]uint64{0, 1, 7, 1 << 40, protocol.MaxCount})
		for range 10 {
			m := &protocol.Progress{
				Unit: rapid.Uint32Range(0, 1).Draw(t, "unit"), Steps: count.Draw(t, "most"), Loss: rapid.Float64Range(-5, 1e300).Draw(t, "loss"),
				Done:    protocol.Work{Rounds: count.Draw(t, "rounds"), Steps: count.Draw(t, "steps"), Samples: count.Draw(t, "samples")},
				Counted: protocol.Work{Steps: count.Draw(t, "counted")},
			}
			x.Report(m)
			if p := x.look(); p.Steps > 0 && p.Step > p.Steps || p.Loss-p.Loss != 0 {
				t.Fatalf("%+v after %+v", p, m)
			}
		}
		x.arrive(0, false)
		x.arrive(1, false)
		if p := x.look(); p.Step != 10 || p.Steps != 10 || p.Samples != 100 || p.Loss != 0.5 {
			t.Fatalf("at the end %+v", p)
		}
	})
}
