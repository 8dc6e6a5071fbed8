package bus

import (
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/coppice-ldl/coppice/internal/wait"
)

// deaf connects and subscribes, says that it is alive, and reads nothing. The system receives at most
// buffer bytes for it.
func deaf(t *testing.T, s *Server, subject string, buffer int) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.ClientURL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.(*net.TCPConn).SetReadBuffer(buffer)
	say := "CONNECT {\"verbose\":false,\"pedantic\":false}\r\n"
	if subject != "" {
		say += "SUB " + subject + " 1\r\n"
	}
	if _, err := io.WriteString(c, say+"PING\r\n"); err != nil {
		t.Fatal(err)
	}
	return c
}

// subscribed waits until the server knows n subscriptions of a subject.
func subscribed(t *testing.T, s *Server, subject string, n int) {
	t.Helper()
	eventually(t, "subscribed to "+subject, func() bool { return s.s.GlobalAccount().Interest(subject) == n })
}

// TestDeafClientsAreClosed: what waits for a client that does not read has a bound, and NATS
// closes the client. A client that reads misses nothing.
func TestDeafClientsAreClosed(t *testing.T) {
	const bound, sends, many = 4 << 20, 1000, 4
	msg := message(64<<10, 1)
	s := startServer(t, ServerOptions{Name: "a", Pending: bound})
	from, to := connect(t, Options{Server: s}), connect(t, Options{URLs: []string{s.ClientURL()}})
	var n atomic.Int64
	if _, err := to.Subscribe("x", func(Message) { n.Add(1) }); err != nil {
		t.Fatal(err)
	}
	for range many {
		deaf(t, s, "y", 4<<10)
	}
	subscribed(t, s, "x", 1)
	subscribed(t, s, "y", many)
	for range sends {
		for _, subject := range []string{"x", "y"} {
			if err := from.Send(subject, "", msg); err != nil {
				t.Fatal(err)
			}
		}
		if err := from.Flush(within(t)); err != nil {
			t.Fatal(err)
		}
		if waits := s.Load().Pending; waits > (many+1)*bound {
			t.Fatalf("%d bytes wait for %d clients, at most %d may for each", waits, many+1, bound)
		}
	}
	eventually(t, "all closed", func() bool { return s.Load().Clients == 1 })
	eventually(t, "all read", func() bool { return n.Load() == sends })
	if closed := s.Load().Closed; closed < many || closed > 2*many {
		t.Errorf("%d clients were closed, want %d; NATS may count each twice", closed, many)
	}
}

// slow connects and subscribes, and reads some 30 MB a second; read counts them.
func slow(t *testing.T, s *Server, subject string, read *atomic.Int64) {
	t.Helper()
	c := deaf(t, s, subject, 512<<10)
	go func() {
		b := make([]byte, 64<<10)
		for {
			n, err := c.Read(b)
			read.Add(int64(n))
			if err != nil || wait.For(t.Context(), 2*time.Millisecond) != nil {
				return
			}
		}
	}()
}

// TestLongMessagesWait: messages that are sent faster than clients read wait for the clients, within
// the bound, and no client is closed. A client that reads nothing delays the others only for a
// short time.
func TestLongMessagesWait(t *testing.T) {
	const bound, sends, size, deadline = 8 << 20, 4, 5 << 20, time.Minute
	s := startServer(t, ServerOptions{Name: "a", Pending: bound, deadline: deadline})
	from := connect(t, Options{Server: s})
	var read atomic.Int64
	for _, subject := range []string{"x", "y"} {
		slow(t, s, subject, &read)
	}
	subscribed(t, s, "x", 1)
	subscribed(t, s, "y", 1)
	msg := message(size, 1)
	send := func(subject string) {
		t.Helper()
		if err := from.Send(subject, "", msg); err != nil {
			t.Fatal(err)
		}
		if n := s.Load().Pending; n > bound {
			t.Errorf("%d bytes wait, at most %d may", n, bound)
		}
	}
	for range sends {
		send("x")
		send("y")
	}
	eventually(t, "all read", func() bool { return read.Load() >= 2*sends*size })
	if closed := s.Load().Closed; closed > 0 {
		t.Errorf("%d clients were closed", closed)
	}
	deaf(t, s, "z", 4<<10)
	subscribed(t, s, "z", 1)
	send("z")
	began := time.Now()
	send("x")
	if took := time.Since(began); took > deadline/2 {
		t.Errorf("a client that reads nothing delays a message to another for %v", took)
	}
	eventually(t, "the other message to be read", func() bool { return read.Load() >= (2*sends+1)*size })
}

