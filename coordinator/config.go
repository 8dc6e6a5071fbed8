// Package coordinator is one member of the replicated coordinator: Raft, NATS, blobs,
// the HTTP API, and, on the leader, the driver of jobs. DESIGN.md explains its
// structure.
package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coppice-ldl/coppice/coordinator/api"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/protocol"
)

// Peer is a coordinator of the cluster. By default, HTTP uses Port, Raft the next port,
// and NATS clients and NATS routes the two ports after.
type Peer struct {
	ID   string
	Host string
	Port int
}

// addr returns the address with a port that is offset above Port.
func (p Peer) addr(offset int) string { return net.JoinHostPort(p.Host, strconv.Itoa(p.Port+offset)) }

// span names the n ports from Port on.
func (p Peer) span(n int) string { return fmt.Sprintf("%s to %d", p.addr(0), p.Port+n-1) }

// ports lists what a coordinator's ports are for, in order from HTTP's port on, and the
// flag that moves each. With an external NATS a coordinator has only the first two.
var ports = [...]struct{ what, flag string }{
	{"HTTP", "--http"}, {"Raft", "--raft"}, {"NATS clients", "--nats-listen"}, {"NATS routes", "--nats-routes"},
}

// fewestPorts is the number of ports that every coordinator has.
const fewestPorts = 2

// LastPort is the greatest port of a coordinator's HTTP; its other ports are above it.
const LastPort = 65535 - (len(ports) - 1)

// Listen has the addresses on which a coordinator listens. The default of each follows
// from Config.Peers.
type Listen struct{ HTTP, Raft, NATS, Routes string }

// all lists the addresses in the order of ports.
func (l *Listen) all() [len(ports)]*string {
	return [...]*string{&l.HTTP, &l.Raft, &l.NATS, &l.Routes}
}

// Exposure says what is open to processes and callers without an identity.
type Exposure struct {
	// Insecure is true if connections in the clear may leave this machine.
	Insecure bool
	// Hosts are names with a dot by which HTTP is reached in the clear. The hosts of Peers are accepted too.
	Hosts []string
	// OpenMetrics is true if callers without an identity may read /metrics.
	OpenMetrics bool
	// PublicURL is where people reach the cluster through a proxy, such as https://example.org/coppice; empty: there is no
	// proxy. Requests may have its path before theirs.
	PublicURL string
}

// Config describes a coordinator.
type Config struct {
	ID  string
	Dir string // of Raft's log and snapshots, and of the blobs
	// Peers lists all coordinators, this one included; the list is the same on each of
	// them. If it is empty, this coordinator is alone.
	Peers []Peer
	// Join lists HTTP addresses of coordinators. At its first start, this coordinator
	// joins their cluster. Peers then lists only this coordinator.
	Join   []string
	Listen Listen
	// Proxied is true if others reach this coordinator at its address in Peers, even if
	// it listens at another one.
	Proxied bool
	// NATS is the URL of an external NATS, or several URLs separated by commas. If it
	// is empty, each coordinator has an embedded NATS server.
	NATS string
	// Heartbeat is the interval from which every timeout derives; 0 means
	// DefaultHeartbeat. Election, if it is not 0, replaces the derived election timeout
	// of Raft.
	Heartbeat, Election time.Duration
	Concurrent          int   // jobs that run at once; 0 means DefaultConcurrent
	SnapshotBytes       int64 // size of the log at which a snapshot is taken; 0 means the default of the store
	Quotas              Quotas
	// BlobGrace is how long a blob stays that nothing refers to; 0 means an hour. An
	// import uploads its blobs before the manifest refers to them.
	BlobGrace time.Duration
	KeepJobs  int // ended jobs that the leader keeps; 0 means all
	// Lean, if set, is called when a job with large messages begins on this leader. The
	// function that it returns is called when the job ends. In between, this process
	// should have little garbage.
	Lean   func() (end func())
	Budget Budget
	// TLS has the certificates of this coordinator, with role coordinator and its id; nil: all
	// ports are in the clear. Then each address is a loopback address, unless Insecure is true.
	TLS *certs.Source
	Exposure
	Log *slog.Logger // nil discards
	// Up, if set, is called once the coordinator answers, and returns soon after ctx is done. check says why this
	// coordinator cannot work, whatever the other processes do; nil: it can.
	Up func(ctx context.Context, check func(ctx context.Context) error)
}

