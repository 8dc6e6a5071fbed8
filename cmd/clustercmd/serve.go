package clustercmd

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/garbage"
	"github.com/coppice-ldl/coppice/internal/printable"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
	"github.com/coppice-ldl/coppice/worker"
)

// CoordinatorCmd is `coppice coordinator`.
type CoordinatorCmd struct {
	ID         string        `default:"a" help:"Id of this coordinator, one of the ids in --peers."`
	Dir        string        `placeholder:"DIR" help:"Folder of the log, the snapshots and the blobs; required."`
	Peers      []string      `placeholder:"ID=HOST[:PORT]" help:"All coordinators, one, three or five; the same list on each coordinator. HTTP uses PORT (default: 7100), Raft the next port, NATS clients and NATS routes the two ports after (default: only this coordinator, at 127.0.0.1:7100)."`
	Join       []string      `name:"join-cluster" placeholder:"HOST[:PORT]" help:"HTTP addresses of coordinators whose cluster to join, instead of --peers. This coordinator then waits until coppice cluster add adds it. Later starts find the cluster in the folder."`
	Address    string        `placeholder:"HOST[:PORT]" help:"Address of this coordinator, with --join-cluster. HTTP uses PORT, and Raft and NATS the three ports after PORT, as for --peers."`
	HTTP       string        `name:"http" placeholder:"HOST:PORT" help:"Address on which HTTP listens (default: the port in --peers)."`
	Raft       string        `placeholder:"HOST:PORT" help:"Address on which Raft listens (default: the port after HTTP's port)."`
	NATSListen string        `name:"nats-listen" placeholder:"HOST:PORT" help:"Address on which NATS listens for clients (default: the second port after HTTP's port)."`
	NATSRoutes string        `name:"nats-routes" placeholder:"HOST:PORT" help:"Address on which NATS listens for other coordinators (default: the third port after HTTP's port)."`
	Proxied    bool          `name:"behind-proxy" help:"This coordinator is behind a proxy or a NAT: other processes reach it at its address in --peers or --address, not at the addresses on which it listens."`
	Public     string        `name:"public-url" placeholder:"URL" help:"URL by which people reach the cluster through a proxy, such as https://example.org/coppice. Requests for its host are answered, with and without its path. Printed addresses of the page begin with it (default: there is no proxy)."`
	NATS       string        `name:"nats" placeholder:"URL" help:"NATS server to use instead of the embedded server."`
	Heartbeat  time.Duration `default:"100ms" help:"Heartbeat interval, 10ms to 1s; every timeout derives from this interval."`
	Election   time.Duration `name:"election-timeout" placeholder:"DURATION" help:"Minimum time without contact with the leader before a coordinator stands for election (default: three heartbeats)."`
	Jobs       int           `default:"4" help:"Maximum number of jobs that run at once."`
	Snapshot   units.Bytes   `name:"snapshot-bytes" placeholder:"SIZE" help:"Size of the log at which a snapshot is taken at once, such as 64MiB (default: 256MiB). A sixteenth of this size (at most 16MiB) is enough for a snapshot if the last snapshot is a minute old."`
	limitFlags

	ServeFlags
}

