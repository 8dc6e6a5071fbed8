package bus

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/coppice-ldl/coppice/protocol"
)

// Messages of all sizes cross two servers whole, also when senders interleave.
func TestClusterCarriesFragments(t *testing.T) {
	sa, sb := pair(t)
	from := connect(t, Options{Server: sa})
	to := connect(t, Options{URLs: []string{sb.ClientURL()}})
	got := listen(t, to, "work.*")
	crosses(t, from, got, "work.0")

	sizes := []int{2, 1000, maxPayload, maxPayload + 1, 10 << 20}
	var wg sync.WaitGroup
	for i, n := range sizes {
		wg.Go(func() {
			if err := from.Send("work."+strconv.Itoa(i), "answers", message(n, byte(i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seen := make(map[string]bool)
	for range sizes {
		m := receive(t, got)
		seen[m.Subject] = true
		var i int
		fmt.Sscanf(m.Subject, "work.%d", &i)
		if !bytes.Equal(m.Data, message(sizes[i], byte(i))) || m.Reply != "answers" {
			t.Errorf("%s: %d bytes of %d, reply %q", m.Subject, len(m.Data), sizes[i], m.Reply)
		}
	}
	if len(seen) != len(sizes) {
		t.Errorf("got %v", seen)
	}
}

// crosses waits until messages get through, and takes them out.
func crosses(t *testing.T, from *Conn, got <-chan Message, subject string) {
	t.Helper()
	eventually(t, "a message through "+subject, func() bool {
		if err := from.Send(subject, "", message(2, 0)); err != nil {
			return false
		}
		select {
		case <-got:
			return true
		case <-time.After(50 * time.Millisecond):
			return false
		}
	})
	mark := message(3, 9)
	if err := from.Send(subject, "", mark); err != nil {
		t.Fatal(err)
	}
	for !bytes.Equal(receive(t, got).Data, mark) {
	}
}

// smallServer starts a server that takes 4096 bytes at once.
func smallServer(t *testing.T) *natsserver.Server {
	t.Helper()
	ns, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true,
		MaxPayload: 4096})
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	eventually(t, "ready", func() bool { return ns.ReadyForConnections(time.Millisecond) })
	return ns
}

// The limit is the one of the server at hand, not of our own server.
func TestSmallServer(t *testing.T) {
	c := connect(t, Options{URLs: []string{smallServer(t).ClientURL()}})
	got := listen(t, c, "x")
	for _, n := range []int{4096, 4097, 1 << 20} {
		if err := c.Send("x", "", message(n, 1)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(receive(t, got).Data, message(n, 1)) {
			t.Errorf("%d bytes changed", n)
		}
	}
	if _, err := c.Request(within(t), "x", message(4097, 1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a large request: %v", err)
	}
}

func TestOrder(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	from, to := connect(t, Options{Server: s}), connect(t, Options{Server: s})
	const n = 5000
	var next uint32
	done := make(chan struct{})
	if _, err := to.Subscribe("x", func(m Message) {
		if i := binary.LittleEndian.Uint32(m.Data[2:]); i != next {
			t.Errorf("message %d where %d is due", i, next)
		}
		if next++; next == n {
			close(done)
		}
	}); err != nil {
		t.Fatal(err)
	}
	b := message(6, 0)
	for i := range uint32(n) {
		binary.LittleEndian.PutUint32(b[2:], i)
		if err := from.Send("x", "", b); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("not all came")
	}
}

// What is not a message of the protocol is dropped, and what follows arrives.
func TestGarbageIsDropped(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	c := connect(t, Options{Server: s})
	got := listen(t, c, "x")
	for _, b := range [][]byte{{}, {1}, {9, 9, 9}, {protocol.Version, 12, 1, 2, 3}, message(10, 3)} {
		if err := c.Send("x", "", b); err != nil {
			t.Fatal(err)
		}
	}
	if m := receive(t, got); !bytes.Equal(m.Data, message(10, 3)) {
		t.Errorf("got %v", m)
	}
}

func TestTrafficIsCounted(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	var n counts
	c := connect(t, Options{Server: s, Traffic: &n})
	got := listen(t, c, "x")
	if err := c.Send("x", "", message(1000, 1)); err != nil {
		t.Fatal(err)
	}
	receive(t, got)
	if n.sent.Load() != 1000 || n.received.Load() != 1000 {
		t.Errorf("%d sent, %d received", n.sent.Load(), n.received.Load())
	}
}

// After the server's restart, subscriptions work without further ado; meanwhile
// Send and Request say that they cannot, at once, and keep nothing for later.
func TestServerRestart(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	port := s.ClientPort()
	var n counts
	c := connect(t, Options{URLs: []string{s.ClientURL()}, Traffic: &n})
	got := listen(t, c, "x")
	s.Close()
	eventually(t, "connection lost", func() bool { return !c.Connected() && n.disconnected.Load() == 1 })
	if err := c.Send("x", "", message(10, 1)); !errors.Is(err, ErrOffline) {
		t.Errorf("Send: %v, want ErrOffline", err)
	}
	if _, err := c.Request(within(t), "x", message(10, 1)); !errors.Is(err, ErrOffline) {
		t.Errorf("Request: %v, want ErrOffline", err)
	}
	startServer(t, ServerOptions{Name: "a", ClientPort: port})
	eventually(t, "connected again", func() bool { return n.reconnected.Load() == 1 })
	if err := c.Send("x", "", message(10, 2)); err != nil {
		t.Fatal(err)
	}
	if m := receive(t, got); !bytes.Equal(m.Data, message(10, 2)) {
		t.Error("what was sent without a connection came later")
	}
}

// A message torn by a lost connection is not delivered, and the next is whole.
func TestTornMessage(t *testing.T) {
	c := connect(t, Options{URLs: []string{smallServer(t).ClientURL()}})
	got := listen(t, c, "x")
	lost := errors.New("connection lost")
	count := 0
	err := protocol.Split([][]byte{message(20_000, 1)}, 4096, c.sender, c.message.Add(1), func(b []byte) error {
		if count++; count == 3 {
			return lost
		}
		return c.publish("x", "", b)
	})
	if !errors.Is(err, lost) {
		t.Fatal(err)
	}
	if err := c.Send("x", "", message(20_000, 2)); err != nil {
		t.Fatal(err)
	}
	if m := receive(t, got); !bytes.Equal(m.Data, message(20_000, 2)) {
		t.Error("wrong bytes")
	}
}

func TestCloseOfSubscription(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	c := connect(t, Options{Server: s})
	ch := make(chan Message, 10)
	sub, err := c.Subscribe("x", func(m Message) { ch <- m })
	if err != nil {
		t.Fatal(err)
	}
	sub.Close()
	sub.Close()
	if err := c.Send("x", "", message(2, 0)); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.RTT(t.Context()); err != nil {
		t.Error(err)
	}
	if len(ch) > 0 {
		t.Error("delivered after Close")
	}
}

func TestCloseWithoutServer(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	c := connect(t, Options{URLs: []string{s.ClientURL()}})
	if _, err := c.Subscribe("x", func(Message) {}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	began := time.Now()
	c.Close()
	c.Close()
	if d := time.Since(began); d > patience/2 {
		t.Errorf("closed after %v", d)
	}
	if err := c.Send("x", "", message(2, 0)); !errors.Is(err, ErrOffline) {
		t.Errorf("Send on a closed connection: %v", err)
	}
	if err := c.Flush(context.Background()); !errors.Is(err, ErrOffline) {
		t.Errorf("Flush on a closed connection: %v", err)
	}
}

// What was sent before Close arrives.
func TestCloseDelivers(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	from, to := connect(t, Options{Server: s}), connect(t, Options{Server: s})
	got := listen(t, to, "x")
	for range 100 {
		if err := from.Send("x", "", message(1000, 1)); err != nil {
			t.Fatal(err)
		}
	}
	from.Close()
	for range 100 {
		receive(t, got)
	}
}

// A worker given the addresses of several servers outlives the one it uses.
func TestOtherServerTakesOver(t *testing.T) {
	sa, sb := pair(t)
	var n counts
	c := connect(t, Options{URLs: []string{sa.ClientURL(), sb.ClientURL()}, Traffic: &n})
	got := listen(t, c, "x")
	used, err := url.Parse(c.link.(*natsLink).nc.ConnectedUrl())
	if err != nil {
		t.Fatal(err)
	}
	left := sa
	if used.Port() == strconv.Itoa(sa.ClientPort()) {
		left = sb
		sa.Close()
	} else {
		sb.Close()
	}
	eventually(t, "connected to the other", func() bool { return n.reconnected.Load() > 0 && c.Connected() })
	other := connect(t, Options{Server: left})
	crosses(t, other, got, "x")
}
