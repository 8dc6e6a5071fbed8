package chaos

import (
	"errors"
	"net"

	"github.com/coppice-ldl/coppice/harness/netlab"
	"github.com/coppice-ldl/coppice/harness/proc"
)

// port is what one of a coordinator's ports is for, and how far it is above the first.
type port int

// The ports of a coordinator that other coordinators use. NATS clients use the port before the last.
const (
	httpPort  port = 0
	raftPort  port = 1
	routePort port = 3
)

// between lists the ports by which coordinators reach each other.
var between = []port{httpPort, raftPort, routePort}

// lab is a network on which each process has a host. This process has two addresses on it:
// clients are behind links as all hosts are; who looks on is not. A nil lab is loopback.
type lab struct {
	network *netlab.Network
	looks   *netlab.Host
}

// The names of hosts that have none of a cluster's processes.
const (
	clientsHost = "clients"
	looksHost   = "observer"
	natsHost    = "nats"
)

func newLab(s netlab.Settings, seed uint64) (*lab, error) {
	n, err := netlab.New(s, seed)
	if err != nil {
		return nil, err
	}
	_, looks, err := n.Attach(clientsHost, looksHost)
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return &lab{n, looks}, nil
}

// host returns the host of a process.
func (l *lab) host(name string) (proc.Host, error) { return l.network.Host(name) }

// observer returns what connects the observer of the suite.
func (l *lab) observer() *net.Dialer {
	if l == nil {
		return &net.Dialer{}
	}
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(l.looks.Address())}}
}

// cut drops what one host sends another over some ports of coordinators, whichever of the two
// dialled; without ports it drops everything.
func (l *lab) cut(from, to string, over ...port) {
	c := netlab.Cut{From: from, To: to}
	for _, k := range over {
		c.Ports = append(c.Ports, proc.HostPort+uint16(k))
	}
	l.network.Cut(c)
}

// isolate drops everything to and from a host.
func (l *lab) isolate(name string) {
	l.network.Cut(netlab.Cut{From: name}, netlab.Cut{To: name})
}
