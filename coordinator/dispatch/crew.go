package dispatch

import (
	"fmt"
	"maps"
	"sort"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// worker is what the leader knows of one worker: all of it is rebuilt from beats.
type worker struct {
	id      string
	beat    protocol.Beat
	heard   time.Time
	refused string          // why it is not used; empty: it is
	lost    bool            // nobody listens to its subject: its connection, perhaps its process, is gone
	holds   map[string]bool // digests of shards in its cache
	busy    int             // collected units that it was given, over all jobs
	stalled time.Time       // when it is tried again, though it lets summed units wait; zero: it does not
	strikes int             // stalls lately: each makes the next one longer
	struck  time.Time       // when the last one began
	units   uint64          // that it computed, of rounds of this leadership
	paces   paces           // of these
	result  time.Time       // when the last of them came
}

// crew is the set of workers. Its version grows whenever the live workers or what
// they hold change: then plans are made anew.
type crew struct {
	workers    map[string]*worker
	distrusted map[string]string // workers that answered wrongly, and why they are not used
	recorded   map[string]string // those of them that the log knows of
	held       int               // digests that all hold
	version    uint64
	heartbeat  time.Duration
	dead       time.Duration // silence after which a worker is given up
}

func newCrew(heartbeat time.Duration, distrusted map[string]string) *crew {
	c := &crew{
		workers: make(map[string]*worker), distrusted: make(map[string]string),
		heartbeat: heartbeat, dead: missedBeats * heartbeat,
	}
	c.setRecorded(distrusted)
	return c
}

// missedBeats is how many heartbeats a live worker may miss.
const missedBeats = protocol.DeadBeats

// A worker that lets units wait gets none for stalledBeats heartbeats, or until it
// answers; from its second stall in as many heartbeats on it gets none for
// strikeBeats at least, twice as many each time: else a slow worker would cost
// every round a wait.
const (
	stalledBeats = protocol.StalledBeats
	strikeBeats  = 5
)

// maxCrew bounds the workers that a leader knows.
const maxCrew = 4096

// maxShown bounds what a worker says of itself for people, in bytes a field.
const maxShown = 256

// maxHeld bounds the digests of shards that a leader keeps of all workers, some 150 bytes
// each: beyond it a worker's list stays what it was.
const maxHeld = 1 << 18

// lawful reports whether a worker has a name that subjects can have: 1 to 64
// letters, digits, "-" and "_".
func lawful(id string) bool {
	for _, r := range id {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_') {
			return false
		}
	}
	return len(id) >= 1 && len(id) <= 64
}

// hear takes a beat in and reports whether the crew changed, and whether the
// worker is new.
func (c *crew) hear(b *protocol.Beat, now time.Time) (changed, joined bool) {
	w := c.workers[b.Worker]
	if b.Leaving {
		return c.remove(b.Worker), false
	}
	if w == nil && len(c.workers) >= maxCrew {
		return false, false
	}
	if w == nil {
		w = &worker{id: b.Worker, holds: make(map[string]bool)}
		c.workers[b.Worker] = w
		c.version++
		changed, joined = true, true
	}
	if _, r := c.refusal(b); r != w.refused { // another version was started before silence told
		w.refused = r
		c.version++
		changed, joined = true, true
	}
	if w.lost { // it only lost its connection, and has all that it had
		w.lost = false
		c.version++
		changed = true
	}
	w.heard = now
	b.Host, b.Address = b.Host[:min(len(b.Host), maxShown)], b.Address[:min(len(b.Address), maxShown)]
	b.RoundTrip, b.Late = bounded(b.RoundTrip), bounded(b.Late)
	was := w.beat
	w.beat = *b
	if !b.Full {
		w.beat.Holds, w.beat.Host, w.beat.Address, w.beat.Load = was.Holds, was.Host, was.Address, was.Load
		return changed, joined
	}
	if c.held+len(b.Holds)-len(w.holds) > maxHeld {
		w.beat.Holds = was.Holds
		return changed, joined
	}
	c.held -= len(w.holds)
	if w.learn(b.Holds) {
		c.version++
		changed = true
	}
	c.held += len(w.holds)
	return changed, joined
}

// sign takes a sign of life of a worker in that is no beat: over a thin link beats wait
// behind results.
func (c *crew) sign(id string, now time.Time) {
	if w := c.workers[id]; w != nil {
		w.heard = now
	}
}

// learn replaces what the worker holds and reports whether that is news.
func (w *worker) learn(holds []string) bool {
	same := len(holds) == len(w.holds)
	for _, digest := range holds {
		same = same && w.holds[digest]
	}
	if same {
		return false
	}
	clear(w.holds)
	for _, digest := range holds {
		w.holds[digest] = true
	}
	return true
}

