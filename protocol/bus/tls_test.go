package bus

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/certtest"
	"github.com/coppice-ldl/coppice/internal/certs"
)

// secureServer starts a server with TLS, and routes to others.
func secureServer(t *testing.T, source *certs.Source, routes ...string) *Server {
	t.Helper()
	return startServer(t, ServerOptions{Name: source.Identity().Name, RoutePort: -1, Cluster: "test", Routes: routes,
		TLS: source, Handshake: 10 * time.Second})
}

// TestSecureMessages: messages of all sizes pass between a client of one server and a
// connection within the process of another. A change of routes disconnects nobody.
func TestSecureMessages(t *testing.T) {
	t.Parallel()
	a := certtest.New(t)
	one := secureServer(t, a.Source(certs.Coordinator, "a"))
	two := secureServer(t, a.Source(certs.Coordinator, "b"), one.RouteURL())
	eventually(t, "routes", func() bool { return len(one.Routes()) == 1 && len(two.Routes()) == 1 })
	lost := new(counts)
	own := connect(t, Options{Server: one})
	client := connect(t, Options{URLs: []string{two.ClientURL()}, Name: "w", TLS: a.Source(certs.Worker, "w"),
		Traffic: lost})
	received := make(chan Message, 8)
	if _, err := own.Subscribe("x", func(m Message) { received <- m }); err != nil {
		t.Fatal(err)
	}
	if err := own.Flush(within(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the interest of the other server", func() bool { return two.s.GlobalAccount().Interest("x") > 0 })
	send := func() {
		t.Helper()
		for _, size := range []int{2, 1 << 10, 3 << 20} {
			want := message(size, byte(size))
			if err := client.Send("x", "", want); err != nil {
				t.Fatal(err)
			}
			if got := testkit.Receive(t, "a message", received); !bytes.Equal(got.Data, want) {
				t.Errorf("a message of %d bytes arrives with %d bytes", size, len(got.Data))
			}
		}
	}
	send()
	if err := one.SetRoutes([]string{two.RouteURL()}); err != nil {
		t.Fatal(err)
	}
	if err := two.SetRoutes(nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "routes", func() bool { return len(one.Routes()) == 1 && len(two.Routes()) == 1 })
	send()
	if lost.disconnected.Load() > 0 {
		t.Errorf("the client was disconnected %d times", lost.disconnected.Load())
	}
}

// TestCertificateEnds: the connection of a client ends with its certificate, and the server
// refuses the certificate from then on. With a new certificate the client comes back.
func TestCertificateEnds(t *testing.T) {
	t.Parallel() // it waits
	a := certtest.New(t)
	s := secureServer(t, a.Source(certs.Coordinator, "a"))
	dir := a.Folder(certs.Worker, "w")
	leaf, err := a.Issue(dir, certs.Identity{Role: certs.Worker, Name: "w"}, nil, 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	source, err := certs.Open(dir, nil)
	if err != nil {
		t.Skip("the machine is too slow: ", err)
	}
	other := new(counts)
	connect(t, Options{URLs: []string{s.ClientURL()}, Name: "v", TLS: a.Source(certs.Worker, "v"), Traffic: other})
	n := new(counts)
	ctx, cancel := context.WithDeadline(within(t), leaf.NotAfter)
	defer cancel()
	c, err := Connect(ctx, Options{URLs: []string{s.ClientURL()}, Name: "w", TLS: source, Ping: slowPing, Traffic: n})
	if err != nil {
		t.Skip("the machine is too slow: ", err)
	}
	defer c.Close()
	eventually(t, "the end of the connection", func() bool { return n.disconnected.Load() == 1 })
	if early := time.Until(leaf.NotAfter); early > 0 {
		t.Errorf("the connection ends %v before its certificate", early)
	}
	ctx, cancel = context.WithTimeout(within(t), time.Second)
	defer cancel()
	if again, err := Connect(ctx, Options{URLs: []string{s.ClientURL()}, Name: "w", TLS: source,
		Ping: slowPing}); err == nil {
		again.Close()
		t.Error("the server accepts a certificate after its end")
	}
	if n.reconnected.Load() > 0 || other.disconnected.Load() > 0 {
		t.Errorf("the client came back %d times; another client was disconnected %d times", n.reconnected.Load(),
			other.disconnected.Load())
	}
	a.Folder(certs.Worker, "w")
	source.Look()
	eventually(t, "the client to come back with a new certificate", func() bool { return c.Connected() })
}

// TestConnectionsWithoutHandshake: connections that do not finish their handshake take no places of clients.
func TestConnectionsWithoutHandshake(t *testing.T) {
	a := certtest.New(t)
	const most, handshake = 1, time.Minute
	s := startServer(t, ServerOptions{Name: "a", Connections: most, TLS: a.Source(certs.Coordinator, "a"),
		Handshake: handshake})
	for range 2 * (most + ownClients + moreClients) {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.ClientURL(), "nats://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	began := time.Now()
	connect(t, Options{URLs: []string{s.ClientURL()}, Name: "w", TLS: a.Source(certs.Worker, "w")})
	connect(t, Options{Server: s})
	if took := time.Since(began); took > handshake/2 {
		t.Errorf("the client had to wait for %v", took)
	}
}

// TestExternalServer: an external server with handshake_first takes the certificates of a
// cluster.
func TestExternalServer(t *testing.T) {
	a := certtest.New(t)
	config := a.Source(certs.Coordinator, "nats").Mutual(certs.PortClients)
	s, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true,
		TLSConfig: config, TLSHandshakeFirst: true, TLSTimeout: 10})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.Shutdown()
	if !s.ReadyForConnections(testkit.Limit) {
		t.Fatal("the server does not start")
	}
	url := "nats://" + strings.TrimPrefix(strings.TrimPrefix(s.ClientURL(), "nats://"), "tls://")
	c := connect(t, Options{URLs: []string{url}, TLS: a.Source(certs.Coordinator, "a")})
	received := make(chan Message, 1)
	if _, err := c.Subscribe("x", func(m Message) { received <- m }); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(within(t)); err != nil {
		t.Fatal(err)
	}
	want := message(64, 7)
	other := connect(t, Options{URLs: []string{url}, TLS: a.Source(certs.Worker, "w")})
	if err := other.Send("x", "", want); err != nil {
		t.Fatal(err)
	}
	if got := testkit.Receive(t, "a message", received); !bytes.Equal(got.Data, want) {
		t.Errorf("%q arrives", got.Data)
	}
}

// TestNamesInCertificates: a worker connects under the name in its certificate only, and a
// worker of a pool under a name of its pool. The server accepts no client in the clear.
func TestNamesInCertificates(t *testing.T) {
	t.Parallel()
	a := certtest.New(t)
	s := secureServer(t, a.Source(certs.Coordinator, "a"))
	for _, c := range []struct {
		source *certs.Source
		name   string
		good   bool
	}{
		{a.Source(certs.Worker, "w"), "w", true}, {a.Source(certs.Worker, "w"), "v", false}, {a.Source(certs.Worker, "w"),
			"", false},
		{a.Source(certs.Pool, "gpu"), "gpu-1", true}, {a.Source(certs.Pool, "gpu"), "gpu", false},
		{a.Source(certs.Pool, "gpu"), "w", false},
		{a.Source(certs.User, "ana"), "w", false}, {certtest.New(t).Source(certs.Worker, "w"), "w", false}, {nil, "w", false},
	} {
		long := patience
		if !c.good { // it is tried again all the time
			long = 2 * time.Second
		}
		ctx, cancel := context.WithTimeout(within(t), long)
		conn, err := Connect(ctx, Options{URLs: []string{s.ClientURL()}, Name: c.name, TLS: c.source, Ping: slowPing})
		if (err == nil) != c.good {
			t.Errorf("%v under the name %q: error %v", c.source, c.name, err)
		}
		if err == nil {
			conn.Close()
		}
		cancel()
	}
}
