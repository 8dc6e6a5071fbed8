package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo starts a server that sends back what it gets, and a proxy to it.
func echo(t *testing.T) *Proxy {
	t.Helper()
	l := testkit.Listen(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	p, err := New(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		p.Close() // again does nothing
		l.Close()
		<-done
	})
	return p
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// expect reads a text; within bounds a wait for what should not come.
func expect(t *testing.T, c net.Conn, want string, within time.Duration) error {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(within))
	got := make([]byte, len(want))
	_, err := io.ReadFull(c, got)
	if err == nil && string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	return err
}

const (
	soon = time.Minute            // within which what should come comes
	hush = 100 * time.Millisecond // for which nothing comes
)

func TestPasses(t *testing.T) {
	c := dial(t, echo(t))
	send(t, c, "hello")
	if err := expect(t, c, "hello", soon); err != nil {
		t.Error(err)
	}
}

// What is held back in either direction arrives after Heal, whole and in order.
func TestHold(t *testing.T) {
	for _, w := range []Way{There, Back} {
		p := echo(t)
		c := dial(t, p)
		send(t, c, "one ")
		if err := expect(t, c, "one ", soon); err != nil {
			t.Fatal(err)
		}
		p.Hold(w)
		send(t, c, "two ")
		send(t, c, "three")
		if err := expect(t, c, "x", hush); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("way %d is held and gave %v", w, err)
		}
		p.Heal()
		if err := expect(t, c, "two three", soon); err != nil {
			t.Errorf("way %d: %v", w, err)
		}
	}
}

// A black hole takes connections and says nothing.
func TestBlackHole(t *testing.T) {
	p := echo(t)
	p.Hold(There)
	p.Hold(Back)
	c := dial(t, p)
	send(t, c, "anybody?")
	if err := expect(t, c, "x", hush); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// A delay counts in each direction, and does not make one byte wait for another.
func TestDelay(t *testing.T) {
	const delay = 50 * time.Millisecond
	p := echo(t)
	c := dial(t, p)
	p.Delay(delay)
	start := time.Now()
	const bytes = 2 * int(soon/delay) // one by one they would take longer than soon
	for range bytes {
		send(t, c, "x")
	}
	if err := expect(t, c, strings.Repeat("x", bytes), soon); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 2*delay {
		t.Errorf("a round trip took %v", took)
	}
}

// joined returns a proxy and the two ends of a connection through it.
func joined(t *testing.T) (p *Proxy, client, server net.Conn) {
	t.Helper()
	l := testkit.Listen(t)
	t.Cleanup(func() { l.Close() })
	p, err := New(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	client = dial(t, p)
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return p, client, server
}

// The end of one side ends the other.
func TestCloses(t *testing.T) {
	_, c, server := joined(t)
	c.Close()
	if err := expect(t, server, "x", soon); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

// What one dialler is sent or sends can be held back, and others are not; that an end
// has closed is held back as well.
func TestHoldFrom(t *testing.T) {
	for _, w := range []Way{There, Back} {
		p := echo(t)
		name := make(chan string, 2)
		name <- "a"
		p.dialler = func(net.Conn) string {
			select {
			case n := <-name:
				return n
			default:
				return "b"
			}
		}
		p.HoldFrom("a", w)
		a := dial(t, p)
		send(t, a, "one")
		if err := expect(t, a, "x", hush); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("way %d is held and gave %v", w, err)
		}
		b := dial(t, p)
		send(t, b, "two")
		if err := expect(t, b, "two", soon); err != nil {
			t.Errorf("another dialler: %v", err)
		}
		p.Heal()
		if err := expect(t, a, "one", soon); err != nil {
			t.Errorf("healed: %v", err)
		}
	}
}

// While a way is held, nobody at its end learns that the other has closed.
func TestHoldsClosing(t *testing.T) {
	p, c, server := joined(t)
	p.Hold(There)
	c.Close()
	if err := expect(t, server, "x", hush); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a held way gave %v", err)
	}
	p.Heal()
	if err := expect(t, server, "x", soon); !errors.Is(err, io.EOF) {
		t.Errorf("healed: %v", err)
	}
}
