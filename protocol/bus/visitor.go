package bus

import (
	"fmt"
	"net"

	"github.com/coppice-ldl/coppice/internal/certs"
)

// visitor is a connection of a client of another process. What the server reads of it has
// come through the intake.
type visitor struct {
	net.Conn // with TLS, or tcp
	tcp      *net.TCPConn
	intake   *intake
	sender   *sender
	said     said
}

// Read implements io.Reader. Who reads has taken what was read before.
func (v *visitor) Read(p []byte) (int, error) {
	v.intake.taken(v.sender)
	n, err := v.Conn.Read(p)
	ended, bad := v.said.next(p[:n])
	if bad != nil {
		return 0, fmt.Errorf("%v: %w", v.RemoteAddr(), bad)
	}
	if ended > 0 && !v.intake.enter(v.sender, ended) {
		return 0, net.ErrClosed
	}
	return n, err
}

// Close implements io.Closer. It does not wait, and sends no close_notify of TLS.
func (v *visitor) Close() error {
	v.intake.leave(v.sender)
	return v.tcp.Close()
}

// peer returns who connected. In the clear nobody knows.
func (v *visitor) peer() (id certs.Identity, ok bool) {
	secure, ok := v.Conn.(*certs.Conn)
	if !ok {
		return id, false
	}
	p := secure.Peer()
	return p.Identity, p.Err == nil
}

// plain is a visitor in the clear. The library writes several buffers to a TCP connection at
// once, and it knows one by its methods.
type plain struct {
	*net.TCPConn
	visitor *visitor
}

// Read implements io.Reader.
func (p plain) Read(b []byte) (int, error) { return p.visitor.Read(b) }

// Close implements io.Closer.
func (p plain) Close() error { return p.visitor.Close() }
