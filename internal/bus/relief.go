package bus

import (
	"slices"
	"sync"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

// Load is what the clients of a server take.
type Load struct {
	Clients int
	Pending int64  // bytes that wait to be sent to them
	Closed  uint64 // clients that Relieve closed since the start
}

// relief is what Relieve knows.
type relief struct {
	pending     int64 // bound of all clients
	connections int   // bound; 0: none

	mu     sync.Mutex
	passed int64 // bytes since the last look, as far as this process sent or heard them
	load   Load
}

const (
	// crowded is the share of the connections from which clients that listen to nothing
	// are closed.
	crowded = 0.75
	// settled is how old a client is at least that listens to nothing and is closed.
	settled = 2 * time.Second
	// lookEvery is the share of the bound that may pass, to each client that there is,
	// between two looks at what waits.
	lookEvery = 0.25
)

func newRelief(o *natsserver.Options) *relief {
	return &relief{pending: o.MaxPending, connections: o.MaxConn}
}

// Load returns what Relieve found last.
func (s *Server) Load() Load {
	s.relief.mu.Lock()
	defer s.relief.mu.Unlock()
	return s.relief.load
}

// passes counts bytes that pass, and looks at what waits once they are many: it may be
// so many bytes for each client that does not read.
func (r *relief) passes(s *Server, n int) {
	r.mu.Lock()
	r.passed += int64(n)
	due := float64(r.passed)*float64(max(1, r.load.Clients)) > lookEvery*float64(r.pending)
	if due {
		r.passed = 0
	}
	r.mu.Unlock()
	if due {
		s.Relieve()
	}
}

// Relieve closes clients where they take more than they may: those for which most
// waits to be sent, until what waits for all is within ServerOptions.Pending, and, where most
// of ServerOptions.Connections are taken, those that listen to nothing, the oldest first.
// It is to be called several times a second, and returns how many it closed. Routes
// and clients of this process stay.
func (s *Server) Relieve() int {
	conns, err := s.s.Connz(&natsserver.ConnzOptions{Sort: natsserver.ByPending, Limit: int(^uint32(0) >> 1)})
	if err != nil {
		return 0
	}
	closed := 0
	for _, cid := range s.relief.excess(conns.Conns, time.Now()) {
		if s.s.DisconnectClientByID(cid) == nil {
			closed++
		}
	}
	s.relief.mu.Lock()
	defer s.relief.mu.Unlock()
	s.relief.load.Clients, s.relief.load.Pending = len(conns.Conns)-closed, 0
	for _, c := range conns.Conns {
		s.relief.load.Pending += int64(c.Pending)
	}
	s.relief.load.Closed += uint64(closed)
	return closed
}

// excess chooses the clients to be closed, of a list with those first for which most
// waits.
func (r *relief) excess(conns []*natsserver.ConnInfo, now time.Time) (cids []uint64) {
	var waits int64
	for _, c := range conns {
		waits += int64(c.Pending)
	}
	closed := make(map[uint64]bool)
	for _, c := range conns {
		if waits <= r.pending {
			break
		}
		if !foreign(c) {
			continue
		}
		waits -= int64(c.Pending)
		closed[c.Cid] = true
		cids = append(cids, c.Cid)
	}
	over := len(conns) - len(cids) - int(crowded*float64(r.connections))
	if r.connections == 0 || over <= 0 {
		return cids
	}
	for _, c := range oldest(conns) {
		if over > 0 && foreign(c) && !closed[c.Cid] && c.NumSubs == 0 && now.Sub(c.Start) >= settled {
			cids = append(cids, c.Cid)
			over--
		}
	}
	return cids
}

// foreign reports whether a client is of another process: those in-process have no
// address.
func foreign(c *natsserver.ConnInfo) bool { return c.IP != "" }

// oldest returns connections by age, the oldest first.
func oldest(conns []*natsserver.ConnInfo) []*natsserver.ConnInfo {
	return slices.SortedFunc(slices.Values(conns), func(a, b *natsserver.ConnInfo) int { return a.Start.Compare(b.Start) })
}
