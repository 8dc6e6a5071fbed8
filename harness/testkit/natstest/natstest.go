// Package natstest starts real NATS servers for tests, in this process and on loopback.
package natstest

import (
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// Ping is how long a connection may be silent before it is probed: no connection of a test
// is lost because the machine is busy.
const Ping = testkit.Limit

// Server starts a server that lasts as long as the test.
func Server(t testing.TB, o bus.ServerOptions) *bus.Server {
	t.Helper()
	if o.Name == "" {
		o.Name = "test"
	}
	if o.Ping == 0 {
		o.Ping = Ping
	}
	o.Host = "127.0.0.1"
	s, err := bus.StartServer(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Connect connects to a server, within this process, until the test ends.
func Connect(t testing.TB, s *bus.Server) *bus.Conn {
	t.Helper()
	c, err := bus.Connect(testkit.Context(t), bus.Options{Server: s, Ping: Ping})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
