package bus

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

// proxy carries connections to a server until it is frozen: then they stay open
// and nothing moves, as with a stopped process or a cable pulled.
type proxy struct {
	l      net.Listener
	to     string
	gate   sync.RWMutex
	wg     sync.WaitGroup
	closed chan struct{}
}

func startProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l := testkit.Listen(t)
	p := &proxy{l: l, to: to, closed: make(chan struct{})}
	p.wg.Go(p.accept)
	t.Cleanup(func() { close(p.closed); l.Close(); p.wg.Wait() })
	return p
}

func (p *proxy) accept() {
	for {
		in, err := p.l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil {
			in.Close()
			continue
		}
		p.wg.Go(func() { p.copy(in, out) })
		p.wg.Go(func() { p.copy(out, in) })
		p.wg.Go(func() { <-p.closed; in.Close(); out.Close() })
	}
}

func (p *proxy) copy(dst io.Writer, src io.Reader) {
	b := make([]byte, 64<<10)
	for {
		n, err := src.Read(b)
		p.gate.RLock()
		dst.Write(b[:n])
		p.gate.RUnlock()
		if err != nil {
			return
		}
	}
}

// A server that hangs with its connections open is known by its missing pongs,
// in about a second on defaults, and a sender is not held up by it for long.
func TestHungServerIsNoticed(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	p := startProxy(t, strings.TrimPrefix(s.ClientURL(), "nats://"))
	var n counts
	c := connect(t, Options{URLs: []string{"nats://" + p.l.Addr().String()}, Ping: DefaultPing, Traffic: &n})
	p.gate.Lock()
	began := time.Now()
	eventually(t, "hang noticed", func() bool {
		c.Send("x", "", message(1<<20, 1)) // soon more than the sockets hold
		return n.disconnected.Load() == 1
	})
	if d := time.Since(began); d > patience/2 {
		t.Errorf("noticed after %v", d)
	}
	p.gate.Unlock()
	eventually(t, "connected again", func() bool { return n.reconnected.Load() == 1 && c.Connected() })
}
