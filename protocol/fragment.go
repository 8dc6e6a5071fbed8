package protocol

import (
	"fmt"
	"slices"
	"sync"
	"time"
	"unsafe"
)

// Fragment is a part of a message that is larger than what NATS carries at
// once. The fragments of one message come from one sender in order.
type Fragment struct {
	Sender  uint64 `bound:"any"` // drawn at random by each process
	Message uint64 `bound:"any"` // counts up at the sender
	Offset  uint64 `bound:"0..1073741824"`
	Total   uint64 `bound:"0..1073741824"` // size of the whole message, at most MaxMessage
	Data    []byte `bound:"any"`
}

// fragmentHead is the size of a Fragment without its data.
const fragmentHead = 2 + 4*8 + 8

// Append encodes the message.
func (m *Fragment) Append(dst []byte) []byte {
	size := uint64(len(m.Data))
	return append(m.code(coder{b: dst}, &size).b, m.Data...)
}

// Decode reads the message. Data shares the memory of b.
func (m *Fragment) Decode(b []byte) error {
	var size uint64
	c := m.code(coder{b: b, reads: true}, &size)
	m.Data = c.take(size)
	if c.err == nil && (m.Total > MaxMessage || m.Offset+size > m.Total || m.Offset > m.Total) {
		c.fail("the fragment does not fit into its message: %d bytes at offset %d of %d", size, m.Offset, m.Total)
	}
	return bounded(m, c.end())
}

// code codes all but the data, which has size bytes.
func (m *Fragment) code(c coder, size *uint64) coder {
	c.begin(KindFragment)
	numbers(&c, &m.Sender, &m.Message, &m.Offset, &m.Total, size)
	return c
}

// Split calls send with the message of parts, one behind the other: whole if it has at most
// limit bytes, and otherwise in fragments of at most limit bytes, which send must not keep. It
// stops at the first error of send. It refuses a message above MaxMessage, which nobody would
// take. A limit that leaves a fragment no room for data panics.
func Split(parts [][]byte, limit int, sender, message uint64, send func([]byte) error) error {
	total := 0
	for _, p := range parts {
		total += len(p)
	}
	switch {
	case total <= limit && len(parts) == 1:
		return send(parts[0])
	case total <= limit:
		return send(slices.Concat(parts...))
	case total > MaxMessage:
		return fmt.Errorf("%w: the message has %d bytes, want at most %d", ErrMessage, total, MaxMessage)
	case limit <= fragmentHead:
		panic(fmt.Sprintf("protocol: fragments of at most %d bytes, of which %d are no data", limit, fragmentHead))
	}
	piece := limit - fragmentHead
	buf := make([]byte, 0, limit)
	rest := walk{parts: parts}
	for at := 0; at < total; at += piece {
		n := min(piece, total-at)
		f := Fragment{Sender: sender, Message: message, Offset: uint64(at), Total: uint64(total)}
		size := uint64(n)
		if err := send(rest.take(f.code(coder{b: buf[:0]}, &size).b, n)); err != nil {
			return err
		}
	}
	return nil
}

// walk goes over parts of a message from the first byte to the last.
type walk struct {
	parts [][]byte
	at    int // in the first of them
}

// take appends the next n bytes.
func (w *walk) take(dst []byte, n int) []byte {
	for n > 0 {
		rest := w.parts[0][w.at:]
		if len(rest) == 0 {
			w.parts, w.at = w.parts[1:], 0
			continue
		}
		k := min(n, len(rest))
		dst = append(dst, rest[:k]...)
		w.at, n = w.at+k, n-k
	}
	return dst
}

// Joiner puts fragments together. It keeps at most one unfinished message for
// each sender, within its Room. Memory grows with what has arrived, not with the
// total that a fragment claims. It is not safe for concurrent use.
type Joiner struct {
	// Room is shared with all that takes bytes of messages; nil: the joiner's own.
	Room *Room
	id   uint64
}

// NewJoiner returns a joiner in a room, nil for one of its own.
func NewJoiner(room *Room) *Joiner {
	if room == nil {
		room = NewRoom(0)
	}
	return &Joiner{Room: room, id: room.joiner()}
}

// Add takes a message or fragment and returns a whole message, or nil while more
// is due. A gap drops the message: the sender sends it again when asked.
func (j *Joiner) Add(b []byte) ([]byte, error) {
	k, err := KindOf(b)
	if err != nil || k != KindFragment {
		return b, err
	}
	var f Fragment
	if err := f.Decode(b); err != nil {
		return nil, err
	}
	if j.Room == nil {
		j.Room = NewRoom(0)
	}
	if j.id == 0 {
		j.id = j.Room.joiner()
	}
	at := place{j.id, f.Sender}
	m := j.Room.grow(at, &f)
	if m == nil {
		return nil, nil
	}
	if len(m.b) == 0 {
		m.lead = lead(f.Data)
		m.b = j.Room.taken(int(m.total), m.lead)
	}
	if m.room > cap(m.b) {
		m.b = append(j.Room.memory(m.room, m.lead), m.b...)
	}
	m.b = append(m.b, f.Data...)
	if uint64(len(m.b)) < m.total {
		return nil, nil
	}
	j.Room.end(at)
	return m.b, nil
}

