package dispatch

import (
	"sync"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/protocol"
)

// maxMail bounds the messages of a mailbox: its executor may be busy for a while. Its room bounds their bytes.
// Messages beyond the bounds are dropped, and their tasks take too long in time.
const maxMail = 1 << 20

// mailbox passes messages from NATS, and the ends of what goroutines do, to a job's executor. NATS never waits for it.
type mailbox struct {
	ready chan struct{}  // has a token if there is mail, or if the workers changed
	room  *protocol.Room // for the messages of all mailboxes

	mu     sync.Mutex // guards all that follows
	closed bool
	msgs   [][]byte
	bytes  int // of msgs. Invariant: so many are taken from room
	ends   []end
}

// end is the end of something that a goroutine of an executor did.
type end struct {
	event   schedule.Event
	over    error          // if set: the job cannot go on, and event is not used
	partial *round.Partial // of LeaderComputed, in a reduce round
	bytes   []byte         // of ResultStored and of LeaderComputed: the result
	// progress is how far the sub-job is by its result. With before true it is all there is to tell: the result was recorded
	// before the round began.
	progress *round.Progress
	before   bool
}

func newMailbox(room *protocol.Room) *mailbox {
	return &mailbox{ready: make(chan struct{}, 1), room: room}
}

func (m *mailbox) wake() {
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// put takes a message, or returns false if there is no room for it.
func (m *mailbox) put(msg []byte) bool {
	m.mu.Lock()
	room := !m.closed && len(m.msgs) < maxMail && m.room.Take(len(msg))
	if room {
		m.msgs = append(m.msgs, msg)
		m.bytes += len(msg)
	}
	m.mu.Unlock()
	m.wake()
	return room
}

func (m *mailbox) putEnd(e end) {
	m.mu.Lock()
	m.ends = append(m.ends, e)
	m.mu.Unlock()
	m.wake()
}

// take moves the mail to the slices, and reuses their memory.
func (m *mailbox) take(msgs [][]byte, ends []end) ([][]byte, []end) {
	m.mu.Lock()
	defer m.mu.Unlock()
	msgs, ends = append(msgs[:0], m.msgs...), append(ends[:0], m.ends...)
	clear(m.msgs)
	clear(m.ends)
	m.msgs, m.ends = m.msgs[:0], m.ends[:0]
	m.room.Give(m.bytes)
	m.bytes = 0
	return msgs, ends
}

// close drops the mail. From then on all messages are dropped.
func (m *mailbox) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.msgs = true, nil
	m.room.Give(m.bytes)
	m.bytes = 0
}