// Run implements `coppice coordinator`.
func (c *CoordinatorCmd) Run(a *cli.App) error {
	if _, err := protocol.NewTimeouts(c.Heartbeat, c.Election); err != nil {
		return cli.Usagef("--heartbeat %v, --election-timeout %v: %w", c.Heartbeat, c.Election, err)
	}
	if c.Dir == "" {
		return cli.Usagef("--dir is required")
	}
	peers, err := c.peers()
	if err != nil {
		return err
	}
	quotas, budget, err := c.limits()
	if err != nil {
		return err
	}
	if c.Jobs < 1 {
		return cli.Usagef("--jobs %d: want at least 1", c.Jobs)
	}
	if err := checkAddressSpace(); err != nil {
		return err
	}
	v := c.Start(a)
	source, err := c.Certificates(v)
	if err != nil {
		return v.ended("coordinator", err)
	}
	if err := v.supervise(); err != nil {
		return v.ended("coordinator", err)
	}
	return v.ended("coordinator", coordinator.Run(v.Ctx, coordinator.Config{
		ID: c.ID, Dir: c.Dir, Peers: peers, Join: connect.WithPorts(c.Join), Listen: coordinator.Listen{HTTP: c.HTTP,
			Raft: c.Raft, NATS: c.NATSListen, Routes: c.NATSRoutes},
		Proxied: c.Proxied, NATS: c.NATS, Heartbeat: c.Heartbeat, Election: c.Election, Concurrent: c.Jobs,
		SnapshotBytes: int64(c.Snapshot), Quotas: quotas, Budget: budget, KeepJobs: c.KeepJobs, TLS: source,
		Exposure: coordinator.Exposure{Insecure: c.Insecure, Hosts: c.AllowHost, OpenMetrics: c.OpenMetrics,
			PublicURL: c.Public}, Log: v.log,
		Lean: garbage.Lean.Begin,
		Up: func(ctx context.Context, check func(context.Context) error) {
			v.manager.tell("READY=1")
			v.manager.watch(ctx, check)
		},
	}))
}

// peers returns the coordinators that the flags name.
func (c *CoordinatorCmd) peers() ([]coordinator.Peer, error) {
	if c.Address == "" {
		return parsePeers(c.Peers)
	}
	if len(c.Peers) > 0 {
		return nil, cli.Usagef("--address and --peers exclude each other: --peers has the address of this coordinator")
	}
	self, err := parsePeer(c.ID + "=" + c.Address)
	if err != nil {
		return nil, cli.Usagef("--address %q: %w", c.Address, err)
	}
	return []coordinator.Peer{self}, nil
}

// parsePeers reads a list of ID=HOST:PORT.
func parsePeers(list []string) ([]coordinator.Peer, error) {
	var peers []coordinator.Peer
	for _, text := range list {
		p, err := parsePeer(text)
		if err != nil {
			return nil, cli.Usagef("--peers %q: %w", text, err)
		}
		peers = append(peers, p)
	}
	return peers, nil
}

// parsePeer reads ID=HOST[:PORT], the id and the HTTP address of a coordinator.
func parsePeer(text string) (p coordinator.Peer, err error) {
	id, address, ok := strings.Cut(text, "=")
	if !ok {
		return p, errors.New("want ID=HOST:PORT, such as a=10.0.0.1:7100")
	}
	if err := protocol.CheckID(id); err != nil {
		return p, err
	}
	address = connect.WithPort(address)
	if err := protocol.CheckAddress(address); err != nil {
		return p, err
	}
	if err := protocol.CheckReachable(address); err != nil {
		return p, coordinator.Unreachable(err)
	}
	host, number, _ := net.SplitHostPort(address)
	port, _ := strconv.Atoi(number)
	if port > coordinator.LastPort {
		return p, fmt.Errorf("want a port of at most %d: the next three ports are for Raft and NATS", coordinator.LastPort)
	}
	return coordinator.Peer{ID: id, Host: host, Port: port}, nil
}

// WorkerCmd is `coppice worker`.
type WorkerCmd struct {
	Join   []string    `required:"" placeholder:"HOST[:PORT]" help:"HTTP addresses of coordinators; a single address is enough, because each coordinator knows the others."`
	Dir    string      `required:"" placeholder:"DIR" help:"Folder of the shard cache and the worker's identity."`
	NATS   []string    `name:"nats" placeholder:"URL" help:"NATS servers to connect to, separated by commas, such as a forwarded port (default: the servers that the coordinators name)."`
	ID     string      `placeholder:"NAME" help:"Name of the worker (default: chosen at random once and kept in the folder)."`
	Slots  int         `placeholder:"N" help:"Maximum number of tasks computed at a time (default: one for each processor)."`
	Listen string      `placeholder:"HOST:PORT" help:"Address on which to serve /metrics, /healthz and /readyz (default: not served)."`
	Cache  units.Bytes `placeholder:"SIZE" help:"Maximum size of the shard cache on disk, such as 20GiB (default: 64GiB)."`
	Memory units.Bytes `placeholder:"SIZE" help:"Maximum memory of a task on the whole dataset (a tree, a fold), such as 8GiB. A task that needs more goes to another worker (default: no limit)."`
	Kept   units.Bytes `name:"kept-memory" default:"256MiB" placeholder:"SIZE" help:"Memory for what tasks keep between rounds (routing probabilities of ldlf, states of winldl and edl-lrl), such as 1GiB. With less memory it is computed again, and the results are the same to the bit."`

	MetricsToken string `name:"metrics-token-file" placeholder:"FILE" help:"File with a text of at least 16 characters. With this text as bearer token, a caller may read /metrics of this worker, and nothing else. The worker looks at the file every second."`

	ServeFlags
}

