// Package proc starts a real cluster of processes on this machine: coordinators
// and workers on free loopback ports, or on hosts of the caller's (Config.Hosts), each
// with its own disk and log file. It
// serves `coppice quickstart` and tests, which may kill, stop and restart each
// process. Children end when the process that started them does, however that
// ends.
package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/harness/freeport"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
)

// Config describes a cluster of processes.
type Config struct {
	Exe  string   // the coppice executable
	Env  []string // added to the environment of each process
	Dir  string   // holds the disks and the logs; made where it is missing
	Args []string // added to each coordinator's arguments, such as --heartbeat
	// Extra, if set, gives more arguments for the process of a name, such as the address of NATS.
	Extra func(name string) []string
	// Hosts, if set, gives each process a host of its own, by the process's name, instead of
	// loopback.
	Hosts func(name string) (Host, error)
	// WorkerArgs are added to each worker's.
	WorkerArgs []string

	// Certificates, if set, gives each process a certificate; nil: connections are in the clear.
	Certificates *Certificates

	Coordinators int // 1, 3 or 5
	Workers      int
}

// Cluster is a running cluster of processes.
type Cluster struct {
	Coordinators []*Node
	Workers      []*Node // guarded by mu where workers are added

	cfg      Config
	servers  []string // HTTP addresses of the coordinators
	joined   int      // workers that were ever started
	client   *client.Client
	probe    *client.Client // tries once, for looking at a cluster that is starting
	observer *Observer

	mu sync.Mutex
}

// Start starts a cluster and waits until it has a leader and all its workers. A
// cluster whose ports were taken meanwhile is started again on others. On an
// error nothing runs any more, and the logs are in the folder.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	for attempt := 1; ; attempt++ {
		c, err := start(ctx, cfg)
		if err == nil || attempt == startAttempts || !strings.Contains(err.Error(), "address already in use") {
			return c, err
		}
		if err := c.clean(); err != nil {
			return nil, err
		}
	}
}

// clean removes the disks and logs of processes that have ended.
func (c *Cluster) clean() error {
	var errs []error
	for _, n := range c.nodes() {
		errs = append(errs, os.RemoveAll(filepath.Join(c.cfg.Dir, n.Name)), os.RemoveAll(n.Log))
	}
	return errors.Join(errs...)
}

const startAttempts = 3

// start starts a cluster; on an error what it returns has ended.
func start(ctx context.Context, cfg Config) (c *Cluster, err error) {
	source := cfg.Certificates.Source()
	c = &Cluster{cfg: cfg, observer: NewObserver(source, &http.Transport{})}
	if c.servers, err = c.addresses(); err != nil {
		return c, err
	}
	var peers []string
	for i, server := range c.servers {
		peers = append(peers, fmt.Sprintf("%s=%s", name(i), server))
	}
	if c.client, err = client.NewWith(c.Servers(), source); err != nil {
		return c, err
	}
	if c.probe, err = client.NewWith(c.Servers(), source); err != nil {
		return c, err
	}
	c.probe.Patience = 0
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	for i := range c.servers {
		args := append([]string{"coordinator", "--id", name(i), "--peers", strings.Join(peers, ",")}, cfg.Args...)
		h, err := c.host(name(i))
		if err != nil {
			return c, err
		}
		n, err := c.begin(h, name(i), args)
		if err != nil {
			return c, err
		}
		c.Coordinators = append(c.Coordinators, n)
	}
	for range cfg.Workers {
		if _, err := c.AddWorker(); err != nil {
			return c, err
		}
	}
	return c, c.Ready(ctx)
}

func name(i int) string { return string(rune('a' + i)) }

// begin starts a process on a host. The first argument is the command, which has the name of the role in the
// certificate.
func (c *Cluster) begin(h Host, name string, args []string) (*Node, error) {
	if c.cfg.Extra != nil {
		args = append(args, c.cfg.Extra(name)...)
	}
	flags, err := c.cfg.Certificates.Flags(certs.Role(args[0]), name)
	if err != nil {
		return nil, err
	}
	if flags == nil && c.cfg.Hosts != nil {
		flags = []string{"--insecure"} // the hosts are reached over a network
	}
	args = append(append(args, flags...), "--dir", filepath.Join(c.cfg.Dir, name), "--die-with-stdin")
	n := &Node{Name: name, Log: c.log(name), Dir: filepath.Join(c.cfg.Dir, name), exe: c.cfg.Exe, env: c.cfg.Env, host: h,
		Args: args}
	return n, n.start()
}

func (c *Cluster) log(name string) string { return filepath.Join(c.cfg.Dir, "logs", name+".log") }

// AddWorker starts one more worker; Ready waits until the cluster knows it.
func (c *Cluster) AddWorker() (*Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.joined++
	name := fmt.Sprintf("w%d", c.joined)
	h, err := c.host(name)
	if err != nil {
		return nil, err
	}
	n, err := c.begin(h, name, append([]string{"worker", "--id", name, "--join", c.Servers(), "--listen", h.Address() +
		":0"}, c.cfg.WorkerArgs...))
	if err != nil {
		return nil, err
	}
	c.Workers = append(c.Workers, n)
	return n, nil
}

// AddCoordinator starts one more coordinator, which waits until it is added to the
// cluster; it is returned with its HTTP address. The
// cluster's own client knows only the coordinators of the start.
func (c *Cluster) AddCoordinator() (n *Node, http string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := name(len(c.Coordinators))
	if http, err = c.address(name); err != nil {
		return nil, "", err
	}
	h, err := c.host(name)
	if err != nil {
		return nil, "", err
	}
	n, err = c.begin(h, name, append([]string{"coordinator", "--id", name, "--join-cluster", c.Servers(), "--address",
		http}, c.cfg.Args...))
	if err != nil {
		return nil, "", err
	}
	c.Coordinators, c.servers = append(c.Coordinators, n), append(c.servers, http)
	return n, http, nil
}

