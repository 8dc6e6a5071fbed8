package protocol

import (
	"fmt"
	"slices"
)

// Fragment is a piece of a message that is larger than what NATS carries at
// once. The pieces of one message come from one sender in order.
type Fragment struct {
	Sender  uint64 // drawn at random by each process
	Message uint64 // counts up at the sender
	Offset  uint64
	Total   uint64 // size of the whole message, at most MaxMessage
	Data    []byte
}

// fragmentHead is the size of a Fragment without its data.
const fragmentHead = 2 + 4*8 + 8

// Append encodes the message.
func (m *Fragment) Append(dst []byte) []byte {
	return append(m.appendHead(dst, len(m.Data)), m.Data...)
}

// appendHead encodes all but the data, of which there are n bytes.
func (m *Fragment) appendHead(dst []byte, n int) []byte {
	dst = header(dst, KindFragment)
	for _, v := range []uint64{m.Sender, m.Message, m.Offset, m.Total, uint64(n)} {
		dst = le.AppendUint64(dst, v)
	}
	return dst
}

// Decode reads the message; Data aliases b.
func (m *Fragment) Decode(b []byte) error {
	r := read(b, KindFragment)
	m.Sender, m.Message, m.Offset, m.Total = r.u64(), r.u64(), r.u64(), r.u64()
	m.Data = r.bytes()
	if r.err == nil && (m.Total > MaxMessage || m.Offset+uint64(len(m.Data)) > m.Total || m.Offset > m.Total) {
		r.fail("the fragment does not fit into its message: %d bytes at offset %d of %d", len(m.Data), m.Offset, m.Total)
	}
	return r.end()
}

// Split calls send with message b, whole where it has at most limit bytes, else
// in fragments of at most limit bytes, which send must not keep. It stops at
// send's first error; a message above MaxMessage, which nobody would take, is
// refused. A limit that leaves a fragment no room for data panics.
func Split(b []byte, limit int, sender, message uint64, send func([]byte) error) error {
	return SplitParts([][]byte{b}, limit, sender, message, send)
}

// SplitParts is Split of a message that is parts, one behind the other.
func SplitParts(parts [][]byte, limit int, sender, message uint64, send func([]byte) error) error {
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
		if err := send(rest.take(f.appendHead(buf[:0], n), n)); err != nil {
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
	// Room is shared with whatever else takes bytes of messages; nil: the joiner's own.
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
	return j.add(&f), nil
}

func (j *Joiner) add(f *Fragment) []byte {
	if j.Room == nil {
		j.Room = NewRoom(0)
	}
	if j.id == 0 {
		j.id = j.Room.joiner()
	}
	at := place{j.id, f.Sender}
	m := j.Room.grow(at, f)
	if m == nil {
		return nil
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
		return nil
	}
	j.Room.end(at)
	return m.b
}

// Close drops the unfinished messages. It may be called while one is added, if the joiner
// was made by NewJoiner.
func (j *Joiner) Close() {
	if j.Room != nil && j.id != 0 {
		j.Room.leave(j.id)
	}
}
