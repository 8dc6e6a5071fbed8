package jobs

import (
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// showEvery is the least time between two looks at how far a collected round is, of so many
// units: to add them up takes a time in proportion to their number.
func showEvery(units int) time.Duration {
	return max(100*time.Millisecond, time.Duration(units)*10*time.Microsecond)
}

// tally adds up how far the units of a collected round are. What is computed again
// counts once: each unit counts by the most that anybody said of it. It implements
// dispatch.Watcher.
type tally struct {
	gatherer round.UnitReporter
	count    func(protocol.Work) // what the units have done more than was counted
	show     func(units int, p round.Progress)

	active  bool // a round is under way
	used    bool // there was one
	units   unitList
	of      int             // units
	counted []protocol.Work // by unit: here, and by earlier leaders
	news    bool            // there is some since it was shown
	shown   time.Time
}

// Begin implements dispatch.Watcher.
func (t *tally) Begin(r *round.Round) {
	t.active, t.used, t.news = true, true, true
	t.units, t.of = newUnitList(t.gatherer, r.Units), r.Units
	t.counted = make([]protocol.Work, r.Units)
}

// Read implements dispatch.Watcher.
func (t *tally) Read(part []byte) (round.Progress, bool) {
	p, err := t.gatherer.ResultProgress(part)
	return p, err == nil // what is wrong with it Fold will say
}

// Have implements dispatch.Watcher.
func (t *tally) Have(unit int, p *round.Progress, before bool) {
	t.news = true
	t.units.end(unit, false)
	if p == nil {
		return
	}
	t.units.set(unit, *p)
	done := protocol.Work{Steps: p.Step, Samples: p.Samples}
	t.add(unit, done, before)
}

// NotRun implements dispatch.Watcher.
func (t *tally) NotRun(unit int) {
	t.news = true
	t.units.end(unit, true)
}

// Report implements dispatch.Watcher.
func (t *tally) Report(m *protocol.Progress) {
	unit := int(m.Unit)
	t.counted[unit] = t.counted[unit].Or(m.Counted)
	moved := t.add(unit, m.Done, false)
	u := t.units.at(unit)
	if p := m.Progress(); !u.Done && (!u.Known || moved && p.Step >= u.Step) {
		t.news = true
		t.units.set(unit, p)
	}
}

// add counts what a unit has done beyond what is counted, and reports whether that is
// anything; before: it is counted.
func (t *tally) add(unit int, done protocol.Work, before bool) (moved bool) {
	more := done.Beyond(t.counted[unit])
	t.counted[unit] = t.counted[unit].Or(done)
	moved = more != (protocol.Work{})
	if moved && !before {
		t.count(more)
	}
	return moved
}

// Look implements dispatch.Watcher.
func (t *tally) Look(now time.Time) {
	if t.news && now.Sub(t.shown) >= showEvery(t.of) {
		t.news, t.shown = false, now
		t.show(t.of, t.units.progress())
	}
}

// end ends the round, and reports whether there was one.
func (t *tally) end() bool {
	was := t.active
	t.active, t.units, t.of, t.counted = false, nil, 0, nil
	return was
}
