package bus

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net"
	"net/netip"
	"reflect"
	"sync"
	"time"
	"unsafe"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/slowlink"
)

// door is the listener for clients. At most so many of the connections that it has accepted
// are open: one more is closed before the server hears of it. So descriptors, and what a
// server does for each connection before it refuses one, are bounded however fast they come.
// Their messages go through the intake.
type door struct {
	net.Listener
	most   int
	intake *intake

	mu      sync.Mutex
	open    map[netip.AddrPort]*visitor // by the address of the client; some are closed by now
	look    int                         // look which are closed when there are so many
	looked  time.Time
	refused uint64
}

// lookRarely is the least time between two looks at which connections are closed, where
// many come that find no place: a look takes longer than to refuse one.
const lookRarely = 10 * time.Millisecond

// leastLook is the least number of connections at which it is looked which are closed.
const leastLook = 64

// openDoor listens at the address of a server. The connections are bounded by o.Connections;
// 0: no bound. Those in the handshake of TLS are bounded by the listener below.
func openDoor(o *ServerOptions, port int, in *intake) (*door, error) {
	host := o.Host
	if host == "" {
		host = natsserver.DEFAULT_HOST
	}
	config := net.ListenConfig{KeepAlive: -1} // NATS has its own pings
	l, err := config.Listen(context.Background(), "tcp", place(host, port))
	if err != nil {
		return nil, &ListenError{Address: place(host, port), Err: err}
	}
	if o.TLS != nil {
		l = certs.Listen(slowlink.Listener{Listener: l}, o.TLS, certs.Terms{Port: certs.PortClients, Within: o.Handshake, Log: o.logger()})
	}
	return &door{Listener: l, most: cmp.Or(o.Connections, math.MaxInt), intake: in, look: leastLook, open: make(map[netip.AddrPort]*visitor)}, nil
}

// tcpOf returns the connection below TLS.
func tcpOf(c net.Conn) *net.TCPConn {
	if secure, ok := c.(*certs.Conn); ok {
		c = secure.Raw().(*slowlink.Conn).Conn
	}
	return c.(*net.TCPConn)
}

// give has a server, which is not started yet, take the connections of clients from the door.
// The library has no option for it, but takes a listener that is there before it listens.
func (d *door) give(s *natsserver.Server) error {
	f := reflect.ValueOf(s).Elem().FieldByName("listener")
	if !f.IsValid() || f.Type() != reflect.TypeFor[net.Listener]() {
		return fmt.Errorf("the NATS library %s does not accept a listener", natsserver.VERSION)
	}
	*(*net.Listener)(unsafe.Pointer(f.UnsafeAddr())) = d
	return nil
}

// Accept implements net.Listener.
func (d *door) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		v := d.admit(c, time.Now())
		switch tcp, clear := c.(*net.TCPConn); {
		case v == nil:
			end(tcpOf(c))
		case clear:
			return plain{tcp, v}, nil
		default:
			return v, nil
		}
	}
}

// admit lets a connection in, or not: then it returns nil.
func (d *door) admit(c net.Conn, now time.Time) *visitor {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.open) >= min(d.most, d.look) && now.Sub(d.looked) >= lookRarely {
		d.forget()
		d.looked, d.look = now, max(leastLook, 2*len(d.open))
	}
	if len(d.open) >= d.most {
		d.refused++
		return nil
	}
	v := &visitor{Conn: c, tcp: tcpOf(c), intake: d.intake, sender: newSender()}
	d.open[peer(c)] = v
	return v
}

// who returns the identity of the client at an address.
func (d *door) who(at net.Addr) (id certs.Identity, ok bool) {
	from, ok := at.(*net.TCPAddr)
	if !ok {
		return id, false
	}
	d.mu.Lock()
	v := d.open[unmapped(from.AddrPort())]
	d.mu.Unlock()
	if v == nil {
		return id, false
	}
	return v.peer()
}

// forget forgets connections that are closed.
func (d *door) forget() {
	for from, v := range d.open {
		if closed(v.tcp) {
			delete(d.open, from)
		}
	}
}

// closed reports whether this process has closed a connection.
func closed(c *net.TCPConn) bool {
	raw, err := c.SyscallConn()
	return err != nil || raw.Control(func(uintptr) {}) != nil
}

// cut closes connections of clients, by their addresses, at once: who writes to one or reads
// from it has an error, and what the system has not sent is dropped.
func (d *door) cut(peers []netip.AddrPort) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range peers {
		if v := d.open[p]; v != nil {
			v.intake.leave(v.sender)
			end(v.tcp)
			delete(d.open, p)
		}
	}
}

// count returns how many connections were refused.
func (d *door) count() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refused
}

// end closes a connection; nothing of it stays with the system.
func end(c *net.TCPConn) {
	_ = c.SetLinger(0) // an error: it is closed
	c.Close()
}

func peer(c net.Conn) netip.AddrPort { return unmapped(c.RemoteAddr().(*net.TCPAddr).AddrPort()) }

// unmapped is an address without what says how it was reached.
func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
