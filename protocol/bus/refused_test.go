package bus

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit/certtest"
	"github.com/coppice-ldl/coppice/internal/certs"
)

// TestRefusedConnectionsEnd: a client that a server refuses again and again leaves no connections open.
func TestRefusedConnectionsEnd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepted, open atomic.Int32
	var work sync.WaitGroup
	ended, end := context.WithCancel(context.Background())
	lose := make(chan struct{})
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Add(1)
			first := accepted.Add(1) == 1
			work.Go(func() {
				defer open.Add(-1)
				defer c.Close()
				defer context.AfterFunc(ended, func() { c.Close() })()
				if first {
					_, _ = io.WriteString(c, "INFO {\"server_id\":\"a\",\"max_payload\":1024}\r\n")
					for r := bufio.NewScanner(c); r.Scan() && r.Text() != "PING"; {
					}
					_, _ = io.WriteString(c, "PONG\r\n")
					<-lose
					return
				}
				_, _ = io.WriteString(c, "-ERR 'refused'\r\n")
				_, _ = io.Copy(io.Discard, c) // until the client ends it
			})
		}
	})
	t.Cleanup(func() { l.Close(); end(); work.Wait() })
	connect(t, Options{URLs: []string{"nats://" + l.Addr().String()}, Ping: slowPing})
	close(lose)
	eventually(t, "more attempts", func() bool { return accepted.Load() >= 8 })
	if n := open.Load(); n > 3 { // a server learns a little later that a connection has ended
		t.Errorf("after %d attempts, %d connections are open", accepted.Load(), n)
	}
}

// TestRefusedDelay: a client with a refused certificate waits longer and longer, until a server accepts it.
func TestRefusedDelay(t *testing.T) {
	a := certtest.New(t)
	source := a.Source(certs.Coordinator, "a")
	s := secureServer(t, source)
	worker := a.Source(certs.Worker, "w")
	var revoked atomic.Bool
	source.Revoked(func(serial string) bool { return revoked.Load() && serial == certs.Serial(worker.Own()) })
	d := &dialer{within: patience, ping: slowPing, source: worker}
	read := func() error {
		t.Helper()
		c, err := d.Dial("tcp", strings.TrimPrefix(s.ClientURL(), "nats://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = c.Read(make([]byte, 1))
		return err
	}
	revoked.Store(true)
	for range 3 {
		if err := read(); !certs.Refuses(err) {
			t.Fatalf("error %v", err)
		}
	}
	if got := d.delay(0); got != 3*time.Second {
		t.Errorf("after 3 refusals the delay is %v", got)
	}
	d.refused.Store(100)
	if got := d.delay(0); got != refusedMost {
		t.Errorf("after 100 refusals the delay is %v", got)
	}
	revoked.Store(false)
	if err := read(); err != nil || d.delay(0) > reconnectWait {
		t.Errorf("accepted: error %v, delay %v", err, d.delay(0))
	}
}
