package main

import (
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/protocol"
)

// serverFlags say which cluster a command speaks to that changes nothing.
type serverFlags struct {
	Server []string `placeholder:"HOST[:PORT]" group:"cluster" help:"HTTP addresses of coordinators; one is enough (default: COPPICE_SERVER, or 127.0.0.1:7100)."`
}

// changeFlags are those of a command that changes something.
type changeFlags struct {
	serverFlags
	Wait time.Duration `seldom:"" default:"30s" group:"cluster" help:"How long to wait for a cluster that does not answer. 0: do not wait, but say why there is no answer."`
}

const defaultServer = "127.0.0.1:7100"

// connect returns a client that waits for a short while for the cluster.
func (s *serverFlags) connect(a *app) (*client.Client, error) {
	servers := strings.Join(withPorts(s.Server), ",")
	if servers == "" {
		servers = defaultServer
	}
	c, err := client.New(servers)
	if err != nil {
		return nil, usagef("--server: %w", err)
	}
	c.Patience = protocol.ClientRead
	a.asks = newAsked(a, c)
	c.Waiting = a.asks.waiting
	return c, nil
}

// connect returns a client that says on stderr for whom it waits when it has to wait
// for the cluster.
func (f *changeFlags) connect(a *app) (*client.Client, error) {
	if f.Wait < 0 {
		return nil, usagef("--wait %v: want 0 or more", f.Wait)
	}
	c, err := f.serverFlags.connect(a)
	if err != nil {
		return nil, err
	}
	a.asks.patient(f.Wait)
	return c, nil
}

// guess is connect for a command that may not have meant a cluster: where nobody said
// where one is, it does not wait for it.
func (s *serverFlags) guess(a *app) (*client.Client, error) {
	c, err := s.connect(a)
	if err == nil && len(s.Server) == 0 {
		c.Patience = 0
	}
	return c, err
}
