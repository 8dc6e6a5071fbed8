package dispatch

import (
	"maps"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// Availability is which workers could compute units of a job just now.
type Availability struct {
	// Unknown: this leadership is so young that it may not have heard of all workers.
	Unknown bool
	Usable  int // workers that can be given units
	// Stops, where set, is why the job stops again and again, lately.
	Stops string
	// The names of those that cannot, by reason, each in order.
	Unable      []string // they said that they lack the memory
	Unreachable []string
	Distrusted  []string
	Refused     []string // of another protocol or numerics, each with why
}

// Availability describes the workers as far as one job can use them.
func (d *Dispatcher) Availability(job uint64) Availability {
	d.mu.Lock()
	defer d.mu.Unlock()
	var unable map[string]string
	if x := d.jobs[job]; x != nil {
		unable = x.unable
	}
	a := d.crew.availability(unable)
	a.Stops = d.stops[job].why(time.Now())
	a.Unknown = time.Since(d.began) < youth(d.cfg.Heartbeat)
	return a
}

// youth is how long workers may take to be heard by a new leader: those of one that is
// gone ask for the next one after some silence.
func youth(heartbeat time.Duration) time.Duration {
	return protocol.LeastLost + protocol.DeadBeats*heartbeat
}

func (c *crew) availability(unable map[string]string) (a Availability) {
	for id, w := range c.workers {
		_, distrusted := c.distrusted[id]
		switch {
		case distrusted:
			a.Distrusted = append(a.Distrusted, id)
		case w.refused != "":
			a.Refused = append(a.Refused, id+": "+w.refused)
		case w.lost:
			a.Unreachable = append(a.Unreachable, id)
		case unable[id] != "":
			a.Unable = append(a.Unable, id)
		default:
			a.Usable++
		}
	}
	for _, list := range [][]string{a.Unable, a.Unreachable, a.Distrusted, a.Refused} {
		slices.Sort(list)
	}
	return a
}

// stop is why a job, or a unit that it needs, stopped last, and how often that was, each
// soon after the one before.
type stop struct {
	reason string
	at     time.Time
	times  int
}

// soon is less than the time between two stops that have nothing to do with each other,
// and more than a job or a unit rests before it is tried again.
const soon = longestPause + 3*protocol.RetryPassing

// why returns the reason of a job that has stopped more than once of late.
func (s stop) why(now time.Time) string {
	if s.times < 2 || now.Sub(s.at) > soon {
		return ""
	}
	return s.reason
}

// Stopped notes that a job, or a unit that it needs, stopped for a reason that may pass; it
// is tried again. Of a long reason the beginning is told.
func (d *Dispatcher) Stopped(job uint64, why error, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stops[job]
	if now.Sub(s.at) > soon {
		s.times = 0
	}
	d.stops[job] = stop{protocol.Brief(why.Error()), now, s.times + 1}
}

// forgetStops drops the stops that are told no more, with d.mu held.
func (d *Dispatcher) forgetStops(now time.Time) {
	maps.DeleteFunc(d.stops, func(_ uint64, s stop) bool { return now.Sub(s.at) > soon })
}
