package chaos

import (
	"errors"
	"net"

	"github.com/coppice-ldl/coppice/harness/netlab"
	"github.com/coppice-ldl/coppice/harness/proc"
)

// lab is a network on which each process has a host. This process has two addresses on it:
// clients, and the NATS and the proxies of the external leg, are behind links as all hosts
// are; who looks on is not. A nil lab is loopback.
type lab struct {
	network *netlab.Network
	clients *netlab.Host
	looks   *netlab.Host
}

// The names of this process's addresses; those of the others are short.
const (
	clientsHost = "clients"
	looksHost   = "observer"
)

func newLab(s netlab.Settings, seed uint64) (*lab, error) {
	n, err := netlab.New(s, seed)
	if err != nil {
		return nil, err
	}
	l := &lab{network: n}
	if l.clients, l.looks, err = n.Attach(clientsHost, looksHost); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return l, nil
}

// host returns the host of a process.
func (l *lab) host(name string) (proc.Host, error) { return l.network.Host(name) }

// here returns an address of this process that others reach, with the port of one on
// loopback.
func (l *lab) here(address string) string {
	if l == nil {
		return address
	}
	_, p, err := net.SplitHostPort(address)
	if err != nil {
		panic("chaos: " + address + " is no address with a port")
	}
	return net.JoinHostPort(l.clients.Address(), p)
}

// observer returns what connects the observer of the suite.
func (l *lab) observer() *net.Dialer {
	if l == nil {
		return &net.Dialer{}
	}
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(l.looks.Address())}}
}

func (l *lab) cut(from, to string, over []port) {
	c := netlab.Cut{From: from, To: to}
	for _, k := range over {
		c.Ports = append(c.Ports, proc.HostPort+uint16(k))
	}
	l.network.Cut(c)
}

func (l *lab) isolate(name string) {
	l.network.Cut(netlab.Cut{From: name}, netlab.Cut{To: name})
}

func (l *lab) heal() { l.network.Heal() }

func (l *lab) watched(servers []string) []string { return servers }

func (l *lab) close() error { return l.network.Close() }

// nobody does not tell who dialled.
func nobody(net.Conn) string { return "" }
