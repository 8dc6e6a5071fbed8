package chaos

import (
	"fmt"
	"net"
	"strconv"

	"github.com/coppice-ldl/coppice/internal/chaos/proxy"
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

// links are the proxies before the coordinators, one for each port: whoever dials a
// coordinator, dials a proxy.
type links struct {
	proxies map[string][]*proxy.Proxy // by coordinator, then by port
	listens map[string]string         // where HTTP of a coordinator is behind them
}

func newLinks() *links {
	return &links{proxies: make(map[string][]*proxy.Proxy), listens: make(map[string]string)}
}

// add puts a coordinator, which listens at one address, behind proxies at another: see
// proc.Config.Behind.
func (l *links) add(name, reached, listens string) error {
	l.close(name)
	l.proxies[name], l.listens[name] = nil, listens
	for k := range ports {
		p, err := proxy.NewAt(above(reached, k), above(listens, k), dialler)
		if err != nil {
			return fmt.Errorf("a proxy before %s: %w", name, err)
		}
		l.proxies[name] = append(l.proxies[name], p)
	}
	return nil
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

// cut holds back what one coordinator sends another over some ports, whichever of the
// two dialled.
func (l *links) cut(from, to string, over []port) {
	for _, k := range over {
		l.proxies[to][k].HoldFrom(from, proxy.There)
		l.proxies[from][k].HoldFrom(to, proxy.Back)
	}
}

// isolate holds back everything to and from a coordinator.
func (l *links) isolate(name string) {
	for _, p := range l.proxies[name] {
		p.Hold(proxy.There)
		p.Hold(proxy.Back)
	}
	for other := range l.proxies {
		if other != name {
			l.cut(name, other, between)
			l.cut(other, name, between)
		}
	}
}

func (l *links) heal() {
	for _, of := range l.proxies {
		for _, p := range of {
			p.Heal()
		}
	}
}

// close ends the proxies before a coordinator.
func (l *links) close(name string) {
	for _, p := range l.proxies[name] {
		p.Close()
	}
}

func (l *links) closeAll() {
	for name := range l.proxies {
		l.close(name)
	}
}