// Run implements `coppice worker`.
func (c *WorkerCmd) Run(a *cli.App) error {
	if c.Slots < 0 || c.Slots > protocol.MaxSlots {
		return cli.Usagef("--slots %d: want 0 to %d", c.Slots, protocol.MaxSlots)
	}
	if err := checkAddressSpace(); err != nil {
		return err
	}
	var processors func(n int) // nil if the environment sets the number of processors
	if os.Getenv("GOMAXPROCS") == "" {
		processors = func(n int) { runtime.GOMAXPROCS(n) }
	}
	var v *Service
	token, err := c.metricsToken(func() *slog.Logger { return v.log })
	if err != nil {
		return cli.Usagef("--metrics-token-file: %w", err)
	}
	v = c.Start(a)
	source, err := c.Certificates(v)
	if err != nil {
		return v.ended("worker", err)
	}
	if err := v.supervise(); err != nil {
		return v.ended("worker", err)
	}
	defer garbage.Frugal.Begin()()
	return v.ended("worker", worker.Run(v.Ctx, worker.Config{
		Join: connect.WithPorts(c.Join), NATS: c.NATS, Dir: c.Dir, ID: c.ID, Slots: c.Slots, Listen: c.Listen,
		CacheBytes: int64(c.Cache), MemoryBytes: int64(c.Memory), KeptBytes: max(1, int(c.Kept)), Processors: processors,
		TLS: source, Exposure: worker.Exposure{Insecure: c.Insecure, Hosts: c.AllowHost, OpenMetrics: c.OpenMetrics,
			MetricsToken: token}, Log: v.log,
		Ready: func(worker.Info) { v.manager.tell("READY=1") }, Watch: v.manager.watch,
	}))
}

// leastMetricsToken is the least length of a token of --metrics-token-file.
const leastMetricsToken = 16

// metricsToken returns a function that returns the hash of the token in the file of --metrics-token-file,
// or nil without the flag. The function reads the file again if a second has passed. While the file cannot
// be used, there is no token, and the log says why.
func (c *WorkerCmd) metricsToken(log func() *slog.Logger) (func() ([sha256.Size]byte, bool), error) {
	if c.MetricsToken == "" {
		return nil, nil
	}
	if c.Listen == "" {
		return nil, errors.New("without --listen, the worker serves no /metrics; give --listen too")
	}
	if c.TLSDir == "" {
		return nil, errors.New("a token is never sent without TLS; the worker needs --tls-dir too")
	}
	hash, err := readMetricsToken(c.MetricsToken)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(c.MetricsToken); err != nil || !info.Mode().IsRegular() { // a pipe has its text once
		return func() ([sha256.Size]byte, bool) { return hash, true }, nil
	}
	var mu sync.Mutex
	read, said := time.Now(), ""
	return func() ([sha256.Size]byte, bool) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(read) >= time.Second {
			read = time.Now()
			text := ""
			if hash, err = readMetricsToken(c.MetricsToken); err != nil {
				text = err.Error()
			}
			if text != "" && text != said {
				log().Warn("the file of --metrics-token-file cannot be used; nobody may read /metrics with a token", "error", err)
			}
			said = text
		}
		return hash, err == nil
	}, nil
}

