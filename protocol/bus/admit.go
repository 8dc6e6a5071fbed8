package bus

import (
	"net"
	"strings"
	"sync/atomic"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// authSeconds is how long a client may take to introduce itself.
const authSeconds = 3

// admission lets clients in, or none but those of this process, and gives them their
// rights.
type admission struct {
	closed   atomic.Bool
	rights   func(role rights.Role, name, client string) rights.NATS // nil: all
	identify func(at net.Addr) (certs.Identity, bool)                // nil: connections are in the clear
}

// Check implements natsserver.Authentication.
func (a *admission) Check(c natsserver.ClientAuthentication) bool {
	if from := c.RemoteAddress(); from != nil && from.Network() == "pipe" { // in-process
		return true
	}
	client := c.GetOpts().Name
	id, ok := certs.Identity{Role: certs.Worker, Name: client}, true // in the clear
	if a.identify != nil {
		id, ok = a.identify(c.RemoteAddress())
	}
	if !ok || a.closed.Load() || !named(id, client) {
		return false
	}
	if a.rights != nil {
		c.RegisterUser(&natsserver.User{Permissions: Permissions(a.rights(rights.Role(id.Role), id.Name, client))})
	}
	return true
}

// Permissions returns rights as the permissions of a user of a NATS server.
func Permissions(r rights.NATS) *natsserver.Permissions {
	only := func(subjects []string) *natsserver.SubjectPermission {
		if len(subjects) == 0 { // an empty list would permit all
			return &natsserver.SubjectPermission{Deny: []string{">"}}
		}
		return &natsserver.SubjectPermission{Allow: subjects}
	}
	p := &natsserver.Permissions{Publish: only(r.Publish), Subscribe: only(r.Subscribe)}
	if r.Answer > 0 {
		p.Response = &natsserver.ResponsePermission{MaxMsgs: 1, Expires: r.Answer}
	}
	return p
}

// named reports whether a client states the name in its certificate. A worker of a pool has a
// name that begins with the name of the pool.
func named(id certs.Identity, client string) bool {
	switch id.Role {
	case certs.Worker:
		return client == id.Name
	case certs.Pool:
		return strings.HasPrefix(client, id.Name+"-")
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
