package sim

import (
	"bytes"
	"container/heap"
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/protocol/bus"
)

// The network's times.
const (
	minDelay = 100 * time.Microsecond
	maxDelay = 1500 * time.Microsecond
	// noticed is how long a connection that carries nothing goes unnoticed, by
	// either side: two pings.
	noticed = 500 * time.Millisecond
	// backAfter is how long a client takes to connect again.
	backAfter = 60 * time.Millisecond
	// payload is the greatest message: small, so that many travel in fragments.
	payload = 16 << 10
)

// network carries messages between the links of hosts, as core NATS does, and
// loses, repeats, delays and reorders them while a storm blows.
type network struct {
	seed uint64
	tap  func(to *host, message []byte) // is shown each whole message, before its receiver

	mu      sync.Mutex
	links   []*link
	inboxes map[string]*inbox
	nextBox int
	pairs   map[[2]string]*pair
	due     deliveries
	seq     uint64
	wake    chan struct{}
	storm   storm
	cut     map[string]bool    // hosts whose connection carries nothing
	apart   map[[2]string]bool // pairs of hosts of which neither hears the other
	down    bool               // NATS itself
}

// storm is how a network misbehaves: the share of messages that are lost, come
// twice, or come late by up to late.
type storm struct {
	drop, twice, slow float64
	late              time.Duration
}

// pair is the way from one host to another.
type pair struct {
	dice *dice
	last time.Time // when the latest message arrives: those behind it do not overtake
}

// delivery is a message on its way.
type delivery struct {
	at  time.Time
	seq uint64
	sub *subscription // nil: box
	box *inbox
	msg bus.Message
}

type deliveries []*delivery

func (d deliveries) Len() int { return len(d) }
func (d deliveries) Less(i, j int) bool {
	if !d[i].at.Equal(d[j].at) {
		return d[i].at.Before(d[j].at)
	}
	return d[i].seq < d[j].seq
}
func (d deliveries) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *deliveries) Push(x any)   { *d = append(*d, x.(*delivery)) }
func (d *deliveries) Pop() any {
	old := *d
	x := old[len(old)-1]
	old[len(old)-1] = nil
	*d = old[:len(old)-1]
	return x
}

// inbox takes the first answer to a request.
type inbox struct {
	of *link
	ch chan bus.Message
}

func newNetwork(seed uint64) *network {
	return &network{
		seed: seed, inboxes: make(map[string]*inbox), pairs: make(map[[2]string]*pair),
		wake: make(chan struct{}, 1), cut: make(map[string]bool), apart: make(map[[2]string]bool),
	}
}

// run delivers until ctx is done.
func (n *network) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := n.deliver(time.Now())
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
		case <-timer.C:
		}
	}
}

// deliver hands over what is due and returns the time until the next is.
func (n *network) deliver(now time.Time) time.Duration {
	for {
		n.mu.Lock()
		if len(n.due) == 0 {
			n.mu.Unlock()
			return time.Hour
		}
		if d := n.due[0].at.Sub(now); d > 0 {
			n.mu.Unlock()
			return d
		}
		d := heap.Pop(&n.due).(*delivery)
		n.mu.Unlock()
		d.hand(n)
	}
}

func (d *delivery) hand(n *network) {
	if d.box != nil {
		select {
		case d.box.ch <- d.msg:
		default: // answered already
		}
		return
	}
	if n.tap != nil {
		if whole, err := d.sub.join.Add(d.msg.Data); err == nil && whole != nil {
			n.tap(d.sub.of.host, whole)
		}
	}
	d.sub.put(d.msg)
}

// publish sends a message to whoever is subscribed now.
func (n *network) publish(from *link, subject, reply string, data []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !from.up() {
		return bus.ErrOffline
	}
	if n.cut[from.host.name] || n.down {
		return nil // into the void, until it is noticed
	}
	m := bus.Message{Subject: subject, Reply: reply, Data: data}
	if box := n.inboxes[subject]; box != nil {
		n.send(from, box.of, &delivery{box: box, msg: m})
		return nil
	}
	any := false
	for _, s := range n.listeners(from, subject) {
		any = true
		n.send(from, s.of, &delivery{sub: s, msg: m})
	}
	if !any && reply != "" {
		n.nobody(from, reply)
	}
	return nil
}

// nobody tells who sent that nobody listens.
func (n *network) nobody(from *link, reply string) {
	m := bus.Message{Subject: reply, Nobody: true}
	if box := n.inboxes[reply]; box != nil {
		n.send(from, box.of, &delivery{box: box, msg: m})
		return
	}
	for _, s := range from.subs {
		if matches(s.subject, reply) {
			n.send(from, from, &delivery{sub: s, msg: m})
		}
	}
}

// listeners lists who gets a message on subject: of each queue group, one.
func (n *network) listeners(from *link, subject string) []*subscription {
	var list []*subscription
	groups := make(map[string][]*subscription)
	var names []string
	for _, l := range n.links {
		if !l.connected {
			continue // the server has dropped it
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
		list = append(list, g[n.way(from.host.name, "of "+name).dice.n(len(g))])
	}
	return list
}

// matches reports whether a subject is of a pattern, in which * is one word.
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
	p := n.way(from.host.name, to.host.name)
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

func (n *network) enqueue(d *delivery) {
	n.seq++
	d.seq = n.seq
	d.msg.Data = bytes.Clone(d.msg.Data) // the receiver's own
	heap.Push(&n.due, d)
	if n.due[0] == d {
		select {
		case n.wake <- struct{}{}:
		default:
		}
	}
}

func (n *network) way(from, to string) *pair {
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

// cutOff has the connections of a host, all of its lives, carry nothing until
// mend.
func (n *network) cutOff(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[name] = true
	for _, l := range n.links {
		if l.host.name == name {
			n.lose(l)
		}
	}
}

func (n *network) mend(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.cut, name)
	for _, l := range n.links {
		if l.host.name == name {
			n.regain(l)
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

// stop takes NATS away; every client notices at once, as its server's process is
// gone.
func (n *network) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = true
	for _, l := range n.links {
		l.disconnect()
	}
}

func (n *network) start() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = false
	for _, l := range n.links {
		n.regain(l)
	}
}

// lose has a link found out, after a while, that is cut off.
func (n *network) lose(l *link) {
	time.AfterFunc(noticed, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.cut[l.host.name] {
			l.disconnect()
		}
	})
}

// regain has a link connect again, after a while.
func (n *network) regain(l *link) {
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

// box makes an inbox for a request.
func (n *network) box(l *link) (subject string, b *inbox) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nextBox++
	subject = "_INBOX." + strconv.Itoa(n.nextBox)
	b = &inbox{of: l, ch: make(chan bus.Message, 1)}
	n.inboxes[subject] = b
	return subject, b
}

func (n *network) unbox(subject string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.inboxes, subject)
}
