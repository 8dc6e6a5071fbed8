package bus

import (
	"fmt"
	"net"
)

// visitor is a connection of a client of another process. What the server reads of it has
// come through the intake.
type visitor struct {
	*net.TCPConn
	intake *intake
	sender *sender
	said   said
}

// Read implements io.Reader. Who reads has taken what was read before.
func (v *visitor) Read(p []byte) (int, error) {
	v.intake.taken(v.sender)
	n, err := v.TCPConn.Read(p)
	ended, bad := v.said.next(p[:n])
	if bad != nil {
		return 0, fmt.Errorf("%v: %w", v.RemoteAddr(), bad)
	}
	if ended > 0 && !v.intake.enter(v.sender, ended) {
		return 0, net.ErrClosed
	}
	return n, err
}

// Close implements io.Closer.
func (v *visitor) Close() error {
	v.intake.leave(v.sender)
	return v.TCPConn.Close()
}
