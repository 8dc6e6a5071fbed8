package bus

import (
	"strings"
	"sync/atomic"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// authSeconds is how long a client may take to introduce itself.
const authSeconds = 3

// admission accepts clients, or only connections of this process, and gives them their rights.
type admission struct {
	server  *natsserver.Server
	secure  bool                                                    // true if clients have certificates
	most    int                                                     // clients of other processes; 0: no bound
	rights  func(role rights.Role, name, client string) rights.NATS // nil: all
	closed  atomic.Bool
	refused atomic.Uint64 // clients beyond most
}

// Check implements natsserver.Authentication. The connection of a client with a certificate
// ends with the certificate.
func (a *admission) Check(c natsserver.ClientAuthentication) bool {
	if from := c.RemoteAddress(); from != nil && from.Network() == "pipe" { // in-process
		return true
	}
	client := c.GetOpts().Name
	id, end := certs.Identity{Role: certs.Worker, Name: client}, time.Time{} // in the clear
	if a.secure {
		state := c.GetTLSConnectionState()
		if state == nil || len(state.PeerCertificates) == 0 {
			return false
		}
		var err error
		if id, err = certs.IdentityOf(state.PeerCertificates[0]); err != nil {
			return false
		}
		if end = state.PeerCertificates[0].NotAfter; !end.After(time.Now()) {
			return false
		}
	}
	if a.closed.Load() || !named(id, client) {
		return false
	}
	if a.most > 0 && a.server.NumClients() > a.most+ownClients {
		a.refused.Add(1)
		return false
	}
	user := &natsserver.User{ConnectionDeadline: end}
	if a.rights != nil {
		user.Permissions = Permissions(a.rights(rights.Role(id.Role), id.Name, client))
	}
	c.RegisterUser(user)
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
	n := 0
	for _, c := range s.clients() {
		if s.s.DisconnectClientByID(c.Cid) == nil {
			n++
		}
	}
	return n
}

// Disconnect closes the connections of the clients with a name.
func (s *Server) Disconnect(name string) {
	for _, c := range s.clients() {
		if c.Name == name {
			_ = s.s.DisconnectClientByID(c.Cid) // fails if the client has left
		}
	}
}

// Admit lets clients in again.
func (s *Server) Admit() { s.admission.closed.Store(false) }

// Admits reports whether clients are let in.
func (s *Server) Admits() bool { return !s.admission.closed.Load() }
