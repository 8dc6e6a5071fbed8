package bus

import (
	"cmp"
	"errors"
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
func deaf(t *testing.T, s *Server, subject string) net.Conn { return deafNamed(t, s, "", subject) }

func deafNamed(t *testing.T, s *Server, name, subject string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.ClientURL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	say := "CONNECT {\"verbose\":false,\"pedantic\":false,\"name\":\"" + name + "\"}\r\n"
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
	var most int64
	for range sends {
		if err := from.Send("x", "", msg); err != nil {
			t.Fatal(err)
		}
		most = max(most, waitingIn(t, s))
	}
	if most > bound+int64((many+1)*len(msg)) { // and what the server is taking in
		t.Errorf("%d bytes waited, at most %d may; %d clients were closed", most, bound, s.Load().Closed)
	}
	eventually(t, "all closed", func() bool { s.Relieve(); return s.s.NumClients() <= 2 })
	eventually(t, "all read", func() bool { return n.Load() == sends })
}

// slow connects and subscribes, and reads some 30 MB a second; read counts them.
func slow(t *testing.T, s *Server, subject string, read *atomic.Int64) {
	t.Helper()
	c := deaf(t, s, subject)
	_ = c.(*net.TCPConn).SetReadBuffer(512 << 10)
	go func() {
		b := make([]byte, 64<<10)
		for {
			n, err := c.Read(b)
			read.Add(int64(n))
			if err != nil {
				return
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
}

// TestLongMessagesWait: messages that are sent faster than clients read wait for them, within the bound, and nobody is closed;
// a client that reads nothing is closed all the same, and holds nobody up for long.
func TestLongMessagesWait(t *testing.T) {
	const bound, sends, size = 8 << 20, 4, 5 << 20
	s := startServer(t, ServerOptions{Name: "a", Pending: bound})
	from := connect(t, Options{Server: s})
	var read atomic.Int64
	for _, subject := range []string{"x", "y"} {
		slow(t, s, subject, &read)
	}
	eventually(t, "subscribed", func() bool { return s.s.NumSubscriptions() >= 2 })
	msg := message(size, 1)
	for range sends {
		for _, subject := range []string{"x", "y"} {
			if err := from.Send(subject, "", msg); err != nil {
				t.Fatal(err)
			}
			if n := waitingIn(t, s); n > bound {
				t.Errorf("%d bytes wait, at most %d may", n, bound)
			}
		}
	}
	eventually(t, "all read", func() bool { return read.Load() >= 2*sends*size })
	if s.Relieve(); s.Load().Closed > 0 {
		t.Errorf("%d clients were closed", s.Load().Closed)
	}
	deaf(t, s, "z")
	eventually(t, "subscribed", func() bool { return s.s.NumSubscriptions() >= 3 })
	for range 3 {
		if err := from.Send("z", "", msg); err != nil {
			t.Fatal(err)
		}
	}
	if err := from.Send("x", "", msg); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what is sent beside it to be read", func() bool { return read.Load() >= (2*sends+1)*size })
	eventually(t, "the deaf one to be closed", func() bool { return s.s.NumClients() == 3 })
}

// waitingIn returns the bytes that wait for all clients of a server.
func waitingIn(t *testing.T, s *Server) (bytes int64) {
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
		more  int64
		want  []uint64
	}{
		"room for all":        {&relief{pending: 100}, []*natsserver.ConnInfo{conn(1, 60, 1, 0), conn(2, 40, 1, 0)}, 0, nil},
		"room for more":       {&relief{pending: 100}, []*natsserver.ConnInfo{conn(1, 60, 1, 0), conn(2, 40, 1, 0), conn(3, 0, 1, 0)}, 81, []uint64{1, 2}},
		"more than possible":  {&relief{pending: 100}, []*natsserver.ConnInfo{conn(1, 60, 1, 0), conn(2, 0, 1, 0)}, 1000, []uint64{1}},
		"the greatest":        {&relief{pending: 100}, []*natsserver.ConnInfo{conn(1, 60, 1, 0), conn(2, 41, 1, 0)}, 0, []uint64{1}},
		"not this process":    {&relief{pending: 100}, []*natsserver.ConnInfo{inside, conn(2, 41, 1, 0)}, 0, nil},
		"beside this process": {&relief{pending: 100}, []*natsserver.ConnInfo{inside, conn(2, 60, 1, 0), conn(3, 41, 1, 0)}, 0, []uint64{2}},
		"few connections":     {&relief{pending: 100, connections: 8}, []*natsserver.ConnInfo{conn(1, 0, 0, time.Hour), conn(2, 0, 0, time.Hour)}, 0, nil},
		"idle ones, by age":   {&relief{pending: 100, connections: 4}, []*natsserver.ConnInfo{conn(1, 0, 0, 5*time.Second), conn(2, 0, 0, time.Hour), conn(3, 0, 1, time.Hour), conn(4, 0, 0, time.Second)}, 0, []uint64{2}},
		"none that listens":   {&relief{pending: 100, connections: 1}, []*natsserver.ConnInfo{conn(1, 0, 1, time.Hour), conn(2, 0, 2, time.Hour)}, 0, nil},
		"each only once":      {&relief{pending: 100, connections: 2}, []*natsserver.ConnInfo{conn(1, 101, 0, time.Hour), conn(2, 0, 0, time.Hour)}, 0, []uint64{1}},
		"each, without bound": {&relief{pending: 100}, []*natsserver.ConnInfo{conn(1, 101, 0, time.Hour), conn(2, 0, 0, time.Hour)}, 0, []uint64{1}},
	} {
		var got []uint64
		for _, c := range c.r.excess(c.conns, c.more, now) {
			got = append(got, c.Cid)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// Of one name the clients stay for which least waits, and of those the oldest.
func TestNamesakes(t *testing.T) {
	var conns []*natsserver.ConnInfo
	for i, pending := range []int{90, 80, 0, 0, 0, 0, 0} {
		conns = append(conns, &natsserver.ConnInfo{Cid: uint64(i + 1), IP: "10.0.0.1", Name: "w", Pending: pending, Start: time.Unix(int64(i), 0)})
	}
	for _, name := range []string{"", "v"} {
		conns = append(conns, &natsserver.ConnInfo{Cid: 100, IP: "10.0.0.1", Name: name})
	}
	var got []uint64
	for _, c := range namesakes(conns) {
		got = append(got, c.Cid)
	}
	if want := []uint64{1, 2, 7}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A client that is closed for what waits for it is gone at once, with what waits: it is not
// written to until it has read nothing for the time that writing may take.
func TestDroppedAtOnce(t *testing.T) {
	const bound = 8 << 20
	s := startServer(t, ServerOptions{Name: "a", Pending: bound})
	from := connect(t, Options{Server: s})
	c := deaf(t, s, "x")
	eventually(t, "subscribed", func() bool { return s.s.GlobalAccount().Interest("x") == 1 })
	began, stuck := time.Now(), time.Time{}
	eventually(t, "closed", func() bool {
		if err := from.Send("x", "", message(256<<10, 1)); err != nil {
			t.Fatal(err)
		}
		if stuck.IsZero() && waitingIn(t, s) > 0 {
			stuck = time.Now()
		}
		return s.Load().Closed == 1
	})
	eventually(t, "the end of the connection", func() bool {
		_, err := io.WriteString(c, "PONG\r\n")
		return err != nil
	})
	if took := time.Since(cmp.Or(stuck, began)); took > writeDeadline/2 {
		t.Errorf("it was closed %v after it had read nothing", took)
	}
}

// A message that would have to wait more often than there is room for is not sent, and one
// that fits is.
func TestTooManyListeners(t *testing.T) {
	const bound = 4 << 20
	s := startServer(t, ServerOptions{Name: "a", Pending: bound})
	from := connect(t, Options{Server: s})
	for range 20 {
		deaf(t, s, "x")
	}
	eventually(t, "subscribed", func() bool { return s.s.GlobalAccount().Interest("x") == 20 })
	if err := from.Send("x", "", message(256<<10, 1)); !errors.Is(err, ErrListeners) {
		t.Error(err)
	}
	for range 100 {
		if err := from.Send("x", "", message(128<<10, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if s.Load().Closed == 0 {
		t.Error("nobody was closed")
	}
}

// Connections that say nothing do not keep others out for longer than they may take
// to introduce themselves, and those that listen to nothing make room.
func TestCrowd(t *testing.T) {
	t.Parallel() // it waits
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
	if n := s.s.NumClients(); n > most+1 { // and its own
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