// readMetricsToken returns the hash of the token in a file.
func readMetricsToken(path string) (hash [sha256.Size]byte, err error) {
	text, err := connect.ReadSecret(path)
	if err != nil {
		return hash, err
	}
	if len(text) < leastMetricsToken || strings.ContainsAny(text, " \t\r\n") {
		return hash, fmt.Errorf("%s: want one word of at least %d characters", path, leastMetricsToken)
	}
	return sha256.Sum256([]byte(text)), nil
}

// limitFlags bound what users may put on a cluster, and the memory and connections of a coordinator.
type limitFlags struct {
	MaxQueue     int         `default:"1000" placeholder:"N" help:"Maximum number of jobs that have not ended, including paused jobs; further submissions are refused. 0: no limit (default: 1000)."`
	MaxJobMemory units.Bytes `default:"8GiB" placeholder:"SIZE" help:"Maximum memory of one job on the leader, estimated at submission, such as 16GiB. 0: no limit (default: 8GiB)."`
	MaxBlobBytes units.Bytes `default:"256GiB" placeholder:"SIZE" help:"Maximum size of all blobs (datasets, models, trees); further imports are refused. 0: no limit (default: 256GiB)."`
	KeepJobs     int         `default:"0" placeholder:"N" help:"Number of ended jobs to keep. If there are more, the jobs that ended first are deleted with their models. 0: keep all (default: 0)."`

	MessageMemory  units.Bytes `default:"512MiB" placeholder:"SIZE" help:"Memory for messages in transit: NATS, fragments and HTTP bodies. Messages beyond this limit are refused or dropped, or their connections are closed. A job whose messages are larger than 5/16 of the limit is refused (default: 512MiB)."`
	MaxConnections int         `default:"512" placeholder:"N" help:"Maximum number of HTTP connections, and of NATS clients; beyond it, idle HTTP connections are closed, and NATS clients are refused. The number is lower if the limit of open files is too low (default: 512)."`
}

// limits returns the flags as a coordinator takes them. No limit is 0 in flags, and -1 in coordinator.Quotas.
func (l *limitFlags) limits() (q coordinator.Quotas, b coordinator.Budget, err error) {
	switch {
	case l.MaxQueue < 0 || l.MaxQueue > math.MaxInt32:
		return q, b, cli.Usagef("--max-queue %d: want 0 to %d", l.MaxQueue, math.MaxInt32)
	case l.KeepJobs < 0:
		return q, b, cli.Usagef("--keep-jobs %d: want 0 (keep all) or more", l.KeepJobs)
	case l.MessageMemory < coordinator.LeastMessages || l.MessageMemory > math.MaxInt32<<8:
		return q, b, cli.Usagef("--message-memory %s: want %s to %s", units.Format(int64(l.MessageMemory)),
			units.Format(coordinator.LeastMessages), units.Format(math.MaxInt32<<8))
	case l.MaxConnections < coordinator.LeastConnections || l.MaxConnections > 1<<20:
		return q, b, cli.Usagef("--max-connections %d: want %d to %d", l.MaxConnections, coordinator.LeastConnections, 1<<20)
	}
	q = coordinator.Quotas{Queue: cmp.Or(l.MaxQueue, -1), JobMemory: cmp.Or(int64(l.MaxJobMemory), -1),
		BlobBytes: cmp.Or(int64(l.MaxBlobBytes), -1)}
	return q, coordinator.Budget{Messages: int64(l.MessageMemory), Connections: l.MaxConnections}, nil
}

// leastAddressSpace is the address space that a coordinator or worker reserves at its start, with room for its threads.
// Most of it is never used as memory.
const leastAddressSpace = 3 << 30

// checkAddressSpace refuses a limit of the address space that would abort the process when it starts a thread.
func checkAddressSpace() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &limit); err != nil || limit.Cur >= leastAddressSpace {
		return nil
	}
	return fmt.Errorf("the limit of the address space (ulimit -v) is %s, but a coordinator or worker reserves up to %s. "+
		"Most of that space is never used. Raise the limit, and bound the memory by a control group, such as MemoryMax= of "+
		"systemd",
		units.Bytes(limit.Cur), units.Bytes(leastAddressSpace))
}