// RemoveWorker ends a worker for good; its disk and log stay.
func (c *Cluster) RemoveWorker(ctx context.Context, n *Node) error {
	err := n.Quit(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Workers = slices.DeleteFunc(slices.Clone(c.Workers), func(w *Node) bool { return w == n })
	return err
}

// HTTP returns the HTTP address of a coordinator.
func (c *Cluster) HTTP(n *Node) string {
	if i := slices.Index(c.Coordinators, n); i >= 0 {
		return c.servers[i]
	}
	panic("proc: " + n.Name + " is not a coordinator of this cluster")
}

// Servers lists the coordinators' HTTP addresses, separated by commas.
func (c *Cluster) Servers() string { return strings.Join(c.servers, ",") }

// Certificates returns the certificates of the cluster; nil: connections are in the clear.
func (c *Cluster) Certificates() *Certificates { return c.cfg.Certificates }

// Observer returns what asks single processes of the cluster, over the same network as Client.
func (c *Cluster) Observer() *Observer { return c.observer }

// Client returns a client of the cluster.
func (c *Cluster) Client() *client.Client { return c.client }

// nodes lists all processes, workers first.
func (c *Cluster) nodes() []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append(append([]*Node{}, c.Workers...), c.Coordinators...)
}

// readyPause is the time between two looks at a cluster that is starting.
const readyPause = 20 * time.Millisecond

// Ready waits until the cluster has a leader that knows every worker that runs. A
// process that ends meanwhile is an error with the end of its log.
func (c *Cluster) Ready(ctx context.Context) error {
	started := c.nodes()
	for {
		info, err := c.probe.Cluster(ctx)
		if err == nil {
			if err = c.complete(info); err == nil {
				return nil
			}
		}
		for _, n := range started {
			if !n.Running() {
				return fmt.Errorf("%s ended: %w\n%s", n.Name, errors.Join(n.Err(), errEnded), tail(n.Log, 5))
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the cluster is not ready: %w", errors.Join(ctx.Err(), err))
		case <-time.After(readyPause):
		}
	}
}

var errEnded = errors.New("the process should be running")

// complete says what a cluster lacks, or nothing.
func (c *Cluster) complete(info *protocol.Cluster) error {
	if info.Leader == "" {
		return errors.New("there is no leader")
	}
	known := make(map[string]string)
	for _, w := range info.Workers {
		known[w.ID] = w.State
	}
	for _, n := range c.nodes() {
		if strings.HasPrefix(n.Name, "w") && n.Running() && known[n.Name] != "alive" {
			return fmt.Errorf("the state of worker %s is %q", n.Name, known[n.Name])
		}
	}
	return nil
}

// Leader returns the coordinator that leads now, or nil.
func (c *Cluster) Leader(ctx context.Context) (*Node, error) {
	info, err := c.client.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range c.Coordinators {
		if n.Name == info.Leader {
			return n, nil
		}
	}
	return nil, nil
}

// Close ends every process, the workers first, and waits for them.
func (c *Cluster) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), quitWithin)
	defer cancel()
	c.client.Close()
	c.probe.Close()
	c.observer.Close()
	var errs []error
	for _, group := range [][]*Node{c.Workers, c.Coordinators} {
		errs = append(errs, quitAll(ctx, group))
	}
	return errors.Join(errs...)
}

func quitAll(ctx context.Context, nodes []*Node) error {
	errs := make([]error, len(nodes))
	var wait sync.WaitGroup
	for i, n := range nodes {
		wait.Go(func() { errs[i] = n.Quit(ctx) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// Tail writes how every process is and the last lines of its log, for the report
// of a failure.
func (c *Cluster) Tail(w io.Writer, lines int) {
	for _, n := range c.nodes() {
		fmt.Fprintf(w, "--- %s: %s (%s)\n%s", n.Name, n.state(), n.Log, tail(n.Log, lines))
	}
}

// maxTail bounds what is read from the end of a log.
const maxTail = 64 << 10

func tail(path string, lines int) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error() + "\n"
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > maxTail {
		f.Seek(-maxTail, io.SeekEnd)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return err.Error() + "\n"
	}
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n") + "\n"
}

// Host is where a process runs: for the network, it is a machine.
type Host interface {
	Address() string       // without a port
	Start(*exec.Cmd) error // starts a process there
}

// Loopback is this machine, by its loopback address.
type Loopback struct{}

func (Loopback) Address() string         { return freeport.Host }
func (Loopback) Start(c *exec.Cmd) error { return c.Start() }

// host returns where the process of a name runs.
func (c *Cluster) host(name string) (Host, error) {
	if c.cfg.Hosts == nil {
		return Loopback{}, nil
	}
	return c.cfg.Hosts(name)
}

// HostPort is the first port of a coordinator that has a host of its own.
const HostPort = 7070

// addresses returns the addresses of the coordinators' first ports.
func (c *Cluster) addresses() (servers []string, err error) {
	if c.cfg.Hosts != nil {
		for i := range c.cfg.Coordinators {
			server, err := c.address(name(i))
			if err != nil {
				return nil, err
			}
			servers = append(servers, server)
		}
		return servers, nil
	}
	ports, err := freeport.Blocks(c.cfg.Coordinators)
	for _, port := range ports {
		servers = append(servers, net.JoinHostPort(freeport.Host, strconv.Itoa(port)))
	}
	return servers, err
}

// address returns an address for one coordinator.
func (c *Cluster) address(name string) (string, error) {
	if c.cfg.Hosts == nil {
		return freeport.Address()
	}
	h, err := c.host(name)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(h.Address(), strconv.Itoa(HostPort)), nil
}
