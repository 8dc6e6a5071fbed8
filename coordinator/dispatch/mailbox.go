package dispatch

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// mailbox passes messages from the subscription to a job's driver, which must
// not hold up those of other jobs.
type mailbox struct {
	ready chan struct{}  // one token: there is mail, or the crew changed
	room  *protocol.Room // of all mail

	mu       sync.Mutex
	closed   bool
	msgs     [][]byte
	bytes    int // of msgs
	stored   []stored
	verdicts []verdict
}

// stored is the end of bringing one collected part here, or says why one that is here
// can never be recorded.
type stored struct {
	round  uint64
	unit   uint32
	err    error
	digest string
	part   []byte
	took   time.Duration // of computing the part; 0: not known
	// withheld, where set, are the units of which it is recorded that they are not run.
	withheld []uint32
	// progress is how far the unit is, where the part tells. before is set instead of all
	// that where the part was recorded before the round began here.
	progress, before *round.Progress
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

// maxMail bounds the messages of a mailbox, whose driver may be busy elsewhere for a
// while, as its room bounds their bytes: what exceeds them is dropped, and its units
// are overdue in time.
const maxMail = 1 << 20

// put takes a message, or reports false where there is no room for it.
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

func (m *mailbox) putStored(s stored) {
	m.mu.Lock()
	m.stored = append(m.stored, s)
	m.mu.Unlock()
	m.wake()
}

// take moves the mail into dst, whose memory is reused.
func (m *mailbox) take(dst [][]byte) [][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	dst = append(dst[:0], m.msgs...)
	clear(m.msgs)
	m.msgs = m.msgs[:0]
	m.empty()
	return dst
}

// empty gives back what the mail takes; mu is held.
func (m *mailbox) empty() {
	m.room.Give(m.bytes)
	m.bytes = 0
}

// close drops the mail and takes no more.
func (m *mailbox) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.msgs = true, nil
	m.empty()
}

func (m *mailbox) takeStored() []stored {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stored
	m.stored = nil
	return s
}

func (m *mailbox) putVerdict(v verdict) {
	m.mu.Lock()
	m.verdicts = append(m.verdicts, v)
	m.mu.Unlock()
	m.wake()
}

// takeVerdicts moves what the referee found into dst, whose memory is reused.
func (m *mailbox) takeVerdicts(dst []verdict) []verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	dst = append(dst[:0], m.verdicts...)
	clear(m.verdicts)
	m.verdicts = m.verdicts[:0]
	return dst
}

func sortWorkers(list []protocol.Worker) {
	slices.SortFunc(list, func(a, b protocol.Worker) int { return strings.Compare(a.ID, b.ID) })
}
