package coordinator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// messaging connects this coordinator to workers and to the other coordinators' NATS:
// an embedded NATS server, unless NATS is external, and the connection of this process.
type messaging struct {
	cfg    *settings
	book   *addressBook
	conn   *bus.Conn
	server *bus.Server // nil if NATS is external

	reserved []net.Listener // at the ports of the server until it starts
	routes   []string       // of the server; only open and updateRoutes use it
}

// reserveNATS reserves the ports of the embedded server.
func reserveNATS(cfg *settings) (*messaging, error) {
	m := &messaging{cfg: cfg}
	if cfg.NATS != "" {
		return m, nil
	}
	for _, port := range []int{2, 3} {
		l, err := cfg.listen(port)
		if err != nil {
			m.release()
			return nil, err
		}
		m.reserved = append(m.reserved, l)
	}
	return m, nil
}

// release closes the listeners of reserveNATS.
func (m *messaging) release() {
	for _, l := range m.reserved {
		l.Close()
	}
	m.reserved = nil
}

// open starts the server and connects this process. The caller closes m also after an
// error.
func (m *messaging) open(ctx context.Context, book *addressBook, subjects protocol.Subjects,
	traffic bus.Traffic) (err error) {
	m.book = book
	budget := m.cfg.Budget.parts()
	options := bus.Options{
		Name: "coordinator " + m.cfg.ID, Answers: subjects.Inbox(m.cfg.ID), Ping: m.cfg.timeouts.Ping, Traffic: traffic,
		Log:      m.cfg.Log,
		Received: int(budget.received), Backlog: int(budget.backlog), MayAnswer: subjects.MayAnswer,
	}
	if m.cfg.NATS != "" {
		options.URLs, options.TLS = strings.Split(m.cfg.NATS, ","), m.cfg.TLS
	} else {
		if m.server, err = m.startServer(subjects); err != nil {
			return err
		}
		options.Server = m.server
	}
	ctx, cancel := context.WithTimeout(ctx, protocol.NATSStart)
	defer cancel()
	m.conn, err = bus.Connect(ctx, options)
	return err
}

// startServer starts the embedded server with routes to the servers of the other
// coordinators. It also accepts routes if this coordinator is alone: others may join.
func (m *messaging) startServer(subjects protocol.Subjects) (*bus.Server, error) {
	cfg, self := m.cfg, m.book.self
	host, port, err := hostPort("NATS clients", cfg.Listen.NATS)
	if err != nil {
		return nil, err
	}
	routeHost, routePort, err := hostPort("NATS routes", cfg.Listen.Routes)
	if err != nil {
		return nil, err
	}
	if routeHost == "" {
		routeHost = "0.0.0.0"
	}
	m.routes = m.book.routes()
	m.release()
	s, err := bus.StartServer(bus.ServerOptions{
		Name: cfg.ID, Host: host, ClientPort: port, RouteHost: routeHost, RoutePort: routePort, Cluster: subjects.Cluster,
		Advertise: strings.TrimPrefix(self.NATS, "nats://"), AdvertiseRoutes: self.Routes, Routes: m.routes,
		Ping: cfg.timeouts.Ping, Log: cfg.Log, TLS: cfg.TLS, Handshake: cfg.timeouts.Handshake(),
		Pending: cfg.Budget.parts().send, Connections: cfg.Budget.Connections, Closed: cfg.TLS != nil,
		Rights: func(role rights.Role, name, client string) rights.NATS {
			return rights.OnNATS(subjects, role, name, client)
		},
	})
	var cannot *bus.ListenError
	switch {
	case !errors.As(err, &cannot):
		return s, err
	case cannot.Routes:
		return nil, cfg.listenError(3, err)
	}
	return nil, cfg.listenError(2, err)
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

// disconnect closes the connections of a client to the embedded server.
func (m *messaging) disconnect(client string) {
	if m.server != nil {
		m.server.Disconnect(client)
	}
}

// admit accepts clients. Before the log is open, it is not known which certificates are revoked.
func (m *messaging) admit() {
	if m.server != nil {
		m.server.Admit()
	}
}

func (m *messaging) close() {
	if m.conn != nil {
		m.conn.Close()
	}
	if m.server != nil {
		m.server.Close()
	}
}

// urls lists the NATS servers for workers.
func (m *messaging) urls() (urls []string) {
	if m.cfg.NATS != "" {
		return strings.Split(m.cfg.NATS, ",")
	}
	for _, e := range m.book.known() {
		urls = append(urls, e.NATS)
	}
	return urls
}

// trouble returns why workers cannot be reached, or nil: this process is not connected,
// or the embedded server has no routes to the majority of the others.
func (m *messaging) trouble() error {
	if !m.conn.Connected() {
		return errors.New("this coordinator is not connected to NATS")
	}
	if m.server == nil {
		return nil
	}
	voters, _ := m.book.voters()
	if reached := len(m.server.Routes()) + 1; reached <= (len(voters)+1)/2 {
		return fmt.Errorf("NATS on this coordinator is connected to only %d of the %d other coordinators", reached-1,
			len(voters))
	}
	return nil
}

// updateRoutes gives the embedded server the routes of the current members.
func (m *messaging) updateRoutes() {
	routes := m.book.routes()
	if m.server == nil || slices.Equal(routes, m.routes) {
		return
	}
	if err := m.server.SetRoutes(routes); err != nil {
		m.cfg.Log.Warn("the NATS routes could not be changed to the new list of members", "error", err)
		return
	}
	m.routes = routes
}

// divertClients disconnects the clients of the embedded server while this coordinator
// is cut off from the majority: no leader hears them here, and they hear none.
// Afterwards they may connect again. It returns when ctx is done. leader returns the id
// of the leader that Raft hears, or "".
func (m *messaging) divertClients(ctx context.Context, leader func() string) {
	if m.server == nil {
		return
	}
	// A leader keeps its clients whatever its routes do: workers look for it.
	cutOff := func() error {
		switch leader() {
		case "":
			return errors.New("this coordinator knows no leader")
		case m.cfg.ID:
			return nil
		}
		return m.trouble()
	}
	healthy, diverted := time.Now(), 0
	for range wait.Every(ctx, m.cfg.timeouts.CutOff/4) {
		why := cutOff()
		switch {
		case why == nil:
			healthy, diverted = time.Now(), 0
			if !m.server.Admits() {
				m.server.Admit()
				m.cfg.Log.Info("NATS clients can connect again")
			}
		// Twice, because a client may have connected just before the first time.
		case time.Since(healthy) >= m.cfg.timeouts.CutOff && diverted < 2:
			diverted++
			clients := m.server.TurnAway()
			m.cfg.Log.Warn("NATS clients are disconnected, so that they connect to another coordinator", "reason", why,
				"clients", clients)
		}
	}
}
