package coordinator_test

import (
	"fmt"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// A coordinator that loses the majority sends its NATS clients away, refuses new ones,
// and lets them in again once it hears a leader.
func TestSendsClientsAway(t *testing.T) {
	ctx := testkit.Context(t)
	c := start(t, 3, 0)
	c.leader(ctx)
	p := c.peers[0]
	here := bus.Options{URLs: []string{fmt.Sprintf("nats://127.0.0.1:%d", p.Port+2)}, Name: "client"}
	conn, err := bus.Connect(ctx, here)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if at := conn.ServerName(); at != p.ID {
		t.Fatalf("the client is connected to %q", at)
	}
	for _, other := range c.peers[1:] {
		c.stop(other.ID)
	}
	testkit.Until(t, "the client to be sent away", func() bool { return !conn.Connected() })
	if other, err := bus.Connect(ctx, here); err == nil {
		other.Close()
		t.Error("a client was let in")
	}
	c.startCoordinator(c.peers[1].ID)
	testkit.Until(t, "the client to be let in again", conn.Connected)
}