// TestClosedAfterTheDeadline: NATS closes a client that reads nothing. A message for which there is no
// room is sent afterwards.
func TestClosedAfterTheDeadline(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a", Pending: 8 << 20, deadline: 100 * time.Millisecond})
	from := connect(t, Options{Server: s})
	deaf(t, s, "x", 4<<10)
	subscribed(t, s, "x", 1)
	for range 2 {
		if err := from.Send("x", "", message(5<<20, 1)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the client to be closed", func() bool { return s.Load().Clients == 0 })
}

// TestFlow: what waits for clients that read, and all that waits, have a bound. What waits for a
// client that reads nothing counts for all only.
func TestFlow(t *testing.T) {
	const most = 64 << 20
	start := time.Unix(1000, 0)
	conn := func(cid uint64, pending, read int) *natsserver.ConnInfo {
		return &natsserver.ConnInfo{Cid: cid, Pending: pending, OutBytes: int64(pending + read)}
	}
	type look struct {
		after time.Duration // since the start
		conns []*natsserver.ConnInfo
		fits  int64 // the largest message that fits
		stuck bool
	}
	const any = 1 << 40
	for name, looks := range map[string][]look{
		"nothing waits": {{after: 0, conns: nil, fits: any, stuck: false},
			{after: time.Hour, conns: []*natsserver.ConnInfo{conn(1, 0, 10)}, fits: any, stuck: true}},
		"a client reads": {
			{after: 0, conns: []*natsserver.ConnInfo{conn(1, 10<<20, 0)}, fits: 2 << 20, stuck: false},
			{after: time.Second, conns: []*natsserver.ConnInfo{conn(1, 10<<20, 1)}, fits: 2 << 20, stuck: false},
		},
		"a client reads nothing": {
			{after: 0, conns: []*natsserver.ConnInfo{conn(1, 10<<20, 0)}, fits: 2 << 20, stuck: false},
			{after: stuckFor, conns: []*natsserver.ConnInfo{conn(1, 10<<20, 0)}, fits: 2 << 20, stuck: false},
			{after: stuckFor + 1, conns: []*natsserver.ConnInfo{conn(1, 10<<20, 0)}, fits: most - 10<<20, stuck: false},
			{after: 2 * stuckFor, conns: []*natsserver.ConnInfo{conn(1, 10<<20, 0), conn(2, 5<<20, 0)}, fits: 7 << 20,
				stuck: false},
			{after: 3 * stuckFor, conns: []*natsserver.ConnInfo{conn(1, 9<<20, 1<<20)}, fits: 3 << 20, stuck: false},
		},
		"clients that read nothing fill the memory": {
			{after: 0, conns: []*natsserver.ConnInfo{conn(1, most, 0)}, fits: 0, stuck: false},
			{after: writeDeadline, conns: []*natsserver.ConnInfo{conn(1, most, 0)}, fits: 0, stuck: false},
			{after: writeDeadline + 1, conns: []*natsserver.ConnInfo{conn(1, most, 0)}, fits: 0, stuck: true},
		},
	} {
		f := newFlow(most/7*8, writeDeadline)
		f.most, f.grew = most, start
		for i, l := range looks {
			if stuck := f.look(l.conns, start.Add(l.after)); stuck != l.stuck {
				t.Errorf("%s, look %d: stuck %v", name, i, stuck)
			}
			if l.fits > 0 && !f.fits(l.fits) {
				t.Errorf("%s, look %d: %d bytes do not fit", name, i, l.fits)
			}
			if l.fits < any && f.fits(l.fits+1) {
				t.Errorf("%s, look %d: more than %d bytes fit", name, i, l.fits)
			}
		}
	}
}

// TestSilentClients: connections that say nothing keep others out only for the time that they
// may take to introduce themselves.
func TestSilentClients(t *testing.T) {
	t.Parallel() // it waits
	const most = 2
	s := startServer(t, ServerOptions{Name: "a", Connections: most})
	own := connect(t, Options{Server: s})
	got := listen(t, own, "x")
	for range 2 * (most + ownClients + moreClients) {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.ClientURL(), "nats://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	eventually(t, "all places taken", func() bool { return s.s.NumClients() == most+ownClients+moreClients })
	eventually(t, "a client to be accepted", func() bool {
		c, err := Connect(within(t), Options{URLs: []string{s.ClientURL()}, Ping: slowPing})
		if err != nil {
			return false
		}
		defer c.Close()
		return c.Send("x", "", message(3, 1)) == nil && c.Flush(within(t)) == nil
	})
	receive(t, got)
}

// TestBacklogOfRequests: the backlog of requests is bounded in bytes.
func TestBacklogOfRequests(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	server := connect(t, Options{Server: s, Backlog: 64 << 10})
	sub, err := server.Serve("x", "", func(m []byte) []byte { return m })
	if err != nil {
		t.Fatal(err)
	}
	_, bytes, err := sub.closer.(*natsSubscription).sub.PendingLimits()
	if err != nil || bytes != 64<<10 {
		t.Error(bytes, err)
	}
	messages, err := server.Subscribe("y", func(Message) {})
	if err != nil {
		t.Fatal(err)
	}
	if _, bytes, err = messages.closer.(*natsSubscription).sub.PendingLimits(); err != nil || bytes != 64<<10 {
		t.Error(bytes, err)
	}
}
