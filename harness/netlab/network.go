// Package netlab is a network to test on: hosts with an address each, and between any
// two of them a link in each direction, which delays, loses and doubles packets and has
// a rate, as Settings say. What happens to a packet follows from the
// seed, the link and the packet's number on it. Cuts come and go while the network runs.
//
// A host is a network namespace of Linux with loopback and one TUN device. This process
// holds the other ends of all devices: it reads the packets that hosts send, decides by the
// model (Link, a function of times and sizes), and writes each to the device of the host
// that it is for when it is due. The system's own emulation of networks is not needed.
//
// Enter puts the whole process into a namespace of its own, so that it is a host itself:
// its connections, its listeners and all that it starts. Nothing of the machine's own
// network is used or changed.
//
// It takes Linux, /dev/net/tun and the right to make network namespaces; Missing says what
// is not there.
package netlab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"slices"
	"sync"
	"time"
)

// ErrUnavailable is wrapped by the errors of New and Enter where this machine or this user
// cannot have a network to test on.
var ErrUnavailable = errors.New("no test network is available")

// Network joins hosts by links. Its methods are safe for concurrent use.
type Network struct {
	settings Settings
	seed     uint64
	began    time.Time
	done     chan struct{}
	running  sync.WaitGroup

	mu      sync.RWMutex
	devices []*device
	hosts   []*Host // in the order of their addresses
	cuts    []Cut
}

// Host is one address of a network. A host other than those of Attach is a network
// namespace: see Start.
type Host struct {
	Name    string
	address netip.Addr
	device  *device
	direct  bool // its links have no settings and no cuts
}

// Address is where the host is reached: an IPv4 address without a port.
func (h *Host) Address() string { return h.address.String() }

// Do calls f in a thread of the host's namespace. What f opens (sockets) and starts
// (processes) belongs to it; goroutines that f starts do not.
func (h *Host) Do(f func() error) error { return h.device.space.do(f) }

// Start starts a command on the host.
func (h *Host) Start(c *exec.Cmd) error { return h.Do(c.Start) }

// New makes a network without hosts. Its error wraps ErrUnavailable where there is none.
func New(s Settings, seed uint64) (*Network, error) {
	if reason := Missing(); reason != "" {
		return nil, fmt.Errorf("%w: %s", ErrUnavailable, reason)
	}
	return &Network{settings: s, seed: seed, began: time.Now(), done: make(chan struct{})}, nil
}

// maxHosts are the addresses of a network.
const maxHosts = 250

// addressOf returns the address of a host by its place in the list.
func addressOf(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, 0, byte(i + 1)}) }

// maskBits is the part of an address that all hosts share.
const maskBits = 24

// Host returns the host of a name, which is made where there is none.
func (n *Network) Host(name string) (*Host, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := slices.IndexFunc(n.hosts, func(h *Host) bool { return h.Name == name }); i >= 0 {
		return n.hosts[i], nil
	}
	space, err := newNamespace()
	if err != nil {
		return nil, fmt.Errorf("the host %s: %w", name, err)
	}
	hosts, err := n.add(space, &Host{Name: name})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the host %s: %w", name, err), space.close())
	}
	return hosts, nil
}

// Attach makes the namespace of this process, which Enter made, a part of the network
// with two addresses. What it connects has the first by default, and links as all hosts
// have. The second is for observers: its links pass every packet
// at once, and no cut stops them.
func (n *Network) Attach(name, direct string) (first, second *Host, err error) {
	if !entered() {
		return nil, nil, errors.New("this process uses the machine's network: call Enter first")
	}
	space, err := thisNamespace()
	if err != nil {
		return nil, nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	first, second = &Host{Name: name}, &Host{Name: direct, direct: true}
	if _, err = n.add(space, first, second); err != nil {
		return nil, nil, errors.Join(err, space.close())
	}
	return first, second, nil
}

// add gives hosts of one namespace addresses and a device, and returns the first.
func (n *Network) add(space *namespace, hosts ...*Host) (*Host, error) {
	if len(n.hosts)+len(hosts) > maxHosts {
		return nil, fmt.Errorf("a network has at most %d addresses", maxHosts)
	}
	var addresses []netip.Addr
	for i, h := range hosts {
		h.address = addressOf(len(n.hosts) + i)
		addresses = append(addresses, h.address)
	}
	tun, err := space.openTUN(addresses)
	if err != nil {
		return nil, err
	}
	d := &device{space: space, tun: tun, inbox: newInbox(tun, n.clock), links: make(map[[2]netip.Addr]*Link)}
	for _, h := range hosts {
		h.device = d
	}
	n.hosts, n.devices = append(n.hosts, hosts...), append(n.devices, d)
	n.running.Go(func() { d.inbox.run(n.done) })
	n.running.Go(func() { n.forward(d) })
	return hosts[0], nil
}

// clock is the time of the network.
func (n *Network) clock() time.Duration { return time.Since(n.began) }

// Cut adds cuts.
func (n *Network) Cut(c ...Cut) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cuts = append(n.cuts, c...)
}