// The defaults of Config.
const (
	DefaultPort       = 7100
	DefaultHeartbeat  = protocol.DefaultHeartbeat
	DefaultConcurrent = 4
)

// Quotas bound what users may put on a cluster; 0 means the default, a negative number
// no bound. Message follows from the Budget.
type Quotas = api.Quotas

// The defaults of Quotas.
const (
	DefaultQueue     = 1000
	DefaultJobMemory = 8 << 30
	DefaultBlobBytes = 256 << 30
)

// Budget bounds what workers, clients and other coordinators take of this process,
// whatever they do; 0 means the default. Quotas bound what jobs take.
type Budget struct {
	Messages    int64 // bytes of messages in transit; parts divides them
	Connections int   // open HTTP connections, and as many NATS clients
}

// The defaults and least values of Budget.
const (
	DefaultMessages    = 512 << 20
	DefaultConnections = 512
	LeastMessages      = 64 << 20
	LeastConnections   = 8
)

const (
	// ownDescriptors is how many files a coordinator opens apart from connections of
	// clients: its log and snapshots, Raft, routes, and blobs that it copies.
	ownDescriptors = 64
	// perConnection is the number of files for one HTTP connection, which may read a
	// blob or forward to the leader, and one NATS client.
	perConnection = 3
)

// parts are the parts of Budget.Messages in bytes. Their sum is at most the whole.
type parts struct {
	send     int64 // waits in NATS for clients to read it
	received int64 // fragments of unfinished messages, and messages that a job has not read
	backlog  int64 // waits for each of the two subscriptions to what workers send
	bodies   int64 // bodies of HTTP requests
}

func (b Budget) parts() parts {
	part := b.Messages / 16
	return parts{send: 6 * part, received: 5 * part, backlog: 3 * part / 2, bodies: 2 * part}
}

// largest returns the size of the largest message that can pass: it must fit into the
// memory of messages to send, and into the memory of received fragments.
func (p parts) largest() int64 { return min(p.send, p.received) }

// prepared fills in the defaults and checks the values.
func (b Budget) prepared() (Budget, error) {
	b.Messages, b.Connections = cmp.Or(b.Messages, DefaultMessages), cmp.Or(b.Connections, DefaultConnections)
	if b.Messages < LeastMessages {
		return b, fmt.Errorf("%w: --message-memory: want at least %[3]s, got %[2]s", ErrUsage, units.Format(b.Messages),
			units.Format(LeastMessages))
	}
	if b.Connections < LeastConnections {
		return b, fmt.Errorf("%w: --max-connections: want at least %[3]d, got %[2]d", ErrUsage, b.Connections,
			LeastConnections)
	}
	return b, nil
}

// within lowers Connections to the number for which the given descriptors are enough.
// note is not empty if it did.
func (b Budget) within(descriptors uint64) (_ Budget, note string, err error) {
	need := uint64(ownDescriptors + perConnection*b.Connections)
	if descriptors >= need {
		return b, "", nil
	}
	if least := uint64(ownDescriptors + perConnection*LeastConnections); descriptors < least {
		return b, "", fmt.Errorf("the limit of open files (ulimit -n) is %d, but a coordinator needs at least %d",
			descriptors, least)
	}
	asked := b.Connections
	b.Connections = int(descriptors-ownDescriptors) / perConnection
	return b, fmt.Sprintf("the limit of open files (ulimit -n) is %d, but %d connections need %d: at most %d "+
		"connections are accepted", descriptors, asked, need, b.Connections), nil
}

// settings is a Config that is checked and complete, and what this process knows from
// its start.
type settings struct {
	Config
	timeouts protocol.Timeouts
	kept     memberFile // in the folder when the process started
	process  string     // drawn at random for this process
	asker    *asker
	exposed  bool     // true if connections with other machines are in the clear
	public   *url.URL // PublicURL; empty: there is none
}

// patience is how long another coordinator may take to describe itself.
func (s *settings) patience() time.Duration { return max(time.Second, 5*s.Heartbeat) }

