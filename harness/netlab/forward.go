package netlab

import (
	"io"
	"net/netip"
)

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
