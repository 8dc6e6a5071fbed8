package dispatch

import (
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// The patience with units of summed rounds, in heartbeats and in parts of what
// such a round usually computes.
const (
	slowBeats, slowPaces = protocol.SlowBeats, 4 // where most of the round's units are in
	lostBeats, lostPaces = protocol.LostBeats, 8 // in any case: a message may be lost
	maxCopies            = 8                     // from then on patience does not double any more
)

// patience is how long a unit may take, in a round of which most units are in or
// not, before it is given out again; the worker's round trip, or what answers lately took
// on their way, comes on top.
func (x *Executor) patience(most bool) time.Duration {
	if most {
		return max(slowBeats*x.d.cfg.Heartbeat, slowPaces*x.pace[x.r.Op])
	}
	return max(lostBeats*x.d.cfg.Heartbeat, lostPaces*x.pace[x.r.Op])
}

// overdue gives units that take too long to the standby as well: the first answer
// wins. A unit that straggles while the others are in is known for one sooner, and
// each copy is waited for twice as long as the one before.
func (x *Executor) overdue(now time.Time) {
	patience := x.patience(x.most())
	for u := range x.units {
		s := &x.units[u]
		if s.check != unchecked || s.seats[0].worker == "" || !x.open(u) || now.Sub(s.seats[0].sent) < patience<<s.copies {
			continue
		}
		next, has := x.other(u), s.seats[0].worker
		late := max(x.d.late(has), x.way.longest)
		if now.Sub(s.seats[0].sent) < (patience+late)<<s.copies {
			continue
		}
		if next == has { // there is nobody else: the message may be lost
			if now.Sub(s.seats[0].sent) < 2*(x.patience(false)+late)<<s.copies {
				continue
			}
		} else {
			x.stall(has, now)
		}
		s.copies = min(s.copies+1, maxCopies)
		x.giveTo(next, u, now)
	}
}

// most reports whether half of the round's units are in, or more.
func (x *Executor) most() bool {
	open := 0
	for u := range x.units {
		if x.open(u) {
			open++
		}
	}
	return 2*open <= len(x.units)
}

// late is after how long an answer of a worker is late, for the way alone.
func (d *Dispatcher) late(id string) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.crew.workers[id]; w != nil {
		return w.late()
	}
	return 0
}

func (x *Executor) stall(id string, now time.Time) {
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
	x.d.crew.stall(id, now)
}

// giveTo gives a unit of a summed round to a worker, whoever has it; an empty id
// is nobody.
func (x *Executor) giveTo(id string, u int, now time.Time) {
	if id == "" {
		return
	}
	x.units[u].own().seats[0] = seat{worker: id}
	x.way.again = true
	x.d.cfg.Metrics.UnitsRetried.Inc()
	x.sendOne(id, u, now)
}
