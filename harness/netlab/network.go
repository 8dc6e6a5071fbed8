package netlab

import (
	"encoding/binary"
	"errors"
	"fmt"
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
