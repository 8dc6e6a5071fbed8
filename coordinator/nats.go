package coordinator

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/protocol/bus"
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
		Advertise: strings.TrimPrefix(n.roster.self.NATS, "nats://"), AdvertiseRoutes: n.roster.self.Routes,
		Ping: n.cfg.timeouts.Ping, Log: n.cfg.Log,
		Pending: n.cfg.Budget.parts().send, Connections: n.cfg.Budget.Connections,
		Rights: func(name string) bus.Rights {
			return bus.Rights{Send: n.subjects.WorkerSends(), Listen: n.subjects.WorkerHears(name)}
		},
	}
	// Also where it is alone: others may join.
	if options.RouteHost, options.RoutePort, err = hostPort("NATS routes", n.cfg.RouteAddr); err != nil {
		return nil, err
	}
	if options.RouteHost == "" {
		options.RouteHost = "0.0.0.0"
	}
	options.Routes = n.routes()
	n.releaseReserved()
	s, err := bus.StartServer(options)
	var cannot *bus.ListenError
	switch {
	case !errors.As(err, &cannot):
		return s, err
	case cannot.Routes:
		return nil, n.cfg.listenError(3, n.cfg.RouteAddr, err)
	}
	return nil, n.cfg.listenError(2, n.cfg.NATSAddr, err)
}

// routes lists where the NATS servers of the other coordinators take routes.
func (n *node) routes() (urls []string) {
	for _, m := range n.roster.known() {
		if m.ID != n.cfg.ID && m.Routes != "" {
			urls = append(urls, "nats://"+m.Routes)
		}
	}
	return urls
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
	for _, m := range n.roster.known() {
		urls = append(urls, m.NATS)
	}
	return urls
}