// NATSCmd is `coppice nats`, which chaos starts.
type NATSCmd struct {
	Listen string `required:"" placeholder:"HOST:PORT" help:"Address on which to listen for clients."`

	ServeFlags
}

// Run runs only the NATS server of a coordinator, for the chaos suite.
func (c *NATSCmd) Run(a *cli.App) error {
	host, text, err := net.SplitHostPort(c.Listen)
	port, bad := strconv.Atoi(text)
	if err = errors.Join(err, bad); err != nil {
		return cli.Usagef("--listen %q: %w", c.Listen, err)
	}
	v := c.Start(a)
	defer v.Cancel(nil)
	source, err := c.Certificates(v)
	if err != nil {
		return err
	}
	s, err := bus.StartServer(bus.ServerOptions{Name: "nats", Host: host, ClientPort: port, Log: v.log, TLS: source,
		Handshake: protocol.LeastHandshake})
	if err != nil {
		return err
	}
	defer s.Close()
	v.log.Info("NATS is up", "url", s.ClientURL())
	<-v.Ctx.Done()
	return nil
}

// ServeFlags are the common flags of coordinators and workers.
type ServeFlags struct {
	LogLevel     string   `enum:"debug,info,warn,error" default:"info" help:"Lowest level of the messages in the log on stderr: debug, info, warn or error. With -o json the log is in JSON."`
	Insecure     bool     `help:"Listen at addresses that other machines reach without TLS. Anybody who reaches the ports can then read, change and delete everything."`
	OpenMetrics  bool     `name:"anonymous-metrics" help:"Anybody who reaches the HTTP port may read /metrics. Otherwise a reader needs a certificate or a token of the role read."`
	AllowHost    []string `name:"allow-host" placeholder:"NAME" help:"Names with a dot by which HTTP is reached without TLS, separated by commas. Requests for other names are refused; addresses, names without a dot, the hosts of --peers and the host of --public-url are always accepted."`
	DieWithStdin bool     `hidden:"" help:"Stop when stdin closes, for a process that another process started."`

	connect.TLSFlag
}

// Certificates opens the certificates of a service. Without a folder it returns nil.
func (s *ServeFlags) Certificates(v *Service) (*certs.Source, error) {
	if s.Insecure && s.TLSDir != "" {
		return nil,
			cli.Usagef("--insecure and --tls-dir exclude each other: with certificates, every connection is encrypted")
	}
	if s.TLSDir == "" {
		return nil, nil
	}
	source, err := certs.Open(s.TLSDir, v.log)
	if err != nil {
		return nil, cli.Usagef("{tls-dir}: %w", err)
	}
	return source, nil
}

// Service is the run of a coordinator or a worker: its context and its log.
type Service struct {
	Ctx     context.Context
	log     *slog.Logger
	Cancel  context.CancelCauseFunc
	handler *serviceLog
	manager *manager // no manager before supervise
}

// supervise connects a service to the service manager that started it, if there is one, and tells it when the service
// stops.
func (v *Service) supervise() (err error) {
	m, err := openManager(v.log)
	if err != nil {
		return err
	}
	v.manager = m
	context.AfterFunc(v.Ctx, m.stop)
	return nil
}

// errStdin is the cause of a context that ended because stdin was closed.
var errStdin = errors.New("stdin was closed")

