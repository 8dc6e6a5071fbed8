package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/certtest"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/slowlink"
)

// thin carries connections to a server over a link of a rate, in bytes a second.
func thin(t *testing.T, to string, rate int) (url string) {
	t.Helper()
	l := testkit.Listen(t)
	var work sync.WaitGroup
	closed := make(chan struct{})
	carry := func(dst, src net.Conn) {
		const pause = 5 * time.Millisecond
		src.(*net.TCPConn).SetReadBuffer(64 << 10) // with 16 KiB, TCP on loopback stands still with TLS
		b := make([]byte, rate/int(time.Second/pause))
		for {
			n, err := src.Read(b)
			if _, bad := dst.Write(b[:n]); err != nil || bad != nil {
				dst.Close()
				return
			}
			select {
			case <-closed:
				return
			case <-time.After(pause): // the rate
			}
		}
	}
	work.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			work.Go(func() { carry(in, out) })
			work.Go(func() { carry(out, in) })
			work.Go(func() { <-closed; in.Close(); out.Close() })
		}
	})
	t.Cleanup(func() { close(closed); l.Close(); work.Wait() })
	return "nats://" + l.Addr().String()
}

// TestThinLink: a message that takes many times as long as a server may be silent, and longer than a
// write may, comes over a thin link in one piece. The connection stays.
func TestThinLink(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes longer than a write of the server may")
	}
	a := certtest.New(t)
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%v", secure), func(t *testing.T) {
			t.Parallel() // it waits
			so, co := ServerOptions{Name: "a"}, Options{Name: "w", Ping: DefaultPing}
			if secure {
				so.TLS, so.Handshake, co.TLS = a.Source(certs.Coordinator, "a"), patience, a.Source(certs.Worker, "w")
			}
			s := startServer(t, so)
			var n counts
			co.URLs, co.Traffic = []string{thin(t, strings.TrimPrefix(s.ClientURL(), "nats://"), 1<<20)}, &n
			got := listen(t, connect(t, co), "x")
			big := message(12<<20, 1)
			if err := connect(t, Options{Server: s}).Send("x", "", big); err != nil {
				t.Fatal(err)
			}
			select {
			case m := <-got:
				if !bytes.Equal(m.Data, big) {
					t.Error("wrong bytes")
				}
			case <-time.After(6 * patience):
				t.Error("the message did not come")
			}
			if lost := n.disconnected.Load(); lost > 0 {
				t.Errorf("the connection was lost %d times", lost)
			}
		})
	}
}

// ends are a socket and its other end.
func ends(t *testing.T, ping time.Duration) (*socket, net.Conn) {
	t.Helper()
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	return &socket{Conn: slowlink.Conn{Conn: a}, dialer: &dialer{ping: ping}}, b
}

// What is written slowly is written while some of it is taken in time; what is not taken
// is given up.
func TestSlowWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, far := ends(t, time.Hour)
		const within = 500 * time.Millisecond
		taken := make(chan int, 1)
		go func() {
			b, total := make([]byte, 8<<10), 0
			for total < 256<<10 {
				time.Sleep(within / 16) // 64 KiB in half of the time that they have
				n, err := io.ReadFull(far, b)
				if total += n; err != nil {
					break
				}
			}
			taken <- total
		}()
		s.SetWriteDeadline(time.Now().Add(within))
		if n, err := s.Write(make([]byte, 256<<10)); n != 256<<10 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		if n := <-taken; n != 256<<10 {
			t.Errorf("%d bytes came", n)
		}
		if n, err := s.Write(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("nobody reads: %d bytes, %v", n, err)
		}
	})
}

// A server that says anything now and then is there; one that is silent is not, and a
// deadline of the library's own holds.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ping = 100 * time.Millisecond
		s, far := ends(t, ping)
		go func() {
			for range 10 {
				time.Sleep(ping)
				far.Write([]byte{1})
			}
		}()
		b := make([]byte, 1)
		for i := range 10 {
			if _, err := s.Read(b); err != nil {
				t.Fatalf("byte %d: %v", i, err)
			}
		}
		began := time.Now()
		if _, err := s.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) < (pingsOut+1)*ping {
			t.Errorf("silence: %v after %v", err, time.Since(began))
		}
		s.SetDeadline(time.Now().Add(20 * ping))
		go func() {
			time.Sleep(10 * ping)
			far.Write([]byte{1})
		}()
		if _, err := s.Read(b); err != nil {
			t.Errorf("within the deadline: %v", err)
		}
	})
}

// A connection that was made just before the time for it was over has as long as any other
// to be made again, however far its server is.
func TestLateConnection(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	to := strings.TrimPrefix(s.ClientURL(), "nats://")
	l := testkit.Listen(t)
	var work sync.WaitGroup
	t.Cleanup(func() { l.Close(); work.Wait() })
	const far, within = 300 * time.Millisecond, 600 * time.Millisecond
	var conns []net.Conn // of the first connection
	var mu sync.Mutex
	carry := func(dst, src net.Conn, wait time.Duration) {
		time.Sleep(wait)
		io.Copy(dst, src)
		dst.Close()
	}
	work.Go(func() {
		for n := 0; ; n++ {
			in, err := l.Accept()
			if err != nil {
				return
			}
			if n == 0 { // nothing comes of the first try
				time.Sleep(far)
				in.Close()
				continue
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				t.Error(err)
				return
			}
			var wait time.Duration
			if n > 1 {
				wait = far
			}
			mu.Lock()
			conns = append(conns, in, out)
			mu.Unlock()
			work.Go(func() { carry(in, out, wait) })
			work.Go(func() { carry(out, in, 0) })
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var n counts
	c, err := Connect(ctx, Options{URLs: []string{"nats://" + l.Addr().String()}, Ping: DefaultPing, Traffic: &n})
	if err != nil {
		t.Skip("the machine is too slow: ", err)
	}
	t.Cleanup(c.Close)
	mu.Lock()
	for _, one := range conns {
		one.Close()
	}
	mu.Unlock()
	eventually(t, "connected again", func() bool { return n.reconnected.Load() == 1 && c.Connected() })
}
