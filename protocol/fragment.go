package protocol

import "fmt"

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
	dst = header(dst, KindFragment)
	for _, v := range []uint64{m.Sender, m.Message, m.Offset, m.Total} {
		dst = le.AppendUint64(dst, v)
	}
	return appendBytes(dst, m.Data)
}

// Decode reads the message; Data aliases b.
func (m *Fragment) Decode(b []byte) error {
	r := read(b, KindFragment)
	m.Sender, m.Message, m.Offset, m.Total = r.u64(), r.u64(), r.u64(), r.u64()
	m.Data = r.bytes()
	if r.err == nil && (m.Total > MaxMessage || m.Offset+uint64(len(m.Data)) > m.Total || m.Offset > m.Total) {
		r.fail("a fragment of %d bytes at %d of %d", len(m.Data), m.Offset, m.Total)
	}
	return r.end()
}

// Split calls send with message b, whole where it has at most limit bytes, else
// in fragments of at most limit bytes, which send must not keep. It stops at
// send's first error; a message above MaxMessage, which nobody would take, is
// refused. A limit that leaves a fragment no room for data panics.
func Split(b []byte, limit int, sender, message uint64, send func([]byte) error) error {
	switch {
	case len(b) <= limit:
		return send(b)
	case len(b) > MaxMessage:
		return fmt.Errorf("%w: %d bytes, at most %d are possible", ErrMessage, len(b), MaxMessage)
	case limit <= fragmentHead:
		panic(fmt.Sprintf("protocol: fragments of at most %d bytes, of which %d are no data", limit, fragmentHead))
	}
	piece := limit - fragmentHead
	buf := make([]byte, 0, limit)
	for at := 0; at < len(b); at += piece {
		f := Fragment{sender, message, uint64(at), uint64(len(b)), b[at:min(at+piece, len(b))]}
		if err := send(f.Append(buf[:0])); err != nil {
			return err
		}
	}
	return nil
}

// Joiner puts fragments together. It keeps at most one unfinished message for
// each sender, at most maxSenders of them and at most maxUnfinished bytes: one
// sender or byte more drops them all, since whoever still needs one asks again.
// Memory grows with what has arrived, not with the total that a fragment claims. It
// is not safe for concurrent use.
type Joiner struct {
	open  map[uint64]*joining // by sender
	held  int                 // bytes of all of them
	limit int                 // of held; 0: maxUnfinished
}

type joining struct {
	message uint64
	total   uint64
	b       []byte
}

const (
	maxSenders    = 1024
	maxUnfinished = 2 * MaxMessage
)

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
	if f.Offset == 0 {
		j.begin(f)
	}
	m := j.open[f.Sender]
	if m == nil || m.message != f.Message || m.total != f.Total || uint64(len(m.b)) != f.Offset {
		j.drop(f.Sender)
		return nil
	}
	if !j.room(len(f.Data)) {
		j.open, j.held = nil, 0
		return nil
	}
	if need := len(m.b) + len(f.Data); need > cap(m.b) { // doubled, but never above the total
		m.b = append(make([]byte, 0, min(uint64(2*need), m.total)), m.b...)
	}
	m.b = append(m.b, f.Data...)
	j.held += len(f.Data)
	if uint64(len(m.b)) < m.total {
		return nil
	}
	j.drop(f.Sender)
	return m.b
}

// begin makes a fragment's message the unfinished one of its sender.
func (j *Joiner) begin(f *Fragment) {
	j.drop(f.Sender)
	if j.open == nil || len(j.open) >= maxSenders {
		j.open, j.held = make(map[uint64]*joining), 0
	}
	j.open[f.Sender] = &joining{message: f.Message, total: f.Total}
}

func (j *Joiner) drop(sender uint64) {
	if m := j.open[sender]; m != nil {
		j.held -= len(m.b)
		delete(j.open, sender)
	}
}

// room reports whether n more bytes may be kept.
func (j *Joiner) room(n int) bool {
	limit := j.limit
	if limit == 0 {
		limit = maxUnfinished
	}
	return j.held+n <= limit
}
