// Package proxy stands between two processes as a bad network would: a TCP proxy
// on loopback that delays what passes, or holds it back in one direction or in both. What is held back is not lost: as with TCP, it arrives
// once the way is open again, unless an end has given up.
package proxy

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Way is a direction.
type Way int

// The directions of a connection, as seen by who dialled the proxy.
const (
	There Way = iota // to the target
	Back             // from the target
	ways
)

// Proxy passes connections on to a target. Its methods are safe for concurrent
// use.
type Proxy struct {
	listener net.Listener
	target   string
	dialler  func(net.Conn) string
	gates    gates

	mu      sync.Mutex
	latency time.Duration
	from    map[string]*gates // of the connections of one dialler
	parted  atomic.Bool       // some of these are shut
	conns   map[net.Conn]bool
	closed  bool
	done    chan struct{}
	running sync.WaitGroup
}

// gates are those of both ways.
type gates [ways]*gate

func newGates() gates { return gates{newGate(), newGate()} }

// New starts a proxy on a free port of loopback.
func New(target string) (*Proxy, error) {
	return NewAt("127.0.0.1:0", target, func(net.Conn) string { return "" })
}

// NewAt starts a proxy at an address. dialler names who is at the other end of a
// connection, so that HoldFrom can hold back what one of them sends and is sent.
func NewAt(address, target string, dialler func(net.Conn) string) (*Proxy, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		listener: l, target: target, dialler: dialler, conns: make(map[net.Conn]bool), done: make(chan struct{}),
		gates: newGates(), from: make(map[string]*gates),
	}
	p.running.Go(p.serve)
	return p, nil
}

// Address is where the proxy listens: host:port.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Delay makes every byte that comes from now on take d longer, in each direction.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency = d
}

// Hold holds back what goes that way, and with both ways held nothing passes: a
// black hole. Connections are still taken.
func (p *Proxy) Hold(w Way) { p.gates[w].shut() }

// HoldFrom holds back what goes that way on the connections of one dialler.
func (p *Proxy) HoldFrom(dialler string, w Way) {
	p.gatesOf(dialler)[w].shut()
	p.parted.Store(true)
}

// gatesOf returns the gates of one dialler's connections.
func (p *Proxy) gatesOf(dialler string) *gates {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.from[dialler]
	if g == nil {
		made := newGates()
		g = &made
		p.from[dialler] = g
	}
	return g
}

// Heal ends all faults; what was held back arrives now.
func (p *Proxy) Heal() {
	p.mu.Lock()
	p.latency = 0
	p.parted.Store(false)
	all := []*gates{&p.gates}
	for _, g := range p.from {
		all = append(all, g)
	}
	p.mu.Unlock()
	for _, g := range all {
		g[There].open()
		g[Back].open()
	}
}

// Close ends the proxy and waits until all it started has ended.
func (p *Proxy) Close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	close(p.done)
	p.listener.Close()
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

func (p *Proxy) serve() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.pass(c) })
	}
}

// keep notes a connection so that Close finds it; false: close it.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) forget(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// pass serves one connection until either end closes it.
func (p *Proxy) pass(from net.Conn) {
	defer p.forget(from)
	if !p.keep(from) {
		return
	}
	to, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer p.forget(to)
	if !p.keep(to) {
		return
	}
	own := sync.OnceValue(func() *gates { return p.gatesOf(p.dialler(from)) }) // takes a while
	var both sync.WaitGroup
	both.Go(func() { p.pump(to, from, There, own) })
	both.Go(func() { p.pump(from, to, Back, own) })
	both.Wait()
}

// chunk is what one read gave, and when it may go on.
type chunk struct {
	bytes []byte
	due   time.Time
}

const (
	chunkBytes = 64 << 10
	maxChunks  = 256 // on their way, in one direction of one connection
)

// pump passes bytes on until an end closes, then closes both: that an end has closed
// is held back as bytes are.
func (p *Proxy) pump(dst, src net.Conn, w Way, own func() *gates) {
	chunks := make(chan chunk, maxChunks)
	gone := make(chan struct{})
	go func() {
		defer close(chunks)
		for {
			buf := make([]byte, chunkBytes)
			n, err := src.Read(buf)
			if n > 0 {
				select {
				case chunks <- chunk{buf[:n], p.due()}:
				case <-gone:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	p.write(dst, chunks, w, own)
	close(gone)
	var ends sync.WaitGroup
	ends.Go(func() { p.end(dst, w, own) })
	ends.Go(func() { p.end(src, ways-1-w, own) })
	for range chunks { // until the reader has seen it
	}
	ends.Wait()
}

// end closes a connection once what goes that way passes.
func (p *Proxy) end(c net.Conn, w Way, own func() *gates) {
	p.open(w, own)
	c.Close()
}

// open waits until what goes that way passes; false: the proxy is closed.
func (p *Proxy) open(w Way, own func() *gates) bool {
	return p.gates[w].pass(p.done) && (!p.parted.Load() || own()[w].pass(p.done))
}

func (p *Proxy) due() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latency == 0 {
		return time.Time{}
	}
	return time.Now().Add(p.latency)
}

// write passes chunks on, each when it is due and the gate is open.
func (p *Proxy) write(dst io.Writer, chunks <-chan chunk, w Way, own func() *gates) {
	for c := range chunks {
		if !c.due.IsZero() && !p.wait(time.Until(c.due)) || !p.open(w, own) {
			return
		}
		if _, err := dst.Write(c.bytes); err != nil {
			return
		}
	}
}

// wait waits, and reports false where the proxy is closed meanwhile.
func (p *Proxy) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.done:
		return false
	case <-t.C:
		return true
	}
}

// gate lets through what comes, or makes it wait.
type gate struct {
	mu   sync.Mutex
	free chan struct{} // closed while the gate is open
}

func newGate() *gate {
	g := &gate{free: make(chan struct{})}
	close(g.free)
	return g
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.free:
		g.free = make(chan struct{})
	default:
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.free:
	default:
		close(g.free)
	}
}

// pass waits until the gate is open; false: done came first.
func (g *gate) pass(done <-chan struct{}) bool {
	g.mu.Lock()
	free := g.free
	g.mu.Unlock()
	select {
	case <-free:
		return true
	case <-done:
		return false
	}
}