// prepared checks the configuration and fills in the defaults. runs is true for a
// coordinator that will run, and false if only its folder is made.
func (c Config) prepared(runs bool) (*settings, error) {
	s := &settings{Config: c, process: store.NewID()}
	if err := protocol.CheckID(s.ID); err != nil {
		return nil, fmt.Errorf("%w: --id: %w", ErrUsage, err)
	}
	if err := s.TLS.Belongs(s.ID, certs.Coordinator); err != nil {
		return nil, fmt.Errorf("%w: --tls-dir: %w", ErrUsage, err)
	}
	if err := s.preparePublic(); err != nil {
		return nil, fmt.Errorf("%w: --public-url: %w", ErrUsage, err)
	}
	if err := checkFolder(s.Dir); err != nil {
		return nil, err
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	s.asker = newAsker(s.TLS, s.Log)
	var damaged, err error
	if s.kept, damaged, err = readMembers(s.Dir); err != nil {
		return nil, err
	}
	if damaged != nil {
		s.Log.Error("the file of the list of members is damaged; the list comes from its copy or from the log, and is "+
			"written again", "error", damaged)
	}
	if err := checkRestored(s.Dir); err != nil {
		return nil, err
	}
	if err := s.preparePlace(runs); err != nil {
		return nil, err
	}
	if s.timeouts, err = protocol.NewTimeouts(s.Heartbeat, s.Election); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	s.Heartbeat = s.timeouts.Heartbeat
	s.Concurrent = cmp.Or(s.Concurrent, DefaultConcurrent)
	s.BlobGrace = cmp.Or(s.BlobGrace, protocol.BlobGrace)
	if s.KeepJobs < 0 {
		return nil, fmt.Errorf("%w: the number of ended jobs to keep must be at least 0 (0 keeps all), got %d", ErrUsage,
			s.KeepJobs)
	}
	s.Quotas.Queue = max(0, cmp.Or(s.Quotas.Queue, DefaultQueue))
	s.Quotas.JobMemory = max(0, cmp.Or(s.Quotas.JobMemory, DefaultJobMemory))
	s.Quotas.BlobBytes = max(0, cmp.Or(s.Quotas.BlobBytes, DefaultBlobBytes))
	if s.Budget, err = s.Budget.prepared(); err != nil {
		return nil, err
	}
	var limit unix.Rlimit // Go has raised the soft limit to the hard one
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return nil, fmt.Errorf("the limit of open files (ulimit -n) cannot be read: %w", err)
	}
	var note string
	if s.Budget, note, err = s.Budget.within(limit.Cur); note != "" {
		s.Log.Warn(note)
	}
	s.Quotas.Message = s.Budget.parts().largest()
	return s, err
}

// preparePublic reads PublicURL.
func (s *settings) preparePublic() (err error) {
	if s.public = new(url.URL); s.PublicURL == "" {
		return nil
	}
	if s.public, err = protocol.ParsePublicURL(s.PublicURL); err == nil && s.TLS != nil && s.public.Scheme != "https" {
		err = errors.New("want https:// on a cluster with TLS: browsers send the cookie of a login over TLS only")
	}
	return err
}

// preparePlace completes and checks the addresses.
func (s *settings) preparePlace(runs bool) error {
	if s.Proxied && len(s.Peers) == 0 {
		return fmt.Errorf("%w: --behind-proxy needs --peers or --address, the addresses at which others reach this "+
			"coordinator", ErrUsage)
	}
	if len(s.Join) > 0 && len(s.Peers) > 1 {
		return fmt.Errorf("%w: --join-cluster and --peers exclude each other: the running cluster names its own members",
			ErrUsage)
	}
	if len(s.Peers) == 0 { // the last address in the folder counts, or the default port
		s.Peers = []Peer{{s.ID, "127.0.0.1", DefaultPort}}
		if was, ok := s.kept.find(s.ID); ok {
			if err := protocol.CheckReachable(was.HTTP); err != nil {
				return fmt.Errorf("%w: %s says that this coordinator is at %q: %w; give the address at which others reach it "+
					"with --address", ErrUsage, filepath.Join(s.Dir, membersName), was.HTTP, err)
			}
			for i, address := range []string{was.HTTP, was.Raft, strings.TrimPrefix(was.NATS, "nats://"), was.Routes} {
				to := s.Listen.all()[i]
				*to = cmp.Or(*to, address)
			}
		}
	}
	seen := make(map[string]bool)
	for _, p := range s.Peers {
		if seen[p.ID] {
			return fmt.Errorf("%w: --peers names %q twice", ErrUsage, p.ID)
		}
		seen[p.ID] = true
	}
	self, ok := s.peer()
	if !ok {
		return fmt.Errorf("%w: --peers does not name this coordinator, %q", ErrUsage, s.ID)
	}
	if n := len(s.Peers); len(s.kept.Members) == 0 && !s.kept.Used && (n%2 == 0 || n > 7) {
		return fmt.Errorf("%w: --peers names %d coordinators, want 1, 3 or 5", ErrUsage, n)
	}
	for i, address := range s.Listen.all() {
		*address = cmp.Or(*address, self.addr(i))
	}
	if err := s.checkReachable(); err != nil {
		return err
	}
	if runs && s.NATS == "" {
		return s.checkApart(len(ports))
	}
	return s.checkApart(fewestPorts)
}

