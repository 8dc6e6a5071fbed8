package bus

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

// TestOwnConnectionHasRoom: if clients of other processes try to take more places than there are, the
// connection of the server's own process comes back when it is lost.
func TestOwnConnectionHasRoom(t *testing.T) {
	const most = 4
	s := startServer(t, ServerOptions{Name: "a", Connections: most})
	own := connect(t, Options{Server: s})
	for range most {
		connect(t, Options{URLs: []string{s.ClientURL()}})
	}
	for range moreClients {
		deaf(t, s, "x", 4<<10)
	}
	eventually(t, "the other clients to be refused", func() bool {
		return s.Load().Refused == moreClients && s.s.NumClients() == most+ownClients
	})
	id, err := own.link.(*natsLink).nc.GetClientID()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.s.DisconnectClientByID(id); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its return", func() bool {
		now, err := own.link.(*natsLink).nc.GetClientID()
		return err == nil && now != id && own.Connected()
	})
	if n := s.Load().Clients; n != most {
		t.Errorf("%d clients, want %d", n, most)
	}
}

// A write to the server of this process has no deadline, however busy the machine: the
// connection is not lost by it.
func TestOwnConnectionIsPatient(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	pipe := &deadlines{provider: s.s}
	l := &natsLink{traffic: uncounted{}, log: (&ServerOptions{}).logger(), closed: make(chan struct{})}
	o := Options{Server: s, Ping: slowPing}
	nc, err := nats.Connect("", append(l.options(&o), inProcess(pipe)...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	pipe.set.Store(0) // those of the handshake do not count
	if err := nc.Publish("x", message(1<<20-1, 1)); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if pipe.set.Load() > 0 {
		t.Error("a write has a deadline")
	}
}

// deadlines makes connections to a server in this process and counts their write deadlines.
type deadlines struct {
	provider interface{ InProcessConn() (net.Conn, error) }
	set      atomic.Int64
}

func (d *deadlines) InProcessConn() (net.Conn, error) {
	c, err := d.provider.InProcessConn()
	return &deadlined{c, d}, err
}

type deadlined struct {
	net.Conn
	of *deadlines
}

func (c *deadlined) SetWriteDeadline(at time.Time) error {
	c.of.set.Add(1)
	return c.Conn.SetWriteDeadline(at)
}

// TestBurst: clients that send as much at once as may wait lose nothing, and the connection of
// this process stays.
func TestBurst(t *testing.T) {
	const senders = 16
	memory := 192 << 20
	if testkit.Race {
		memory = 24 << 20
	}
	s := startServer(t, ServerOptions{Name: "a", Pending: int64(memory)})
	var seen counts
	// a subscription drops what is beyond its backlog
	own := connect(t, Options{Server: s, Backlog: memory, Traffic: &seen})
	var got atomic.Int64
	if _, err := own.Subscribe("up.*", func(m Message) {
		got.Add(int64(len(m.Data)))
		own.Room().Reuse(m.Data)
	}); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1 << 20, memory * 7 / 8 / senders} {
		msg := message(size, 1)
		var tasks sync.WaitGroup
		got.Store(0)
		want := int64(0)
		for i := range senders {
			c := connect(t, Options{URLs: []string{s.ClientURL()}})
			n := memory * 7 / 8 / senders / size
			want += int64(n * size)
			tasks.Go(func() {
				for range n {
					if err := c.Send(fmt.Sprint("up.", i), "", msg); err != nil {
						t.Error(err)
					}
				}
			})
		}
		tasks.Wait()
		eventually(t, "all messages", func() bool { return got.Load() == want })
	}
	if n := s.s.NumSlowConsumers(); n != 0 || seen.disconnected.Load() != 0 {
		t.Errorf("%d slow consumers, %d connections lost", n, seen.disconnected.Load())
	}
}
