package protocol

import (
	"sync"
	"time"
)

// Room bounds the bytes of messages that a process has received and not used yet:
// those of which fragments are due, and those that somebody holds. Where there is no
// room for more, or senders are too many, unfinished messages are dropped: first the one that has not grown for
// longest, if that is a second or more, else the one begun last, so that of many
// that grow at once some are always finished. Whoever needs a dropped one asks again.
// It is safe for concurrent use.
type Room struct {
	now func() time.Time

	mu      sync.Mutex
	spare   [][]byte // see Reuse
	limit   int
	held    int // bytes, of open too
	open    map[place]*joining
	joiners uint64
	dropped uint64
}

// place is where an unfinished message belongs.
type place struct{ joiner, sender uint64 }

type joining struct {
	message, total uint64
	b              []byte    // its joiner's
	came           int       // bytes
	room           int       // bytes that it takes: the capacity of b
	lead           int       // see lead
	begun, grown   time.Time // when it began, and when it was seen to grow last
	marked         int       // came, when it was seen to grow
}

const (
	maxSenders    = 1024
	maxUnfinished = 2 * MaxMessage
	// A message that has not grown by leastGrowth in stillAfter is still.
	stillAfter  = time.Second
	leastGrowth = 16 << 10
)

// NewRoom returns room for so many bytes; 0: twice the greatest message.
func NewRoom(limit int) *Room {
	if limit <= 0 {
		limit = maxUnfinished
	}
	return &Room{now: time.Now, limit: limit, open: make(map[place]*joining)}
}

// Limit returns the bytes that there is room for.
func (r *Room) Limit() int { return r.limit }

// Held returns the bytes that are taken just now.
func (r *Room) Held() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

// Dropped returns how many messages have been dropped for want of room.
func (r *Room) Dropped() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

// Take takes room for n bytes of a whole message, until Give; false: there is none, and
// the message is to be dropped.
func (r *Room) Take(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.free(n, r.now(), nil) {
		r.dropped++
		return false
	}
	r.held += n
	return true
}

// Give gives n bytes back that were taken.
func (r *Room) Give(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held -= n
}

// wholeFrom is which part of a message has come, one in so many, when it has the memory for all of it: where it only
// doubled, there would be half a message of garbage beside it.
const wholeFrom = 8

// capacity returns the memory of a message of which need bytes are there: twice as much, and all of the
// total as soon as that is wholeFrom times as much or less.
func capacity(need, total uint64) int {
	if total <= wholeFrom*need {
		return int(total)
	}
	return int(2 * need)
}

// joiner names a new joiner.
func (r *Room) joiner() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.joiners++
	return r.joiners
}

// grow takes room for a fragment of a message and returns the message, or nil where the
// fragment is not the next of its message or there is no room. The capacity that it
// is to have is in room.
func (r *Room) grow(at place, f *Fragment) *joining {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if f.Offset == 0 {
		r.begin(at, f, now)
	}
	m := r.open[at]
	if m == nil || m.message != f.Message || m.total != f.Total || uint64(m.came) != f.Offset {
		r.forget(at)
		return nil
	}
	room := m.room
	if need := m.came + len(f.Data); need > room {
		room = capacity(uint64(need), m.total)
	}
	if !r.free(room-m.room, now, m) || r.open[at] != m {
		return nil
	}
	r.held += room - m.room
	m.room = room
	m.came += len(f.Data)
	if m.came-m.marked >= leastGrowth {
		m.marked, m.grown = m.came, now
	}
	return m
}

// begin makes a fragment's message the unfinished one of its sender.
func (r *Room) begin(at place, f *Fragment, now time.Time) {
	r.forget(at)
	if len(r.open) >= maxSenders {
		r.drop(r.victim(now))
	}
	r.open[at] = &joining{message: f.Message, total: f.Total, begun: now, grown: now}
}

// forget drops the unfinished message of a place, if it has one.
func (r *Room) forget(at place) {
	if m := r.open[at]; m != nil {
		r.held -= m.room
		delete(r.open, at)
	}
}

// end is forget for a message that is whole.
func (r *Room) end(at place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(at)
}

// leave forgets the unfinished messages of a joiner that takes no more.
func (r *Room) leave(joiner uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for at := range r.open {
		if at.joiner == joiner {
			r.forget(at)
		}
	}
}

func (r *Room) drop(at place) {
	r.forget(at)
	r.dropped++
}

// free drops unfinished messages until there is room for n bytes, and reports whether
// there is. asks is the message that they are for; nil: a whole one, for which only
// those are dropped that do not grow.
func (r *Room) free(n int, now time.Time, asks *joining) bool {
	for r.held+n > r.limit {
		if m := r.open[r.stillest()]; m == nil || asks == nil && now.Sub(m.grown) < stillAfter {
			return false
		}
		at := r.victim(now)
		gone := r.open[at]
		r.drop(at)
		if gone == asks {
			return false
		}
	}
	return true
}

// victim chooses the message that is dropped for others, of which there is one at least.
func (r *Room) victim(now time.Time) place {
	if at := r.stillest(); now.Sub(r.open[at].grown) >= stillAfter {
		return at
	}
	return r.youngest()
}

// stillest finds the message that has not grown for longest.
func (r *Room) stillest() (at place) {
	var least *joining
	for p, m := range r.open {
		if least == nil || m.grown.Before(least.grown) {
			at, least = p, m
		}
	}
	return at
}

// youngest finds the message that was begun last.
func (r *Room) youngest() (at place) {
	var last *joining
	for p, m := range r.open {
		if last == nil || m.begun.After(last.begun) {
			at, last = p, m
		}
	}
	return at
}
