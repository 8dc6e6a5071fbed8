package bus

import (
	"net"
	"strings"
	"sync/atomic"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/coppice-ldl/coppice/internal/certs"
)

// authSeconds is how long a client may take to introduce itself.
const authSeconds = 3

// admission lets clients in, or none but those of this process, and gives them their
// rights.
type admission struct {
	closed   atomic.Bool
	rights   func(name string) Rights                 // nil: all
	identify func(at net.Addr) (certs.Identity, bool) // nil: connections are in the clear
}

// Check implements natsserver.Authentication.
func (a *admission) Check(c natsserver.ClientAuthentication) bool {
	if from := c.RemoteAddress(); from != nil && from.Network() == "pipe" { // in-process
		return true
	}
	if a.closed.Load() || a.identify != nil && !a.named(c) {
		return false
	}
	if a.rights != nil {
		r := a.rights(c.GetOpts().Name)
		c.RegisterUser(&natsserver.User{Permissions: &natsserver.Permissions{
			Publish:   &natsserver.SubjectPermission{Allow: r.Send},
			Subscribe: &natsserver.SubjectPermission{Allow: r.Listen},
		}})
	}
	return true
}

// named reports whether a client has the name in its certificate. A worker of a pool has a
// name that begins with the name of the pool.
func (a *admission) named(c natsserver.ClientAuthentication) bool {
	id, ok := a.identify(c.RemoteAddress())
	switch name := c.GetOpts().Name; {
	case !ok:
		return false
	case id.Role == certs.Worker:
		return name == id.Name
	case id.Role == certs.Pool:
		return strings.HasPrefix(name, id.Name+"-")
	}
	return true
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