// Heal ends all cuts. What they stopped is lost: TCP sends it again.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cuts = nil
}

// Close ends the network; processes on its hosts reach nobody from then on.
func (n *Network) Close() error {
	n.mu.Lock()
	devices := n.devices
	n.devices, n.hosts = nil, nil
	n.mu.Unlock()
	if devices == nil {
		return nil
	}
	close(n.done)
	var errs []error
	for _, d := range devices {
		errs = append(errs, d.tun.Close())
	}
	n.running.Wait()
	for _, d := range devices {
		errs = append(errs, d.space.close())
	}
	return errors.Join(errs...)
}

// host returns the host of an address, nil for none. mu is held.
func (n *Network) host(a netip.Addr) *Host {
	if !a.Is4() {
		return nil
	}
	b := a.As4()
	i := int(b[3]) - 1
	if i < 0 || i >= len(n.hosts) || n.hosts[i].address != a {
		return nil
	}
	return n.hosts[i]
}

// numberOf is an address as a number.
func numberOf(a netip.Addr) uint32 { b := a.As4(); return binary.BigEndian.Uint32(b[:]) }

// Cut is what does not pass: packets from one host to another, in this direction only.
type Cut struct {
	From, To string   // names of hosts; empty: any
	Ports    []uint16 // of TCP, at either end; none: everything
}

// stops reports whether a cut stops packets of a header between two hosts.
func (c *Cut) stops(from, to string, h *header) bool {
	if c.From != "" && c.From != from || c.To != "" && c.To != to {
		return false
	}
	return len(c.Ports) == 0 || slices.Contains(c.Ports, h.fromPort) || slices.Contains(c.Ports, h.toPort)
}

// device is the TUN device of a namespace, which one or more hosts share.
type device struct {
	space *namespace
	tun   io.ReadWriteCloser
	inbox *inbox
	links map[[2]netip.Addr]*Link // from its addresses; forward alone uses them
}

// forward passes on what a device sends until it is closed.
func (n *Network) forward(d *device) {
	buf := make([]byte, 2*mtu)
	for {
		size, err := d.tun.Read(buf)
		if err != nil {
			return
		}
		n.pass(d, buf[:size])
	}
}

// pass has one packet take its way.
func (n *Network) pass(d *device, bytes []byte) {
	h, ok := parseHeader(bytes)
	if !ok {
		return
	}
	from, to, passes := n.ends(&h)
	switch {
	case !passes:
	case from.direct || to.direct:
		to.device.inbox.put(bytes, 0)
	default:
		arrivals, count := n.link(d, &h).Pass(n.clock(), len(bytes))
		for _, at := range arrivals[:count] {
			to.device.inbox.put(bytes, at)
		}
	}
}

// ends returns the hosts of a packet, and whether it passes between them.
func (n *Network) ends(h *header) (from, to *Host, passes bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	from, to = n.host(h.from), n.host(h.to)
	if from == nil || to == nil {
		return nil, nil, false
	}
	if from.direct || to.direct {
		return from, to, true
	}
	for i := range n.cuts {
		if n.cuts[i].stops(from.Name, to.Name, h) {
			return nil, nil, false
		}
	}
	return from, to, true
}

// link returns the link that a packet takes.
func (n *Network) link(d *device, h *header) *Link {
	key := [2]netip.Addr{h.from, h.to}
	l := d.links[key]
	if l == nil {
		l = NewLink(n.settings, seedOf(n.seed, numberOf(h.from), numberOf(h.to)))
		d.links[key] = l
	}
	return l
}

// mtu is the size of the greatest packet, in bytes, as on Ethernet.
const mtu = 1500

// The parts of an IPv4 packet that are read.
const (
	leastHeader = 20
	protocolAt  = 9
	sourceAt    = 12
	targetAt    = 16
	protocolTCP = 6
)

// header is what is read of a packet. The ports are 0 where it is not TCP.
type header struct {
	from, to         netip.Addr
	fromPort, toPort uint16
}

// parseHeader reads a packet; false: it is not a whole one of IPv4.
func parseHeader(b []byte) (h header, ok bool) {
	if len(b) < leastHeader || b[0]>>4 != 4 {
		return h, false
	}
	size := int(b[0]&0xf) * 4
	if size < leastHeader || len(b) < size {
		return h, false
	}
	h.from = netip.AddrFrom4([4]byte(b[sourceAt : sourceAt+4]))
	h.to = netip.AddrFrom4([4]byte(b[targetAt : targetAt+4]))
	if b[protocolAt] == protocolTCP && len(b) >= size+4 {
		h.fromPort, h.toPort = binary.BigEndian.Uint16(b[size:]), binary.BigEndian.Uint16(b[size+2:])
	}
	return h, true
}
