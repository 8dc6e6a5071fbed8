package coordinator

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/internal/bus"
)

// startNATS starts the embedded NATS server, with routes to those of the other
// coordinators.
func (n *node) startNATS() (*bus.Server, error) {
	host, port, err := hostPort("NATS clients", n.cfg.NATSAddr)
	if err != nil {
		return nil, err
	}
	options := bus.ServerOptions{
		Name: n.cfg.ID, Host: host, ClientPort: port, Cluster: n.subjects.Cluster,
		Advertise: n.cfg.NATSAddr, Log: n.cfg.Log,
	}
	if len(n.cfg.Peers) > 1 {
		if _, options.RoutePort, err = hostPort("NATS routes", n.cfg.RouteAddr); err != nil {
			return nil, err
		}
		for _, p := range n.cfg.Peers {
			if p.ID != n.cfg.ID {
				options.Routes = append(options.Routes, "nats://"+p.addr(3))
			}
		}
	}
	return bus.StartServer(options)
}

func hostPort(what, addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil {
		return "", 0, fmt.Errorf("%w: the address for %s, %q: %w", ErrUsage, what, addr, err)
	}
	return host, port, nil
}

// natsURLs lists where workers connect to.
func (n *node) natsURLs() []string {
	if n.cfg.NATS != "" {
		return strings.Split(n.cfg.NATS, ",")
	}
	var urls []string
	for _, p := range n.cfg.Peers {
		addr := p.addr(2)
		if p.ID == n.cfg.ID {
			addr = n.cfg.NATSAddr
		}
		urls = append(urls, "nats://"+addr)
	}
	return urls
}
