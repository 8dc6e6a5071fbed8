package coordinator

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

// bounded serves HTTP on at most so many connections.
func bounded(t *testing.T, most int) (*connections, string) {
	t.Helper()
	l := testkit.Listen(t)
	c := boundConnections(l, most)
	release := make(chan struct{})
	server := &http.Server{ConnState: c.follow, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			w.(http.Flusher).Flush()
			<-release
		}
	})}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(c) }()
	t.Cleanup(func() { close(release); server.Close(); <-done })
	return c, l.Addr().String()
}

func call(t *testing.T, address, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(testkit.Limit))
	io.WriteString(conn, text)
	return conn
}

// replies reports whether an answer comes; the connection may be closed instead.
func replies(conn net.Conn) bool {
	b := make([]byte, len("HTTP/1.1 200"))
	_, err := io.ReadFull(conn, b)
	return err == nil && string(b) == "HTTP/1.1 200"
}

const (
	asks  = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	waits = "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"
)

// TestIdleConnectionsMakeRoom: connections without a complete request make room for new
// ones, the oldest first. Connections with a request stay.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	c, address := bounded(t, 10)
	busy := call(t, address, waits)
	if !replies(busy) {
		t.Fatal("no answer")
	}
	for i := range 100 {
		call(t, address, []string{"", "GET / HTTP/1.1\r\nHos"}[i%2])
	}
	first := call(t, address, asks)
	if !replies(first) {
		t.Fatal("no answer among connections that say nothing")
	}
	testkit.Until(t, "the connection that was answered is idle", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.idle.Len() == 9
	})
	open, closed := c.count()
	if open > 10 || closed < 90 {
		t.Errorf("%d connections are open, %d were closed", open, closed)
	}
	var all []net.Conn
	for range 9 {
		conn := call(t, address, waits)
		if !replies(conn) {
			t.Fatal("no answer")
		}
		all = append(all, conn)
	}
	if replies(call(t, address, asks)) {
		t.Error("one more than may be, though all have requests")
	}
	all[0].Close() // its handler does not know
	if open, _ := c.count(); open > 10 {
		t.Errorf("%d connections are open", open)
	}
}

// TestConnectionsAreCounted: after its request a connection is idle again, and a closed
// connection makes room.
func TestConnectionsAreCounted(t *testing.T) {
	c, address := bounded(t, 2)
	idle := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.idle.Len()
	}
	var both []net.Conn
	for i := range 2 {
		conn := call(t, address, asks)
		if !replies(conn) {
			t.Fatal("no answer")
		}
		testkit.Until(t, "idle", func() bool { return idle() == i+1 })
		both = append(both, conn)
	}
	one, two := both[0], both[1]
	if third := call(t, address, asks); !replies(third) {
		t.Fatal("no answer to a third")
	}
	if _, err := io.Copy(io.Discard, one); err != nil {
		t.Errorf("the oldest is still open: %v", err)
	}
	if open, closed := c.count(); open != 2 || closed != 1 {
		t.Errorf("%d are open, %d were closed", open, closed)
	}
	two.Close()
	testkit.Until(t, "one fewer", func() bool { open, _ := c.count(); return open == 1 })
}
