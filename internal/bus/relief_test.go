package bus

import (
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

// deaf connects and subscribes, says that it is alive, and reads nothing.
func deaf(t *testing.T, s *Server, subject string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.ClientURL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	say := "CONNECT {\"verbose\":false,\"pedantic\":false}\r\n"
	if subject != "" {
		say += "SUB " + subject + " 1\r\n"
	}
	if _, err := io.WriteString(c, say+"PING\r\n"); err != nil {
		t.Fatal(err)
	}
	return c
}

// What waits for clients that do not read stays within one bound of all, whatever is
// sent to them, and a client that reads misses nothing.
func TestDeafClientsAreClosed(t *testing.T) {
	const bound, sends = 16 << 20, 1000
	msg := message(64<<10, 1)
	s := startServer(t, ServerOptions{Name: "a", Pending: bound})
	from, to := connect(t, Options{Server: s}), connect(t, Options{URLs: []string{s.ClientURL()}})
	var n atomic.Int64
	if _, err := to.Subscribe("x", func(Message) { n.Add(1) }); err != nil {
		t.Fatal(err)
	}
	const many = 12
	for range many {
		deaf(t, s, "x")
	}
	eventually(t, "subscribed", func() bool { return s.s.NumSubscriptions() >= many+1 })
	s.Relieve()
	var most int64
	for range sends {
		if err := from.Send("x", "", msg); err != nil {
			t.Fatal(err)
		}
		most = max(most, waiting(t, s))
	}
	if most > bound+bound/2 {
		t.Errorf("%d bytes waited, at most %d may; %d clients were closed", most, bound, s.Load().Closed)
	}
	eventually(t, "all closed", func() bool { s.Relieve(); return s.s.NumClients() <= 2 })
	eventually(t, "all read", func() bool { return n.Load() == sends })
}

// waiting returns the bytes that wait for all clients.
func waiting(t *testing.T, s *Server) (bytes int64) {
	t.Helper()
	conns, err := s.s.Connz(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range conns.Conns {
		bytes += int64(c.Pending)
	}
	return bytes
}

// Those that take most are closed first, and no more of them than need be; where
// connections are short, those that listen to nothing and are not new, the oldest first.
func TestExcess(t *testing.T) {
	now := time.Unix(1000, 0)
	conn := func(cid uint64, pending, subs int, age time.Duration) *natsserver.ConnInfo {
		return &natsserver.ConnInfo{Cid: cid, IP: "10.0.0.1", Pending: pending, NumSubs: uint32(subs), Start: now.Add(-age)}
	}
	inside := conn(9, 70, 0, time.Hour)
	inside.IP = ""
	for what, c := range map[string]struct {
		r     *relief
		conns []*natsserver.ConnInfo
		want  []uint64
	}{
		"room for all":        {&relief{pending: 100}, []*natsserver.ConnInfo{conn(1, 60, 1, 0), conn(2, 40, 1, 0)}, nil},
		"the greatest":        {&relief{pending: 100}, []*natsserver.ConnInfo{conn(1, 60, 1, 0), conn(2, 41, 1, 0)}, []uint64{1}},
		"not this process":    {&relief{pending: 100}, []*natsserver.ConnInfo{inside, conn(2, 41, 1, 0)}, []uint64{2}},
		"few connections":     {&relief{pending: 100, connections: 8}, []*natsserver.ConnInfo{conn(1, 0, 0, time.Hour), conn(2, 0, 0, time.Hour)}, nil},
		"idle ones, by age":   {&relief{pending: 100, connections: 4}, []*natsserver.ConnInfo{conn(1, 0, 0, 5*time.Second), conn(2, 0, 0, time.Hour), conn(3, 0, 1, time.Hour), conn(4, 0, 0, time.Second)}, []uint64{2}},
		"none that listens":   {&relief{pending: 100, connections: 1}, []*natsserver.ConnInfo{conn(1, 0, 1, time.Hour), conn(2, 0, 2, time.Hour)}, nil},
		"each only once":      {&relief{pending: 100, connections: 2}, []*natsserver.ConnInfo{conn(1, 101, 0, time.Hour), conn(2, 0, 0, time.Hour)}, []uint64{1}},
		"each, without bound": {&relief{pending: 100}, []*natsserver.ConnInfo{conn(1, 101, 0, time.Hour), conn(2, 0, 0, time.Hour)}, []uint64{1}},
	} {
		if got := c.r.excess(c.conns, now); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// Connections that say nothing do not keep others out for longer than they may take
// to introduce themselves, and those that listen to nothing make room.
func TestCrowd(t *testing.T) {
	const most = 20
	s := startServer(t, ServerOptions{Name: "a", Connections: most})
	own := connect(t, Options{Server: s})
	got := listen(t, own, "x")
	for range most {
		deaf(t, s, "")
	}
	eventually(t, "a client let in", func() bool {
		s.Relieve()
		c, err := Connect(within(t), Options{URLs: []string{s.ClientURL()}, Ping: slowPing})
		if err != nil {
			return false
		}
		defer c.Close()
		return c.Send("x", "", message(3, 1)) == nil && c.Flush(within(t)) == nil
	})
	receive(t, got)
	if n := s.s.NumClients(); n > most {
		t.Errorf("%d clients, at most %d may be", n, most)
	}
}

// The backlog of requests is bounded in bytes.
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
