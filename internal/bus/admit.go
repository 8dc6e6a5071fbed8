package bus

import (
	"sync/atomic"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

// authSeconds is how long a client may take to introduce itself.
const authSeconds = 3

// admission lets clients in, or none but those of this process.
type admission struct{ closed atomic.Bool }

// Check implements natsserver.Authentication.
func (a *admission) Check(c natsserver.ClientAuthentication) bool {
	if !a.closed.Load() {
		return true
	}
	from := c.RemoteAddress()
	return from != nil && from.Network() == "pipe" // in-process
}

// TurnAway closes the connections of all clients but those of this process, and refuses
// new ones until Admit: they connect to another server. Routes stay. It returns how many
// it closed.
func (s *Server) TurnAway() int {
	s.admission.closed.Store(true)
	conns, err := s.s.Connz(&natsserver.ConnzOptions{Limit: int(^uint32(0) >> 1)})
	if err != nil {
		return 0
	}
	n := 0
	for _, c := range conns.Conns {
		if c.IP != "" && s.s.DisconnectClientByID(c.Cid) == nil { // those in-process have none
			n++
		}
	}
	return n
}

// Admit lets clients in again.
func (s *Server) Admit() { s.admission.closed.Store(false) }

// Admits reports whether clients are let in.
func (s *Server) Admits() bool { return !s.admission.closed.Load() }