// peer returns this coordinator's entry in Peers.
func (c *Config) peer() (Peer, bool) {
	i := slices.IndexFunc(c.Peers, func(p Peer) bool { return p.ID == c.ID })
	if i < 0 {
		return Peer{}, false
	}
	return c.Peers[i], true
}

// peerList returns Peers as a text that must be the same on each coordinator.
func (c *Config) peerList() string {
	var names []string
	for _, p := range c.Peers {
		names = append(names, p.ID+"="+p.addr(0))
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// entryOf describes a coordinator that is at its address in Peers.
func (c *Config) entryOf(p Peer) protocol.MemberEntry {
	m := protocol.MemberEntry{ID: p.ID, HTTP: p.addr(0), Raft: p.addr(1), NATS: "nats://" + p.addr(2),
		Version: version.String}
	if c.NATS == "" {
		m.Routes = p.addr(3)
	}
	return m
}

// entry describes this coordinator.
func (c *Config) entry() protocol.MemberEntry {
	self, ok := c.peer()
	if ok && c.Proxied {
		return c.entryOf(self)
	}
	// Others reach an address of all interfaces at the host in Peers.
	reached := func(address string) string {
		host, port, err := net.SplitHostPort(address)
		if err != nil || !ok || host != "" && !net.ParseIP(host).IsUnspecified() {
			return address
		}
		return net.JoinHostPort(self.Host, port)
	}
	m := protocol.MemberEntry{
		ID: c.ID, HTTP: reached(c.Listen.HTTP), Raft: reached(c.Listen.Raft), NATS: "nats://" + reached(c.Listen.NATS),
		Version: version.String,
	}
	if c.NATS == "" {
		m.Routes = reached(c.Listen.Routes)
	}
	return m
}

// advertised lists the addresses of a coordinator in the order of ports.
func advertised(m protocol.MemberEntry) []string {
	all := []string{m.HTTP, m.Raft, strings.TrimPrefix(m.NATS, "nats://"), m.Routes}
	if m.Routes == "" { // its NATS is external
		return all[:fewestPorts]
	}
	return all
}

// checkReachable refuses invalid ids, and addresses at which others cannot reach a
// coordinator.
func (c *Config) checkReachable() error {
	for _, p := range c.Peers {
		if err := protocol.CheckID(p.ID); err != nil {
			return fmt.Errorf("%w: --peers: %w", ErrUsage, err)
		}
		if err := protocol.CheckReachable(p.addr(0)); err != nil {
			return fmt.Errorf("%w: %s=%s: %w", ErrUsage, p.ID, p.addr(0), Unreachable(err))
		}
		if p.Port > LastPort {
			return fmt.Errorf("%w: %s=%s: want a port of at most %d; Raft and NATS take the ports above it", ErrUsage, p.ID,
				p.addr(0), LastPort)
		}
	}
	for _, address := range c.Join {
		if err := protocol.CheckAddress(address); err != nil {
			return fmt.Errorf("%w: --join-cluster %.80q: %w", ErrUsage, address, err)
		}
	}
	for i, address := range advertised(c.entry()) {
		if err := protocol.CheckReachable(address); err != nil {
			return fmt.Errorf("%w: the other coordinators could not reach %s at %s: %w; see %s", ErrUsage, ports[i].what,
				address, err, ports[i].flag)
		}
	}
	return nil
}

// Unreachable adds a remedy to an error of protocol.CheckReachable about a coordinator.
func Unreachable(err error) error {
	return fmt.Errorf("%w; give the address at which other machines reach this coordinator; to listen on all "+
		"interfaces, set --http 0.0.0.0:PORT, and --raft, --nats-listen and --nats-routes likewise", err)
}

// checkApart refuses two uses of one address, by this coordinator or by coordinators of
// one host. Each coordinator uses n ports in a row.
func (c *Config) checkApart(n int) error {
	for i, p := range c.Peers {
		for _, q := range c.Peers[:i] {
			if protocol.SameHost(p.Host, q.Host) && p.Port < q.Port+n && q.Port < p.Port+n {
				return fmt.Errorf("%w: --peers: %s and %s on the same host need some of the same ports: %s uses %s, %s uses %s; "+
					"leave %d ports to each, as with %d, %d and %d",
					ErrUsage, q.ID, p.ID, q.ID, q.span(n), p.ID, p.span(n), n, DefaultPort, DefaultPort+n, DefaultPort+2*n)
			}
		}
	}
	for i, address := range advertised(c.entry()) {
		for _, p := range c.Peers {
			for k := range n {
				if p.ID != c.ID && protocol.SamePlace(address, p.addr(k)) {
					return fmt.Errorf("%w: %s: %s of this coordinator is at %s, but --peers gives that address to %s of %s (%s)",
						ErrUsage, ports[i].flag, ports[i].what, address, ports[k].what, p.ID, p.span(n))
				}
			}
		}
	}
	all := c.Listen.all()
	list := all[:]
	if c.NATS != "" {
		list = all[:fewestPorts]
	}
	for i, a := range list {
		for k, b := range list[:i] {
			if overlap(*a, *b) {
				return fmt.Errorf("%w: %s %s and %s %s are the same address; each needs its own", ErrUsage, ports[k].flag, *b,
					ports[i].flag, *a)
			}
		}
	}
	return nil
}

// overlap reports whether a process that listens at one address cannot listen at the
// other.
func overlap(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	allInterfaces := func(host string) bool { return host == "" || net.ParseIP(host).IsUnspecified() }
	return allInterfaces(hostA) || allInterfaces(hostB) || protocol.SameHost(hostA, hostB)
}

// listen listens at the address of a port, by its index in ports. The error says what
// to do.
func (c *Config) listen(port int) (net.Listener, error) {
	address := *c.Listen.all()[port]
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, c.listenError(port, err)
	}
	return l, nil
}

// listenError adds a remedy to the error of listening at a port, by its index in ports.
func (c *Config) listenError(port int, err error) error {
	remedy := ""
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		remedy = "; this machine does not have that address; behind a NAT or proxy, set --behind-proxy and the addresses " +
			"to listen on: --http, --raft, --nats-listen and --nats-routes"
		if c.NATS != "" {
			remedy = "; this machine does not have that address; behind a NAT or proxy, set --behind-proxy and the addresses " +
				"to listen on: --http and --raft"
		}
	case errors.Is(err, syscall.EADDRINUSE) && port == 0 && len(c.Peers) > 1:
		remedy = "; stop the process that listens there, or choose another port in --peers on every coordinator"
	case errors.Is(err, syscall.EADDRINUSE):
		remedy = "; stop the process that listens there, or choose another port with " + ports[port].flag
	}
	return fmt.Errorf("cannot listen on %s for %s: %w%s", *c.Listen.all()[port], ports[port].what, cause(err), remedy)
}

// cause returns why a connection or a listener failed, without the address.
func cause(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	if o := (*net.OpError)(nil); errors.As(err, &o) {
		err = o.Err
	}
	return err
}

// lostFolder adds a remedy to an error that wraps files.ErrGone, and returns any other
// error unchanged. members are all known coordinators.
func (c *Config) lostFolder(err error, members []protocol.MemberEntry) error {
	if !errors.Is(err, files.ErrGone) {
		return err
	}
	remedy := "restore a backup: coppice restore FILE --dir " + c.Dir
	switch {
	case len(members) > 1 && (len(c.Peers) > 1 || len(c.Join) > 0):
		remedy = "start this coordinator again with the same flags: it fetches its data from the other coordinators"
	case len(members) > 1:
		var peers []string
		for _, m := range members {
			peers = append(peers, m.ID+"="+m.HTTP)
		}
		remedy = fmt.Sprintf("start this coordinator again with --peers %s: it fetches its data from the other coordinators",
			strings.Join(peers, ","))
	}
	return fmt.Errorf("the coordinator's folder is lost: %w; the coordinator accepts no data any more; bring the folder "+
		"back, or %s", err, remedy)
}
