package dispatch

import (
	"slices"
	"strings"
	"sync"

	"github.com/coppice-ldl/coppice/protocol"
)

// mailbox passes messages from the subscription to a job's driver, which must
// not hold up those of other jobs.
type mailbox struct {
	ready chan struct{} // one token: there is mail, or the crew changed

	mu     sync.Mutex
	msgs   [][]byte
	stored []stored
}

// stored is the end of recording one collected part.
type stored struct {
	round uint64
	unit  uint32
	err   error
	part  string // digest
}

func newMailbox() *mailbox { return &mailbox{ready: make(chan struct{}, 1)} }

func (m *mailbox) wake() {
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

func (m *mailbox) put(msg []byte) {
	m.mu.Lock()
	m.msgs = append(m.msgs, msg)
	m.mu.Unlock()
	m.wake()
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
	return dst
}

func (m *mailbox) takeStored() []stored {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stored
	m.stored = nil
	return s
}

func sortWorkers(list []protocol.Worker) {
	slices.SortFunc(list, func(a, b protocol.Worker) int { return strings.Compare(a.ID, b.ID) })
}
