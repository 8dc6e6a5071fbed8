package sim

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

const (
	minDelay = 100 * time.Microsecond
	maxDelay = 1500 * time.Microsecond
	// noticed is the time after which a client finds out that its connection carries
	// nothing: two pings.
	noticed = 500 * time.Millisecond
	// backAfter is how long a client takes to connect again.
	backAfter = 60 * time.Millisecond
	// payload bounds a message in bytes. It is small, so that many messages travel in
	// fragments.
	payload = 16 << 10
)

// network carries messages between the links of hosts, as core NATS does. In a storm it
// loses, repeats, delays and reorders them.
type network struct {
	seed uint64
	tap  func(to *host, message []byte) // called with each complete message before its receiver gets it

	mu      sync.Mutex // guards the fields below, and the state of all links
	links   []*link
	inboxes map[string]*inbox // by subject
	nextBox int
	pairs   map[[2]string]*pair
	due     []*delivery // by time of arrival
	wake    chan struct{}
	storm   storm
	cut     map[string]bool    // hosts with connections that carry nothing
	apart   map[[2]string]bool // pairs of hosts that do not hear each other, in both orders
	down    bool               // true while NATS itself does not run
}

// storm is how a network misbehaves: the fractions of messages that are lost, arrive
// twice, or arrive late by up to late.
type storm struct {
	drop, twice, slow float64
	late              time.Duration
}

// pair is the way from one host to another. Its dice are its own, so that what becomes of
// its messages does not depend on the messages of others.
type pair struct {
	dice *dice
	last time.Time // arrival of the latest message that is not late; the next does not overtake it
}

// delivery is a message on its way, to a subscription or to an inbox.
type delivery struct {
	at  time.Time
	sub *subscription // nil: the message goes to box
	box *inbox
	msg bus.Message
}

// inbox takes the first answer to a request.
type inbox struct {
	owner *link
	ch    chan bus.Message // has room for one message
}

func newNetwork(seed uint64) *network {
	return &network{
		seed: seed, inboxes: make(map[string]*inbox), pairs: make(map[[2]string]*pair),
		wake: make(chan struct{}, 1), cut: make(map[string]bool), apart: make(map[[2]string]bool),
	}
}

// run delivers messages until ctx is done.
func (n *network) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		var d *delivery
		wait := time.Hour
		n.mu.Lock()
		if len(n.due) > 0 {
			if wait = time.Until(n.due[0].at); wait <= 0 {
				d, n.due = n.due[0], n.due[1:]
			}
		}
		n.mu.Unlock()
		if d != nil {
			n.hand(d)
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
		case <-timer.C:
		}
	}
}

// hand gives a message to its receiver.
func (n *network) hand(d *delivery) {
	if d.box != nil {
		select {
		case d.box.ch <- d.msg:
		default: // there was an answer before
		}
		return
	}
	if n.tap != nil {
		if whole, err := d.sub.join.Add(d.msg.Data); err == nil && whole != nil {
			n.tap(d.sub.link.host, whole)
		}
	}
	d.sub.put(d.msg)
}

// publish sends a message to the present subscribers of its subject. If there is none,
// the sender of a request is told.
func (n *network) publish(from *link, subject, reply string, data []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !from.up() {
		return bus.ErrOffline
	}
	if n.cut[from.host.name] || n.down {
		return nil // the message is lost; the sender finds out later
	}
	m := bus.Message{Subject: subject, Reply: reply, Data: data}
	if box := n.inboxes[subject]; box != nil {
		n.send(from, box.owner, &delivery{box: box, msg: m})
		return nil
	}
	listeners := n.listeners(from, subject)
	for _, s := range listeners {
		n.send(from, s.link, &delivery{sub: s, msg: m})
	}
	if len(listeners) > 0 || reply == "" {
		return nil
	}
	nobody := bus.Message{Subject: reply, Nobody: true}
	if box := n.inboxes[reply]; box != nil {
		n.send(from, box.owner, &delivery{box: box, msg: nobody})
		return nil
	}
	for _, s := range from.subs {
		if matches(s.subject, reply) {
			n.send(from, from, &delivery{sub: s, msg: nobody})
		}
	}
	return nil
}

