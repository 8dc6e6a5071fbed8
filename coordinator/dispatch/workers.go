package dispatch

import (
	"fmt"
	"sort"
	"time"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/protocol"
)

// worker is what the leader knows of one worker: all of it is rebuilt from beats.
type worker struct {
	id      string
	beat    protocol.Beat
	heard   time.Time
	refused string          // why it is not used; empty: it is
	holds   map[string]bool // digests of shards in its cache
	busy    int             // collected units that it computes
	stalled time.Time       // when it is tried again, though it lets summed units wait; zero: it does not
}

// crew is the set of workers. Its version grows whenever the live workers or what
// they hold change: then plans are made anew.
type crew struct {
	workers map[string]*worker
	version uint64
	dead    time.Duration // silence after which a worker is given up
}

func newCrew(heartbeat time.Duration) *crew {
	return &crew{workers: make(map[string]*worker), dead: missedBeats * heartbeat}
}

// missedBeats is how many heartbeats a live worker may miss.
const missedBeats = 5

// stalledBeats is for how many heartbeats a worker that lets units wait gets none.
const stalledBeats = 100

// hear takes a beat in and reports whether the crew changed, and whether the
// worker is new.
func (c *crew) hear(b *protocol.Beat, now time.Time) (changed, joined bool) {
	w := c.workers[b.Worker]
	if b.Leaving {
		return c.remove(b.Worker), false
	}
	if w == nil {
		w = &worker{id: b.Worker, refused: refusal(b), holds: make(map[string]bool)}
		c.workers[b.Worker] = w
		c.version++
		changed, joined = true, true
	}
	if r := refusal(b); r != w.refused { // another version was started before silence told
		w.refused = r
		c.version++
		changed, joined = true, true
	}
	w.heard = now
	holds := w.beat.Holds
	w.beat = *b
	if !b.Full {
		w.beat.Holds = holds
		return changed, joined
	}
	if w.learn(b.Holds) {
		c.version++
		changed = true
	}
	return changed, joined
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

// refusal says why a worker cannot be used, naming both sides.
func refusal(b *protocol.Beat) string {
	switch {
	case b.Protocol != protocol.Version:
		return fmt.Sprintf("it speaks protocol %d, this coordinator %d", b.Protocol, protocol.Version)
	case b.Numerics != algorithms.Numerics:
		return fmt.Sprintf("it computes numerics %d, this coordinator %d", b.Numerics, algorithms.Numerics)
	}
	return ""
}

func (c *crew) remove(id string) bool {
	if c.workers[id] == nil {
		return false
	}
	delete(c.workers, id)
	c.version++
	return true
}

// expire removes the workers that were silent for too long and returns them.
func (c *crew) expire(now time.Time) (gone []string) {
	for id, w := range c.workers {
		if now.Sub(w.heard) > c.dead {
			gone = append(gone, id)
		}
		if now.After(w.stalled) {
			c.revive(w)
		}
	}
	for _, id := range gone {
		c.remove(id)
	}
	sort.Strings(gone)
	return gone
}

// usable lists the workers that may be given work, by id.
func (c *crew) usable() []*worker {
	var list []*worker
	for _, w := range c.workers {
		if w.refused == "" {
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
	if w := c.get(id); w != nil && w.stalled.IsZero() {
		w.stalled = now.Add(stalledBeats / missedBeats * c.dead)
		c.version++
	}
}

// revive ends a stall and reports whether there was one.
func (c *crew) revive(w *worker) bool {
	if w == nil || w.stalled.IsZero() {
		return false
	}
	w.stalled = time.Time{}
	c.version++
	return true
}

// get returns a usable worker, or nil.
func (c *crew) get(id string) *worker {
	if w := c.workers[id]; w != nil && w.refused == "" {
		return w
	}
	return nil
}
