package coordinator

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/coppice-ldl/coppice/protocol"
)

// ports are where a coordinator listens, by their distance from that of HTTP: what for, and
// the flag that moves it. With an external NATS there are the first two only.
var ports = [...]struct{ what, flag string }{
	{"HTTP", "--http"}, {"Raft", "--raft"}, {"NATS clients", "--nats-listen"}, {"NATS routes", "--nats-routes"},
}

// LastPort is the greatest port of a coordinator's HTTP: the others are those above it.
const LastPort = 65535 - (len(ports) - 1)

// fewestPorts is how many of them every coordinator has.
const fewestPorts = 2

// listens lists where this coordinator listens, in the order of ports.
func (c *Config) listens() []string {
	all := []string{c.HTTPAddr, c.RaftAddr, c.NATSAddr, c.RouteAddr}
	if c.NATS != "" {
		return all[:fewestPorts]
	}
	return all
}

// tells lists where the others are told to reach a coordinator, in the order of ports.
func tells(m protocol.MemberEntry) []string {
	all := []string{m.HTTP, m.Raft, strings.TrimPrefix(m.NATS, "nats://"), m.Routes}
	if m.Routes == "" { // the NATS is not its own
		return all[:fewestPorts]
	}
	return all
}

// checkTold refuses addresses at which nobody else could reach a coordinator, and ids that
// cannot be one.
func (c *Config) checkTold() error {
	for _, p := range c.Peers {
		if err := protocol.CheckID(p.ID); err != nil {
			return fmt.Errorf("%w: --peers: %w", ErrUsage, err)
		}
		if err := protocol.CheckReachable(p.addr(0)); err != nil {
			return fmt.Errorf("%w: %s=%s: %w", ErrUsage, p.ID, p.addr(0), Unreachable(err))
		}
		if p.Port > LastPort {
			return fmt.Errorf("%w: %s=%s: want a port of at most %d; Raft and NATS take the ports above it", ErrUsage, p.ID, p.addr(0), LastPort)
		}
	}
	for _, address := range c.Join {
		if err := protocol.CheckAddress(address); err != nil {
			return fmt.Errorf("%w: --join-cluster %.80q: %w", ErrUsage, address, err)
		}
	}
	for i, address := range tells(c.entry()) {
		if err := protocol.CheckReachable(address); err != nil {
			return fmt.Errorf("%w: the other coordinators could not reach %s at %s: %w; see %s", ErrUsage, ports[i].what, address, err, ports[i].flag)
		}
	}
	return nil
}

// Unreachable adds to an error of protocol.CheckReachable about a coordinator what to do.
func Unreachable(err error) error {
	return fmt.Errorf("%w; give the address at which other machines reach this coordinator; to listen on all interfaces, set --http 0.0.0.0:PORT, and --raft, --nats-listen and --nats-routes likewise", err)
}

// checkApart refuses coordinators of one host whose ports meet. n is how many of them each
// has in a row from its own on.
func (c *Config) checkApart(n int) error {
	for i, p := range c.Peers {
		for _, q := range c.Peers[:i] {
			if protocol.SameHost(p.Host, q.Host) && p.Port < q.Port+n && q.Port < p.Port+n {
				return fmt.Errorf("%w: --peers: %s and %s on the same host need some of the same ports: %s uses %s, %s uses %s; leave %d ports to each, as with %d, %d and %d",
					ErrUsage, q.ID, p.ID, q.ID, q.span(n), p.ID, p.span(n), n, DefaultPort, DefaultPort+n, DefaultPort+2*n)
			}
		}
	}
	for i, address := range tells(c.entry()) {
		for _, p := range c.Peers {
			for k := range n {
				if p.ID != c.ID && protocol.SamePlace(address, p.addr(k)) {
					return fmt.Errorf("%w: %s: %s of this coordinator is at %s, but --peers gives that address to %s of %s (%s)", ErrUsage, ports[i].flag, ports[i].what, address, ports[k].what, p.ID, p.span(n))
				}
			}
		}
	}
	list := c.listens()
	for i, a := range list {
		for k, b := range list[:i] {
			if meet(a, b) {
				return fmt.Errorf("%w: %s %s and %s %s are the same address; each needs its own", ErrUsage, ports[k].flag, b, ports[i].flag, a)
			}
		}
	}
	return nil
}

// span says which ports a coordinator has.
func (p Peer) span(n int) string { return fmt.Sprintf("%s to %d", p.addr(0), p.Port+n-1) }

// meet reports whether a process that listens at one address cannot listen at the other.
func meet(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	return all(hostA) || all(hostB) || protocol.SameHost(hostA, hostB)
}

// all reports whether a host stands for all interfaces of this machine.
func all(host string) bool { return host == "" || net.ParseIP(host).IsUnspecified() }

// listenError says of a port, by its place in ports, why this coordinator cannot listen
// there, and what to do.
func (c *Config) listenError(port int, address string, err error) error {
	why := cause(err)
	remedy := ""
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		remedy = "; this machine does not have that address; behind a NAT or proxy, set --behind-proxy and the addresses to listen on: --http, --raft, --nats-listen and --nats-routes"
		if c.NATS != "" {
			remedy = "; this machine does not have that address; behind a NAT or proxy, set --behind-proxy and the addresses to listen on: --http and --raft"
		}
	case errors.Is(err, syscall.EADDRINUSE) && port == 0 && len(c.Peers) > 1:
		remedy = "; stop the process that listens there, or choose another port in --peers on every coordinator"
	case errors.Is(err, syscall.EADDRINUSE):
		remedy = "; stop the process that listens there, or choose another port with " + ports[port].flag
	}
	return fmt.Errorf("cannot listen on %s for %s: %w%s", address, ports[port].what, why, remedy)
}