// listeners lists the subscriptions that get a message: all without a queue group, and
// one of each group.
func (n *network) listeners(from *link, subject string) []*subscription {
	var list []*subscription
	groups := make(map[string][]*subscription)
	var names []string // of the groups, in order
	for _, l := range n.links {
		if !l.connected {
			continue // the server has dropped the connection
		}
		for _, s := range l.subs {
			switch {
			case !matches(s.subject, subject):
			case s.queue == "":
				list = append(list, s)
			default:
				if groups[s.queue] == nil {
					names = append(names, s.queue)
				}
				groups[s.queue] = append(groups[s.queue], s)
			}
		}
	}
	for _, name := range names {
		g := groups[name]
		list = append(list, g[n.pair(from.host.name, "of "+name).dice.n(len(g))])
	}
	return list
}

// matches reports whether a subject matches a pattern, in which * stands for one word.
func matches(pattern, subject string) bool {
	if pattern == subject {
		return true
	}
	if !strings.Contains(pattern, "*") {
		return false
	}
	p, s := strings.Split(pattern, "."), strings.Split(subject, ".")
	if len(p) != len(s) {
		return false
	}
	for i := range p {
		if p[i] != "*" && p[i] != s[i] {
			return false
		}
	}
	return true
}

// send puts a delivery on its way, as the storm says.
func (n *network) send(from, to *link, d *delivery) {
	if n.cut[to.host.name] || n.apart[[2]string{from.host.name, to.host.name}] {
		return
	}
	p := n.pair(from.host.name, to.host.name)
	delay := p.dice.between(minDelay, maxDelay)
	s := n.storm
	if s.drop > 0 && p.dice.chance(s.drop) {
		return
	}
	d.at = time.Now().Add(delay)
	late := s.slow > 0 && p.dice.chance(s.slow)
	if late {
		d.at = d.at.Add(p.dice.between(0, s.late))
	} else if d.at.Before(p.last) {
		d.at = p.last
	}
	if !late {
		p.last = d.at
	}
	n.enqueue(d)
	if s.twice > 0 && p.dice.chance(s.twice) {
		again := *d
		again.at = d.at.Add(p.dice.between(0, s.late+maxDelay))
		n.enqueue(&again)
	}
}

// enqueue puts a delivery in its place: behind the deliveries that arrive at the same
// time or earlier.
func (n *network) enqueue(d *delivery) {
	d.msg.Data = bytes.Clone(d.msg.Data) // the receiver may change its own copy
	i, _ := slices.BinarySearchFunc(n.due, d.at, func(other *delivery, at time.Time) int {
		if other.at.After(at) {
			return 1
		}
		return -1
	})
	n.due = slices.Insert(n.due, i, d)
	if i == 0 {
		select {
		case n.wake <- struct{}{}:
		default:
		}
	}
}

// pair returns the way from one host to another. It belongs to the names, so that it
// outlives the lives of processes.
func (n *network) pair(from, to string) *pair {
	key := [2]string{from, to}
	p := n.pairs[key]
	if p == nil {
		p = &pair{dice: newDice(n.seed, "net "+from+" "+to)}
		n.pairs[key] = p
	}
	return p
}

// blow sets how the network misbehaves.
func (n *network) blow(s storm) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.storm = s
}

// cutOff lets the connections of a host carry nothing until mend. It holds for all lives
// of the host.
func (n *network) cutOff(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[name] = true
	for _, l := range n.links {
		if l.host.name != name {
			continue
		}
		time.AfterFunc(noticed, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.cut[name] {
				l.disconnect()
			}
		})
	}
}

// mend ends cutOff. The links of the host connect again after a while.
func (n *network) mend(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.cut, name)
	for _, l := range n.links {
		if l.host.name == name {
			n.reconnect(l)
		}
	}
}

// part keeps two hosts from hearing each other, or ends that.
func (n *network) part(a, b string, apart bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, key := range [][2]string{{a, b}, {b, a}} {
		if apart {
			n.apart[key] = true
		} else {
			delete(n.apart, key)
		}
	}
}