// refusal says why a worker cannot be used, naming both sides; empty: it can.
func (c *crew) refusal(b *protocol.Beat) (protocol.IdleReason, string) {
	switch reason, distrusted := c.distrusted[b.Worker]; {
	case distrusted:
		return protocol.IdleQuarantined, "the worker is quarantined: " + reason
	case b.Protocol != protocol.Version:
		return protocol.IdleRefused, fmt.Sprintf("the worker has protocol version %d, this coordinator has %d", b.Protocol, protocol.Version)
	case b.Numerics != round.Numerics:
		return protocol.IdleRefused, fmt.Sprintf("the worker has arithmetic version %d, this coordinator has %d", b.Numerics, round.Numerics)
	case b.Problem != "":
		return protocol.IdleFolder, protocol.Brief(b.Problem)
	}
	return "", ""
}

func (c *crew) remove(id string) bool {
	if c.workers[id] == nil {
		return false
	}
	c.held -= len(c.workers[id].holds)
	delete(c.workers, id)
	c.version++
	return true
}

// expire removes the workers that were silent for too long and returns them.
func (c *crew) expire(now time.Time) (gone []string) {
	for id, w := range c.workers {
		if now.Sub(w.heard) > c.dead+w.late() {
			gone = append(gone, id)
		}
		if !w.stalled.IsZero() && now.After(w.stalled) {
			w.stalled = time.Time{}
			c.version++
		}
	}
	for _, id := range gone {
		c.remove(id)
	}
	sort.Strings(gone)
	return gone
}

// maxLate bounds what a worker's round trip adds to a wait, whatever it says.
const maxLate = 10 * time.Second

// bounded is what counts of a worker's round trip, in microseconds.
func bounded(us int64) int64 { return max(0, min(us, maxLate.Microseconds())) }

// late is after how long an answer of the worker is late, for the way alone: by what
// it measures to the NATS server, which is the leader's own, or one that the leader is next to.
func (w *worker) late() time.Duration {
	return time.Duration(w.beat.Late) * time.Microsecond
}

// usable reports whether the worker may be given work.
func (w *worker) usable() bool { return w.refused == "" && !w.lost }

// usable lists the workers that may be given work, by id.
func (c *crew) usable() []*worker {
	var list []*worker
	for _, w := range c.workers {
		if w.usable() {
			list = append(list, w)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].id < list[j].id })
	return list
}

// prompt lists the usable workers that do not let summed units wait; where all do,
// all of them.
func (c *crew) prompt() []*worker {
	all := c.usable()
	var list []*worker
	for _, w := range all {
		if w.stalled.IsZero() {
			list = append(list, w)
		}
	}
	if len(list) == 0 {
		return all
	}
	return list
}

// stall notes that a worker, though it beats, lets units wait: others get them
// until it answers one or some time has passed.
func (c *crew) stall(id string, now time.Time) {
	w := c.get(id)
	if w == nil || !w.stalled.IsZero() {
		return
	}
	if now.Sub(w.struck) > stalledBeats*c.heartbeat {
		w.strikes = 0
	}
	w.strikes++
	w.struck, w.stalled = now, now.Add(stalledBeats*c.heartbeat)
	c.version++
}

// revive ends a stall, unless it is one of several, and reports whether it did.
func (c *crew) revive(w *worker, now time.Time) bool {
	if w == nil || w.stalled.IsZero() {
		return false
	}
	if end := w.struck.Add(w.penalty(c.heartbeat)); now.Before(end) {
		w.stalled = end
		return false
	}
	w.stalled = time.Time{}
	c.version++
	return true
}

// penalty is for how long a worker stalls even if it answers.
func (w *worker) penalty(heartbeat time.Duration) time.Duration {
	if w.strikes < 2 {
		return 0
	}
	return time.Duration(min(stalledBeats, strikeBeats<<min(w.strikes-2, 10))) * heartbeat
}

// lose notes that nobody listens to a worker's subject: it is out of use until it
// beats again. What it was told stays known: it may be the same process.
func (c *crew) lose(id string) bool {
	w := c.workers[id]
	if w == nil || w.lost {
		return false
	}
	w.lost = true
	c.version++
	return true
}

// distrust puts a worker out of use because its answers are wrong.
func (c *crew) distrust(id, reason string) {
	c.distrusted[id] = reason
	if w := c.workers[id]; w != nil {
		_, w.refused = c.refusal(&w.beat)
		c.version++
	}
}

// trusts reports whether a worker has not answered wrongly yet.
func (c *crew) trusts(id string) bool {
	_, distrusted := c.distrusted[id]
	return !distrusted && id != theReferee
}

// setRecorded says which workers are recorded as not trusted, and reports whether
// that is news. One that was recorded before and is no more is trusted again.
func (c *crew) setRecorded(workers map[string]string) bool {
	if maps.Equal(c.recorded, workers) {
		return false
	}
	for id := range c.recorded {
		delete(c.distrusted, id)
	}
	c.recorded = maps.Clone(workers)
	maps.Copy(c.distrusted, workers)
	for _, w := range c.workers {
		_, w.refused = c.refusal(&w.beat)
	}
	c.version++
	return true
}

// excuse forgives everybody's silence up to now: it was the leader that did not
// hear.
func (c *crew) excuse(now time.Time) {
	for _, w := range c.workers {
		w.heard = now
	}
}

// get returns a usable worker, or nil.
func (c *crew) get(id string) *worker {
	if w := c.workers[id]; w != nil && w.usable() {
		return w
	}
	return nil
}
