package bus

import (
	"testing"
	"time"
)

// Clients are sent away, to another server where there is one, and let in again; who is
// in the server's own process stays, and so do routes.
func TestTurnAway(t *testing.T) {
	a, b := pair(t)
	var inside, outside counts
	own := connect(t, Options{Server: a, Traffic: &inside})
	client := connect(t, Options{URLs: []string{a.ClientURL(), b.ClientURL()}, Traffic: &outside})
	if at := client.ServerName(); at != "a" {
		t.Fatalf("connected to %q", at)
	}
	if n := a.TurnAway(); n != 1 || a.Admits() {
		t.Errorf("%d were sent away", n)
	}
	eventually(t, "the other server", func() bool { return client.ServerName() == "b" })
	if n := b.TurnAway(); n != 1 {
		t.Errorf("%d were sent away by the other", n)
	}
	eventually(t, "to be lost again", func() bool { return outside.disconnected.Load() == 2 })
	time.AfterFunc(200*time.Millisecond, a.Admit)
	eventually(t, "to be let in again", func() bool {
		return client.ServerName() == "a" && outside.reconnected.Load() == 2
	})
	if inside.disconnected.Load() != 0 || !own.Connected() || a.s.NumRoutes() != 1 {
		t.Errorf("inside lost %d times, %d routes", inside.disconnected.Load(), a.s.NumRoutes())
	}
}

// TestDisconnect: the client with the name loses its connection and may connect again. Others stay.
func TestDisconnect(t *testing.T) {
	a, _ := pair(t)
	var inside, other, closed counts
	connect(t, Options{Server: a, Name: "w", Traffic: &inside})
	connect(t, Options{URLs: []string{a.ClientURL()}, Name: "x", Traffic: &other})
	connect(t, Options{URLs: []string{a.ClientURL()}, Name: "w", Traffic: &closed})
	a.Disconnect("w")
	eventually(t, "the client to connect again", func() bool { return closed.reconnected.Load() == 1 })
	if inside.disconnected.Load()+other.disconnected.Load() != 0 || closed.disconnected.Load() != 1 {
		t.Errorf("connections were lost: %d inside, %d of x, %d of w", inside.disconnected.Load(), other.disconnected.Load(),
			closed.disconnected.Load())
	}
}

// Pauses between tries grow to a bound, and are never without some chance in them.
func TestReconnectDelay(t *testing.T) {
	for tries, most := range map[int]time.Duration{0: reconnectWait, 10: 2 * reconnectWait, 1000: reconnectMost} {
		for range 100 {
			if d := reconnectDelay(tries); d < most/2 || d >= most {
				t.Fatalf("%d tries: %v, want %v to %v", tries, d, most/2, most)
			}
		}
	}
}