// stop ends NATS. Every client notices at once, since the process of its server is gone.
func (n *network) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = true
	for _, l := range n.links {
		l.disconnect()
	}
}

// start starts NATS again. All links connect again after a while.
func (n *network) start() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = false
	for _, l := range n.links {
		n.reconnect(l)
	}
}

// reconnect connects a link again after a while, if it is possible then.
func (n *network) reconnect(l *link) {
	time.AfterFunc(backAfter, func() {
		n.mu.Lock()
		back := !n.cut[l.host.name] && !n.down && !l.closed && !l.connected && l.host.alive()
		if back {
			l.connected = true
		}
		n.mu.Unlock()
		if back {
			l.traffic.Reconnected()
		}
	})
}

// connect connects a host.
func (n *network) connect(h *host, o bus.Options) (*bus.Conn, error) {
	if !h.pass() {
		return nil, bus.ErrOffline
	}
	l := &link{net: n, host: h, traffic: o.Traffic, answers: o.Answers, connected: true}
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

// sever removes the links of a killed host, which is not told.
func (n *network) sever(h *host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links = slices.DeleteFunc(n.links, func(l *link) bool { return l.host == h })
}

// link is the connection of a host to the network. It implements bus.Link. The mutex of
// the network guards its fields.
type link struct {
	net     *network
	host    *host
	traffic bus.Traffic
	answers string // as bus.Options.Answers

	subs      []*subscription
	connected bool
	closed    bool
}

// up reports whether the link takes messages; the mutex is held.
func (l *link) up() bool { return l.connected && !l.closed && l.host.alive() }

func (l *link) disconnect() {
	if l.up() {
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
	n, box := l.net, &inbox{owner: l, ch: make(chan bus.Message, 1)}
	n.mu.Lock()
	n.nextBox++
	reply := l.answers + "." + strconv.Itoa(n.nextBox)
	n.inboxes[reply] = box
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.inboxes, reply)
	}()
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
	n := l.net
	n.mu.Lock()
	l.closed = true
	subs := l.subs
	l.subs = nil
	n.links = slices.DeleteFunc(n.links, func(other *link) bool { return other == l })
	n.mu.Unlock()
	for _, s := range subs {
		s.end()
	}
}

// subscription calls f with the messages of a subject, in order, in a goroutine of its
// own.
type subscription struct {
	link           *link
	subject, queue string
	f              func(bus.Message)
	join           *protocol.Joiner // joins fragments for the tap of the network

	mu     sync.Mutex
	queued []bus.Message // guarded by mu
	some   chan struct{} // has an element if messages are queued
	quit   chan struct{} // closed to end run
	once   sync.Once     // closes quit
	done   chan struct{} // closed once run has ended
}

// Subscribe implements bus.Link.
func (l *link) Subscribe(subject, queue string, f func(bus.Message)) (interface{ Close() }, error) {
	if !l.host.pass() {
		return nil, bus.ErrOffline
	}
	s := &subscription{
		link: l, subject: subject, queue: queue, f: f, join: protocol.NewJoiner(nil),
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

// put queues a message. It never blocks, however slow the receiver is.
func (s *subscription) put(m bus.Message) {
	s.mu.Lock()
	s.queued = append(s.queued, m)
	s.mu.Unlock()
	select {
	case s.some <- struct{}{}:
	default:
	}
}

func (s *subscription) run() {
	defer close(s.done)
	for {
		select {
		case <-s.quit:
			return
		case <-s.link.host.dead:
			return
		case <-s.some:
		}
		s.mu.Lock()
		batch := s.queued
		s.queued = nil
		s.mu.Unlock()
		for _, m := range batch {
			select {
			case <-s.quit:
				return
			default:
			}
			if !s.link.host.pass() {
				return
			}
			s.f(m)
		}
	}
}

// end ends run and waits for it.
func (s *subscription) end() {
	s.once.Do(func() { close(s.quit) })
	<-s.done
}

// Close ends the subscription.
func (s *subscription) Close() {
	l := s.link
	l.net.mu.Lock()
	l.subs = slices.DeleteFunc(l.subs, func(other *subscription) bool { return other == s })
	l.net.mu.Unlock()
	s.end()
}
