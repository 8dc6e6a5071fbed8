package bus

import (
	"context"
	"fmt"
	"net"
	"reflect"
	"unsafe"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/slowlink"
)

// secured accepts clients after their handshake of TLS. NATS has options for TLS, but two
// reasons speak against them:
//   - A connection that does not finish its handshake would take one of ServerOptions.Connections.
//   - All that waits for a client would have to be written within writeDeadline. Below TLS,
//     package slowlink gives this time to each chunk.
type secured struct{ net.Listener }

// Accept implements net.Listener. The library finds the certificates in a connection of this type.
func (l secured) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return c.(*certs.Conn).Conn, nil
}

// listen has a server that is not started yet accept clients with TLS. The library has no option
// for a listener, but uses the listener in its private field.
func (o *ServerOptions) listen(s *natsserver.Server, address string) error {
	field := reflect.ValueOf(s).Elem().FieldByName("listener")
	if !field.IsValid() || field.Type() != reflect.TypeFor[net.Listener]() {
		return fmt.Errorf("the NATS library %s does not accept a listener", natsserver.VERSION)
	}
	config := net.ListenConfig{KeepAlive: -1} // NATS has its own pings
	l, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return &ListenError{Address: address, Err: err}
	}
	terms := certs.Terms{Port: certs.PortClients, Within: o.Handshake, Log: o.logger()}
	*(*net.Listener)(unsafe.Pointer(field.UnsafeAddr())) = secured{certs.Listen(slowlink.Listener{Listener: l}, o.TLS, terms)}
	return nil
}
