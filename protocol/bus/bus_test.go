package bus

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

func TestMain(m *testing.M) {
	testkit.AtOnce(6) // they wait for what servers notice after a time
	goleak.VerifyTestMain(m)
}

// patience bounds every wait of these tests.
const patience = time.Minute

// slowPing keeps a loaded machine from losing connections that a test needs.
const slowPing = 5 * time.Second

func startServer(t testing.TB, o ServerOptions) *Server {
	t.Helper()
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if o.Ping == 0 {
		o.Ping = slowPing
	}
	s, err := StartServer(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// counts is a Traffic that a test can read.
type counts struct{ sent, received, reconnected, disconnected atomic.Int64 }

func (c *counts) Sent(n int)     { c.sent.Add(int64(n)) }
func (c *counts) Received(n int) { c.received.Add(int64(n)) }
func (c *counts) Reconnected()   { c.reconnected.Add(1) }
func (c *counts) Disconnected()  { c.disconnected.Add(1) }

func connect(t testing.TB, o Options) *Conn {
	t.Helper()
	if o.Ping == 0 {
		o.Ping = slowPing
	}
	c, err := Connect(within(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// within is a context that ends with the test's patience.
func within(t testing.TB) context.Context {
	return testkit.Context(t)
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	testkit.Until(t, what, cond)
}

// receive waits for the next message.
func receive(t testing.TB, ch <-chan Message) Message {
	t.Helper()
	return testkit.Receive(t, "a message", ch)
}

func listen(t testing.TB, c *Conn, subject string) <-chan Message {
	t.Helper()
	ch := make(chan Message, 1024)
	if _, err := c.Subscribe(subject, func(m Message) { ch <- m }); err != nil {
		t.Fatal(err)
	}
	return ch
}

// message makes n bytes that begin like a message of the protocol and differ by
// seed.
func message(n int, seed byte) []byte {
	b := make([]byte, n, n+8)
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(b[i:i+8], r.Uint64())
	}
	b[0], b[1] = protocol.Version, 200
	return b
}

// pair starts two clustered servers and waits for their route.
func pair(t testing.TB) (a, b *Server) {
	t.Helper()
	a = startServer(t, ServerOptions{Name: "a", Cluster: "c", RoutePort: -1})
	b = startServer(t, ServerOptions{Name: "b", Cluster: "c", Routes: []string{a.RouteURL()}})
	eventually(t, "a route", func() bool { return a.s.NumRoutes() == 1 && b.s.NumRoutes() == 1 })
	return a, b
}

func TestStartWithoutRoutes(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	if s.RouteURL() != "" {
		t.Errorf("a server without routes takes them at %s", s.RouteURL())
	}
	if want := fmt.Sprintf("nats://127.0.0.1:%d", s.ClientPort()); s.ClientURL() != want {
		t.Errorf("ClientURL = %s, want %s", s.ClientURL(), want)
	}
}

func TestAllInterfacesAreReachedByLoopback(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a", Host: "0.0.0.0"})
	if !strings.HasPrefix(s.ClientURL(), "nats://127.0.0.1:") {
		t.Errorf("ClientURL = %s", s.ClientURL())
	}
	connect(t, Options{URLs: []string{s.ClientURL()}})
}

func TestTakenPortIsNamed(t *testing.T) {
	l := testkit.Listen(t)
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr)
	for what, o := range map[string]ServerOptions{
		"NATS clients": {ClientPort: taken.Port},
		"NATS routes":  {RoutePort: taken.Port, Routes: []string{"nats://127.0.0.1:1"}},
	} {
		o.Name, o.Host, o.Cluster = "a", "127.0.0.1", "c"
		s, err := StartServer(o)
		if err == nil {
			s.Close()
			t.Fatalf("%s: started on a port that is taken", what)
		}
		for _, want := range []string{what, taken.String(), "in use"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
	}
}

func TestBadRouteIsNamed(t *testing.T) {
	_, err := StartServer(ServerOptions{Name: "a", Host: "127.0.0.1", Routes: []string{"here:1"}})
	if err == nil || !strings.Contains(err.Error(), `"here:1"`) {
		t.Errorf("%v", err)
	}
}

func TestNobodyAnswers(t *testing.T) {
	url := "nats://" + testkit.FreeAddress(t)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := Connect(ctx, Options{URLs: []string{url}})
	if err == nil || !strings.Contains(err.Error(), "no NATS server answers at "+url) ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

// A listener that never speaks NATS must not hold Connect beyond its deadline.
func TestMuteServer(t *testing.T) {
	l := testkit.Listen(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(io.Discard, c); c.Close() }()
		}
	}()
	defer func() { l.Close(); <-done }()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := Connect(ctx, Options{URLs: []string{"nats://" + l.Addr().String()}}); err == nil {
		t.Error("connected")
	}
	if d := time.Since(began); d > patience {
		t.Errorf("gave up after %v", d)
	}
}

func TestBadURLs(t *testing.T) {
	for _, urls := range [][]string{nil, {"nats://"}, {"nats://a:b:c"}, {""}} {
		if _, err := Connect(context.Background(), Options{URLs: urls}); err == nil {
			t.Errorf("%q: connected", urls)
		}
	}
}
