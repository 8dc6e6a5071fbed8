package bus

import (
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// However fast connections come, no more of them are open than may be, those that are still
// being refused included; one that closes makes a place for another.
func TestDoor(t *testing.T) {
	const most, hands, each = 8, 8, 200
	s := startServer(t, ServerOptions{Name: "a", Connections: most})
	before := descriptors(t)
	var tasks sync.WaitGroup
	var open atomic.Int64 // of this test: its own are descriptors as well
	var worst atomic.Int64
	address := strings.TrimPrefix(s.ClientURL(), "nats://")
	for range hands {
		tasks.Go(func() {
			for range each {
				open.Add(1)
				c, err := net.Dial("tcp", address)
				if err == nil {
					worst.Store(max(worst.Load(), int64(descriptors(t)-before)-open.Load()))
					c.Close()
				}
				open.Add(-1)
			}
		})
	}
	tasks.Wait()
	if n := worst.Load(); n > most+2*hands { // those of which the close is under way, and the looks of this test
		t.Errorf("%d connections at once, at most %d may be", n, most)
	}
	eventually(t, "a place", func() bool {
		c, err := Connect(within(t), Options{URLs: []string{s.ClientURL()}, Ping: slowPing})
		if err != nil {
			return false
		}
		c.Close()
		return true
	})
	if s.Load().Refused == 0 {
		t.Error("none was refused")
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skip("this system does not list descriptors:", err)
	}
	return len(entries)
}

// Where clients of other processes have every place, the connection of the server's own
// process comes back when it is lost.
func TestOwnConnectionHasRoom(t *testing.T) {
	const most = 4
	s := startServer(t, ServerOptions{Name: "a", Connections: most})
	own := connect(t, Options{Server: s})
	for range most {
		deaf(t, s, "x")
	}
	eventually(t, "all places taken", func() bool { return s.s.NumClients() == most+1 })
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
	if n := s.s.NumClients(); n != most+1 {
		t.Errorf("%d clients, %d others stay", n, most)
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
