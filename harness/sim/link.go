package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// link is a host's connection to the network. It implements bus.Link; the
// network's mutex guards it.
type link struct {
	net     *network
	host    *host
	traffic bus.Traffic

	subs      []*subscription
	connected bool
	closed    bool
}

// connect connects a host.
func (n *network) connect(h *host, o bus.Options) (*bus.Conn, error) {
	if !h.pass() {
		return nil, bus.ErrOffline
	}
	l := &link{net: n, host: h, traffic: o.Traffic, connected: true}
	if l.traffic == nil {
		panic("sim: " + h.name + " does not count its traffic")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down || n.cut[h.name] {
		return nil, bus.ErrOffline
	}
	n.links = append(n.links, l)
	return bus.New(l, o), nil
}

// up reports whether the link takes messages; the network's mutex is held.
func (l *link) up() bool { return l.connected && !l.closed && l.host.alive() }

func (l *link) disconnect() {
	if l.connected && !l.closed && l.host.alive() {
		l.connected = false
		l.traffic.Disconnected()
	}
}

// Publish implements bus.Link.
func (l *link) Publish(subject, reply string, data []byte) error {
	if len(data) > payload {
		return fmt.Errorf("sim: a message of %d bytes, at most %d are possible", len(data), payload)
	}
	if !l.host.pass() {
		return bus.ErrOffline
	}
	return l.net.publish(l, subject, reply, data)
}

// Request implements bus.Link.
func (l *link) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	reply, box := l.net.box(l)
	defer l.net.unbox(reply)
	if err := l.Publish(subject, reply, data); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.host.dead:
		return nil, bus.ErrOffline
	case m := <-box.ch:
		if !l.host.pass() {
			return nil, bus.ErrOffline
		}
		if m.Nobody {
			return nil, bus.ErrNoAnswer
		}
		return m.Data, nil
	}
}

// Flush implements bus.Link.
func (l *link) Flush(context.Context) error {
	if !l.Connected() {
		return bus.ErrOffline
	}
	return nil
}

// MaxPayload implements bus.Link.
func (l *link) MaxPayload() int { return payload }

// Connected implements bus.Link.
func (l *link) Connected() bool {
	if !l.host.pass() {
		return false
	}
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	return l.up()
}

// ServerName implements bus.Link: the simulated network has no servers.
func (l *link) ServerName() string { return "" }

// RTT implements bus.Link.
func (l *link) RTT(ctx context.Context) (time.Duration, error) { return 2 * minDelay, l.Flush(ctx) }

// Close implements bus.Link.
func (l *link) Close() {
	l.net.mu.Lock()
	l.closed = true
	subs := l.subs
	l.subs = nil
	for i, other := range l.net.links {
		if other == l {
			l.net.links = append(l.net.links[:i:i], l.net.links[i+1:]...)
			break
		}
	}
	l.net.mu.Unlock()
	for _, s := range subs {
		s.end()
	}
}

// sever ends what the link of a killed host carries: nobody hears of it.
func (n *network) sever(h *host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	kept := n.links[:0:0]
	for _, l := range n.links {
		if l.host != h {
			kept = append(kept, l)
		}
	}
	n.links = kept
}

// subscription is one of a link's.
type subscription struct {
	of             *link
	subject, queue string
	f              func(bus.Message)
	join           *protocol.Joiner // makes messages whole for the network's tap

	mu     sync.Mutex
	queued []bus.Message
	some   chan struct{}
	quit   chan struct{}
	once   sync.Once
	done   chan struct{}
}

// Subscribe implements bus.Link.
func (l *link) Subscribe(subject, queue string, f func(bus.Message)) (interface{ Close() }, error) {
	if !l.host.pass() {
		return nil, bus.ErrOffline
	}
	s := &subscription{
		of: l, subject: subject, queue: queue, f: f, join: protocol.NewJoiner(nil),
		some: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	if l.closed {
		return nil, bus.ErrOffline
	}
	l.subs = append(l.subs, s)
	go s.run()
	return s, nil
}

func (s *subscription) put(m bus.Message) {
	s.mu.Lock()
	s.queued = append(s.queued, m)
	s.mu.Unlock()
	select {
	case s.some <- struct{}{}:
	default:
	}
}

func (s *subscription) take() []bus.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.queued
	s.queued = nil
	return m
}

func (s *subscription) run() {
	defer close(s.done)
	for {
		select {
		case <-s.quit:
			return
		case <-s.of.host.dead:
			return
		case <-s.some:
		}
		for _, m := range s.take() {
			if s.ended() || !s.of.host.pass() {
				return
			}
			s.f(m)
		}
	}
}

func (s *subscription) ended() bool {
	select {
	case <-s.quit:
		return true
	default:
		return false
	}
}

func (s *subscription) end() {
	s.once.Do(func() { close(s.quit) })
	<-s.done
}

// Close implements bus.Link's subscription.
func (s *subscription) Close() {
	l := s.of
	l.net.mu.Lock()
	for i, other := range l.subs {
		if other == s {
			l.subs = append(l.subs[:i:i], l.subs[i+1:]...)
			break
		}
	}
	l.net.mu.Unlock()
	s.end()
}