// Close drops the unfinished messages. It may be called while one is added, if the joiner
// was made by NewJoiner.
func (j *Joiner) Close() {
	if j.Room != nil && j.id != 0 {
		j.Room.leave(j.id)
	}
}

// Room bounds the bytes of messages that a process has received and not used yet: unfinished
// messages, and messages that somebody holds. If there is no room for more, or senders are too
// many, it drops unfinished messages: first the message that has not grown for longest, if that
// is a second or more, and otherwise the message that began last. So some of many messages that
// grow at once are always finished. A receiver that needs a dropped message asks again.
// Room is safe for concurrent use.
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

// place tells unfinished messages apart: a joiner has at most one of each sender.
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

// wholeFrom bounds the doubling of memory: once an eighth of a message has come, the message has
// memory for all of it. Doubling until the end would leave half a message of garbage.
const wholeFrom = 8

// capacity returns the memory of a message that has need bytes: twice as much, and the total as
// soon as that is at most wholeFrom times as much.
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

// grow takes room for a fragment of a message and returns the message. It returns nil if the
// fragment is not the next of its message, or if there is no room. The field room of the message
// is the capacity that it is to have.
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

// leave forgets the unfinished messages of a joiner that has ended.
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
// there is. asks is the message that the bytes are for. If it is nil, the bytes are for a whole
// message, and only messages that do not grow are dropped.
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

// victim chooses the message that is dropped for others. There must be a message.
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

// leastSpare is the size of the smallest memory that is used again.
const leastSpare = 1 << 20

// spareRoom is how many bytes such memory has beyond its message. So the next message fits too,
// which may have another lead.
const spareRoom = 512

// mostSpare is how many spare memories are kept, and mostLarge how many if the last one has
// largeSpare bytes or more. Two workers have one message each on its way. There is a third if a
// task is computed twice, and its memory would stay until the job ends.
const (
	mostSpare  = 4
	mostLarge  = 2
	largeSpare = 16 << 20
)

// Reuse takes the memory of a delivered message that nobody reads any longer, for another message
// of its size.
func (r *Room) Reuse(msg []byte) {
	if cap(msg) < leastSpare {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	most := mostSpare
	if cap(msg) >= largeSpare {
		most = mostLarge
	}
	if n := len(r.spare); n >= most {
		r.spare = slices.Delete(r.spare, 0, n-most+1)
	}
	r.spare = append(r.spare, msg)
}

// Release drops the memory that Reuse was given: no long message is expected until the next job.
func (r *Room) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spare = nil
}

// taken returns memory that was given to Reuse, for n bytes of a message with a lead, or nil.
func (r *Room) taken(n, lead int) []byte {
	if n < leastSpare {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.spare, func(b []byte) bool { return cap(b) >= n+numberBytes && cap(b)/2 <= n })
	if at < 0 {
		return nil
	}
	b := r.spare[at]
	r.spare = slices.Delete(r.spare, at, at+1)
	return placed(b, lead)
}

// memory returns memory for n bytes of a message with a lead. A small message needs no lead.
func (r *Room) memory(n, lead int) []byte {
	if n < leastSpare {
		return make([]byte, 0, n)
	}
	if b := r.taken(n, lead); b != nil {
		return b
	}
	return placed(make([]byte, 0, n+spareRoom), lead)
}

// placed returns the memory of b, empty, from the first place at which a message with a lead may begin.
func placed(b []byte, lead int) []byte {
	b = b[:cap(b)]
	skip := (lead - int(uintptr(unsafe.Pointer(&b[0]))%numberBytes) + numberBytes) % numberBytes
	return b[skip:skip]
}

// valueBefore is how many bytes of a Value come before Data. partBefore is how many bytes of a
// Partial come before the numbers of F32, without F64, which has a multiple of 8 bytes, and
// without the worker's name, which begins at partWorker.
const (
	valueBefore = 2 + 2*8 + 2 + 8 + 8
	partWorker  = 2 + 3*8 + 4
	partBefore  = partWorker + 1 + 4 + 8 + 4 + 8 + 8
)

// numberBytes is the greatest size of a number.
const numberBytes = 8

// lead returns how far behind a multiple of numberBytes a message that begins like b is placed in
// memory. Then the numbers of a Value or a Partial are aligned, and need not be moved.
func lead(b []byte) int {
	before := uint32(0)
	switch kind, err := KindOf(b); {
	case err != nil:
	case kind == KindValue:
		before = valueBefore
	case kind == KindPartial && len(b) >= partWorker:
		before = partBefore + le.Uint32(b[partWorker-4:])
	}
	return int(-before % numberBytes)
}
