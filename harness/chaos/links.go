package chaos

import (
	"fmt"
	"net"
	"strconv"

	"github.com/coppice-ldl/coppice/harness/chaos/proxy"
	"github.com/coppice-ldl/coppice/harness/chaos/system"
)

// port is what one of a coordinator's ports is for, and how far it is above the first.
type port int

// The ports of a coordinator.
const (
	httpPort port = iota
	raftPort
	natsPort
	routePort
	ports
)

// between lists the ports by which coordinators reach each other.
var between = []port{httpPort, raftPort, routePort}

// links are the ways between coordinators, for partitions.
type links interface {
	// cut holds back what one coordinator sends another over some ports, whichever of the
	// two dialled.
	cut(from, to string, over []port)
	// isolate holds back everything to and from a coordinator.
	isolate(name string)
	heal()
	// watched returns the addresses at which an observer reaches the coordinators.
	watched(servers []string) []string
	close() error
}

// proxies stand in front of the coordinators, one for each port: all connections
// to a coordinator go through a proxy.
type proxies struct {
	before  map[string][]*proxy.Proxy // by coordinator, then by port
	servers map[string]string         // where HTTP is behind them, by where it is reached
}

func newProxies() *proxies {
	return &proxies{before: make(map[string][]*proxy.Proxy), servers: make(map[string]string)}
}

// add puts a coordinator, which listens at one address, behind proxies at another: see
// proc.Config.Behind.
func (l *proxies) add(name, reached, listens string) error {
	l.closeOf(name)
	l.before[name], l.servers[reached] = nil, listens
	for k := range ports {
		p, err := proxy.NewAt(above(reached, k), above(listens, k), system.Dialler)
		if err != nil {
			return fmt.Errorf("a proxy in front of %s cannot be started: %w", name, err)
		}
		l.before[name] = append(l.before[name], p)
	}
	return nil
}

func (l *proxies) watched(servers []string) (listens []string) {
	for _, s := range servers {
		listens = append(listens, l.servers[s])
	}
	return listens
}

// above returns the address that is so many ports above another.
func above(address string, k port) string {
	host, text, err := net.SplitHostPort(address)
	n, bad := strconv.Atoi(text)
	if err != nil || bad != nil {
		panic("chaos: " + address + " is no address with a port")
	}
	return net.JoinHostPort(host, strconv.Itoa(n+int(k)))
}

func (l *proxies) cut(from, to string, over []port) {
	for _, k := range over {
		l.before[to][k].HoldFrom(from, proxy.There)
		l.before[from][k].HoldFrom(to, proxy.Back)
	}
}

func (l *proxies) isolate(name string) {
	for _, p := range l.before[name] {
		p.Hold(proxy.There)
		p.Hold(proxy.Back)
	}
	for other := range l.before {
		if other != name {
			l.cut(name, other, between)
			l.cut(other, name, between)
		}
	}
}

func (l *proxies) heal() {
	for _, of := range l.before {
		for _, p := range of {
			p.Heal()
		}
	}
}

// closeOf ends the proxies before a coordinator.
func (l *proxies) closeOf(name string) {
	for _, p := range l.before[name] {
		p.Close()
	}
}

func (l *proxies) close() error {
	for name := range l.before {
		l.closeOf(name)
	}
	return nil
}
