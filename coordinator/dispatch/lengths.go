package dispatch

import (
	"math"
	"time"
)

// lengths is how long the units of each group of a collected round took: by that long units are
// given out first near the end of the round.
type lengths struct {
	group   []int32 // by unit
	ended   []int   // units, by group
	seconds []float64
	working []float64 // seconds that a unit has been in work so far, the most, by group
	all     int       // units that have ended
	total   float64   // their seconds
	looked  time.Time
	near    bool
}

// newLengths returns the lengths of a round's units, or nil where it has no groups.
func newLengths(group []int32) *lengths {
	if len(group) == 0 {
		return nil
	}
	most := int32(0)
	for _, g := range group {
		most = max(most, g)
	}
	return &lengths{group: group, ended: make([]int, most+1), seconds: make([]float64, most+1), working: make([]float64, most+1)}
}

// end notes how long a unit took.
func (l *lengths) end(u int, took time.Duration) {
	if l == nil || took <= 0 {
		return
	}
	g, s := l.group[u], took.Seconds()
	l.ended[g]++
	l.seconds[g] += s
	l.all++
	l.total += s
}

// works notes for how long a unit has been in work.
func (l *lengths) works(u int, since time.Duration) {
	g := l.group[u]
	l.working[g] = max(l.working[g], since.Seconds())
}

// of estimates how many seconds a unit takes: the mean of those of its group that have ended, else
// of all, but twice as long as one of the group is in work already; 0: none has ended.
func (l *lengths) of(u int) float64 {
	switch g := l.group[u]; {
	case l.ended[g] > 0:
		return l.seconds[g] / float64(l.ended[g])
	case l.all > 0:
		return max(l.total/float64(l.all), 2*l.working[g])
	}
	return 0
}

// nearEnd is how many times as long as the longest unit that waits all that wait take, on all
// slots, where the end of a round begins.
const nearEnd = 2

// isNear reports whether the round nears its end: all would wait for a long unit that is given out
// last.
func (l *lengths) isNear(waits func(u int) bool, slots int) bool {
	longest, left := 0.0, 0.0
	for u := range l.group {
		if waits(u) {
			s := l.of(u)
			longest, left = max(longest, s), left+s
		}
	}
	return left <= nearEnd*longest*float64(max(1, slots))
}

// left estimates the seconds of computing that are left: units in work are half done.
func (l *lengths) left(waits, works func(u int) bool) (seconds float64) {
	for u := range l.group {
		switch {
		case waits(u):
			seconds += l.of(u)
		case works(u):
			seconds += l.of(u) / 2
		}
	}
	return seconds
}

// lookAtEnd is the time between two looks at whether a round nears its end, which cost a time in
// proportion to its units.
const lookAtEnd = time.Second

// order has the long units given out first near the end of the round, and notes how long it takes.
func (c *collection) order(now time.Time) {
	l := c.lengths
	if l == nil || l.all == 0 || now.Sub(l.looked) < lookAtEnd {
		return
	}
	l.looked = now
	slots, was := c.slots(), l.near
	waits := func(u int) bool { return c.waits.turns[u] != 0 }
	works := func(u int) bool { return c.x.units[u].state == running }
	for u := range l.group {
		if works(u) {
			l.works(u, c.inWork(u, now))
		}
	}
	left := l.left(waits, works)
	c.x.left.Store(math.Float64bits(left / float64(max(1, slots))))
	switch l.near = l.isNear(waits, slots); {
	case l.near:
		c.waits.reorder(l.of)
	case was:
		c.waits.reorder(nil)
	}
}

// inWork returns for how long a unit has been in work.
func (c *collection) inWork(u int, now time.Time) time.Duration {
	at := &c.x.units[u].seats[0]
	if at.sent.IsZero() {
		return 0
	}
	return now.Sub(at.sent)
}
