package jobs

import "github.com/coppice-ldl/coppice/engine/round"

// unitList is how far each unit of a collected round is.
type unitList interface {
	at(unit int) round.UnitProgress
	// set sets how far a unit is, which keeps whether it has ended.
	set(unit int, p round.Progress)
	// end says that a unit has ended.
	end(unit int, notRun bool)
	progress() round.Progress // of the round
}

// newUnitList returns the list of so many units of which nothing is known.
func newUnitList(g round.UnitReporter, units int) unitList {
	if c, ok := g.(round.UnitCounter); ok {
		return &countedUnits{counter: c, units: make([]countedUnit, units), counts: round.UnitCounts{Units: units}}
	}
	l := &listedUnits{g, make([]round.UnitProgress, units)}
	for i := range l.units {
		l.units[i].Loss = -1
	}
	return l
}

// listedUnits is a list that a UnitReporter is given.
type listedUnits struct {
	reporter round.UnitReporter
	units    []round.UnitProgress
}

func (l *listedUnits) at(unit int) round.UnitProgress { return l.units[unit] }

func (l *listedUnits) set(unit int, p round.Progress) {
	l.units[unit].Progress, l.units[unit].Known = p, true
}

func (l *listedUnits) end(unit int, notRun bool) {
	l.units[unit].Done, l.units[unit].NotRun = true, notRun
}

func (l *listedUnits) progress() round.Progress { return l.reporter.RoundProgress(l.units) }

// countedUnits counts units, of which there may be a million.
type countedUnits struct {
	counter round.UnitCounter
	units   []countedUnit
	counts  round.UnitCounts
}

// countedUnit is what is kept of a unit.
type countedUnit struct {
	step, samples               uint64
	known, done, notRun, failed bool
}

func (l *countedUnits) at(unit int) round.UnitProgress {
	u := &l.units[unit]
	return round.UnitProgress{Progress: round.Progress{Step: u.step, Samples: u.samples, Loss: -1}, Known: u.known, Done: u.done, NotRun: u.notRun}
}

func (l *countedUnits) set(unit int, p round.Progress) {
	u := &l.units[unit]
	l.count(u, -1)
	u.step, u.samples, u.known, u.failed = p.Step, p.Samples, true, l.counter.HasFailed(p)
	l.count(u, 1)
}

func (l *countedUnits) end(unit int, notRun bool) {
	u := &l.units[unit]
	l.count(u, -1)
	u.done, u.notRun = true, notRun
	l.count(u, 1)
}

// count counts a unit in (1) or out (-1).
func (l *countedUnits) count(u *countedUnit, n int) {
	c := &l.counts
	c.Samples += uint64(n) * u.samples
	switch {
	case u.done:
		c.Done += n
		if u.failed {
			c.Failed += n
		}
		if u.notRun {
			c.NotRun += n
		}
	case u.known:
		c.Running += n
	}
}

func (l *countedUnits) progress() round.Progress { return l.counter.CountedProgress(l.counts) }