// Start begins a service. With -o json its log is in JSON.
func (s *ServeFlags) Start(a *cli.App) *Service {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		panic("coppice: log level " + s.LogLevel + " passed the parser")
	}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(a.Stderr, options)
	if a.JSON {
		handler = slog.NewJSONHandler(printable.NewJSONWriter(printable.Unwrap(a.Stderr)), options)
	}
	v := &Service{handler: newServiceLog(handler, level > slog.LevelDebug), manager: &manager{}}
	v.log = slog.New(v.handler)
	v.Ctx, v.Cancel = context.WithCancelCause(a.Ctx)
	if s.DieWithStdin {
		go func() {
			io.Copy(io.Discard, a.Stdin)
			v.Cancel(errStdin)
		}()
	}
	cli.KeepPrivate(a.Ctx)
	had := hasTerminal()
	cli.OnHangup(a.Ctx, func() bool {
		if had && !hasTerminal() {
			return false
		}
		v.log.Info("SIGHUP is ignored: there is nothing to reload")
		return true
	})
	return v
}

// hasTerminal reports whether this process has a controlling terminal.
func hasTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err == nil {
		tty.Close()
	}
	return err == nil
}

// ended writes the last line of the log, which says why the service ended, and returns the error of its command. what
// names the service. To be told to stop is no error.
func (v *Service) ended(what string, err error) error {
	defer v.Cancel(nil)
	v.manager.stop()
	if errors.Is(err, coordinator.ErrUsage) || errors.Is(err, worker.ErrConfig) {
		return cli.Usage(err)
	}
	text, cause := "the "+what+" ends", context.Cause(v.Ctx)
	if cause == nil || err != nil && !errors.Is(err, context.Canceled) {
		v.handler.end(slog.LevelError, text, "error", err)
		return err
	}
	reason := cause.Error()
	var by cli.Signalled
	if errors.As(cause, &by) {
		reason = "received " + unix.SignalName(by.Signal)
	}
	v.handler.end(slog.LevelInfo, text, "reason", reason)
	return nil
}

// A service writes at most warnLines warnings with the same text in warnEvery, so that the log does not fill a disk.
const (
	warnLines = 20
	warnEvery = time.Minute
	warnTexts = 1024 // texts that are counted at a time
)

// serviceLog is the handler of a service's log. It counts warnings instead of writing too many. After the last line it
// writes nothing, though goroutines of libraries may outlive the service.
type serviceLog struct {
	slog.Handler
	*logState
}

// logState is shared by all handlers of a log.
type logState struct {
	warnings *warnCounts // nil if all warnings are written

	mu    sync.RWMutex
	ended bool
}

func newServiceLog(h slog.Handler, bounded bool) *serviceLog {
	l := &serviceLog{h, &logState{}}
	if bounded {
		l.warnings = &warnCounts{texts: make(map[string]*warnCount)}
	}
	return l
}

// Handle implements slog.Handler.
func (l *serviceLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn && l.warnings != nil {
		written, omitted := l.warnings.add(r.Message, r.Time)
		if !written {
			return nil
		}
		r = r.Clone()
		if omitted > 0 {
			r.AddAttrs(slog.Int("omitted_before", omitted))
		}
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.ended {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l *serviceLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &serviceLog{l.Handler.WithAttrs(attrs), l.logState}
}

// WithGroup implements slog.Handler.
func (l *serviceLog) WithGroup(name string) slog.Handler {
	return &serviceLog{l.Handler.WithGroup(name), l.logState}
}

// end writes the last line.
func (l *serviceLog) end(level slog.Level, text string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slog.New(l.Handler).Log(context.Background(), level, text, args...)
	l.ended = true
}

// warnCounts counts warnings by their texts.
type warnCounts struct {
	mu    sync.Mutex
	texts map[string]*warnCount
}

// warnCount counts the warnings with one text.
type warnCount struct {
	since            time.Time
	written, omitted int
}

// add counts a warning. It returns whether to write the warning, and how many with the same text were omitted before.
func (c *warnCounts) add(text string, at time.Time) (written bool, omitted int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.texts[text]
	switch {
	case w == nil && len(c.texts) >= warnTexts:
		clear(c.texts)
		fallthrough
	case w == nil:
		w = &warnCount{since: at}
		c.texts[text] = w
	case at.Sub(w.since) >= warnEvery:
		omitted, *w = w.omitted, warnCount{since: at}
	}
	if w.written >= warnLines {
		w.omitted++
		return false, 0
	}
	w.written++
	return true, omitted
}
