package bus

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

// pour sends messages of n bytes to a subject without pause, over so many connections, until
// the test ends.
func pour(t *testing.T, s *Server, connections, n int, subject string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var tasks sync.WaitGroup
	t.Cleanup(func() { cancel(); tasks.Wait() })
	say := fmt.Sprintf("PUB %s %d\r\n%s\r\nPONG\r\n", subject, n, message(n, 1))
	for range connections {
		tasks.Go(func() {
			for ctx.Err() == nil {
				c, err := net.Dial("tcp", strings.TrimPrefix(s.ClientURL(), "nats://"))
				if err != nil {
					continue
				}
				stop := context.AfterFunc(ctx, func() { c.Close() })
				go io.Copy(io.Discard, c)
				_, err = io.WriteString(c, "CONNECT {\"verbose\":false}\r\n")
				for err == nil {
					_, err = io.WriteString(c, say)
				}
				stop()
				c.Close()
			}
		})
	}
}

// Clients that send without pause do not cut the connection of the server's own process, and
// it misses no message: neither theirs nor those of a client that sends little.
func TestOwnConnectionOutlastsSenders(t *testing.T) {
	const budget, senders, size = 24 << 20, 16, 1 << 20
	s := startServer(t, ServerOptions{Name: "a", Pending: budget})
	var seen counts
	own := connect(t, Options{Server: s, Backlog: budget / 4, Traffic: &seen})
	var came atomic.Int64
	if _, err := own.Subscribe("up", func(Message) { came.Add(1) }); err != nil {
		t.Fatal(err)
	}
	beats := listen(t, own, "beat")
	honest := connect(t, Options{URLs: []string{s.ClientURL()}})
	pour(t, s, senders, size, "up")
	began := time.Now()
	var worst time.Duration
	enough := int64(1000)
	if testkit.Race {
		enough = 300 // twelve times the budget
	}
	for came.Load() < enough {
		one := time.Now()
		if err := honest.Send("beat", "", message(200, 1)); err != nil {
			t.Fatal(err)
		}
		receive(t, beats)
		worst = max(worst, time.Since(one))
	}
	t.Logf("%d messages in %v; a beat took %v at most", came.Load(), time.Since(began), worst)
	if n := s.s.NumSlowConsumers(); n != 0 || seen.disconnected.Load() != 0 {
		t.Errorf("%d slow consumers, %d connections lost", n, seen.disconnected.Load())
	}
}
