package bus

import (
	"slices"
	"sync"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// ownLinks are the connections of a process to its own server.
type ownLinks struct {
	mu    sync.Mutex
	links []*natsLink
}

func (o *ownLinks) add(l *natsLink) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.links = append(o.links, l)
}

func (o *ownLinks) remove(l *natsLink) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.links = slices.DeleteFunc(o.links, func(other *natsLink) bool { return other == l })
}

func (o *ownLinks) all() []*natsLink {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.links)
}

// ownWaits returns the bytes that wait for the connections of this process: in the server,
// and for the handlers of their subscriptions.
func (s *Server) ownWaits() (bytes int64) {
	for _, l := range s.own.all() {
		bytes += s.pending(l.nc) // first: what goes on meanwhile counts twice rather than not at all
		bytes += l.waits()
	}
	return bytes
}

// pending returns the bytes that wait in the server for a connection of this process.
func (s *Server) pending(nc *nats.Conn) int64 {
	id, err := nc.GetClientID()
	if err != nil {
		return 0 // it is closed
	}
	conns, err := s.s.Connz(&natsserver.ConnzOptions{CID: id})
	if err != nil || len(conns.Conns) == 0 {
		return 0 // it is lost, and comes back
	}
	return int64(conns.Conns[0].Pending)
}
