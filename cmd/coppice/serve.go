package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/worker"
)

type coordinatorCmd struct {
	ID         string        `default:"a" help:"Which of the peers this is."`
	Dir        string        `placeholder:"DIR" help:"Folder of the log, the snapshots and the blobs; required."`
	Peers      []string      `placeholder:"ID=HOST[:PORT]" help:"All coordinators, the same list on each: one, three or five. HTTP is at PORT (default: 7100), Raft at the next, NATS clients and NATS routes at the two after (default: this one alone, at 127.0.0.1:7100)."`
	Join       []string      `name:"join-cluster" placeholder:"HOST[:PORT]" help:"Join the cluster of these coordinators (HTTP addresses) instead of --peers, once: this one waits to be added by coppice cluster add. Later starts find the cluster in the folder."`
	Address    string        `placeholder:"HOST[:PORT]" help:"Where this coordinator is, with --join-cluster: HTTP at PORT, the others above as for --peers."`
	HTTP       string        `name:"http" placeholder:"HOST:PORT" help:"Where HTTP listens, if not at the peer's port."`
	Raft       string        `placeholder:"HOST:PORT" help:"Where Raft listens, if not one above."`
	NATSListen string        `name:"nats-listen" placeholder:"HOST:PORT" help:"Where NATS listens for clients, if not two above."`
	NATSRoutes string        `name:"nats-routes" placeholder:"HOST:PORT" help:"Where NATS listens for the other coordinators, if not three above."`
	Proxied    bool          `name:"behind-proxy" help:"Others reach this coordinator where --peers or --address says, wherever it listens: it is behind a proxy or a NAT."`
	NATS       string        `name:"nats" placeholder:"URL" help:"Use this NATS instead of the embedded one."`
	Heartbeat  time.Duration `default:"100ms" help:"The setting that every timeout derives from, 10ms to 1s."`
	Election   time.Duration `name:"election-timeout" placeholder:"DURATION" help:"How long a coordinator misses its leader at least before it stands for election (default: three heartbeats)."`
	Jobs       int           `default:"4" help:"How many jobs run at once."`
	Snapshot   units.Bytes   `name:"snapshot-bytes" placeholder:"SIZE" help:"Log that is worth a snapshot at once, such as 64MiB (default: 256MiB). A sixteenth of it, 16MiB at most, is worth one a minute after the last."`
	quotaFlags
	budgetFlags
	Timeouts bool `name:"print-timeouts" help:"Print every timeout that the heartbeat gives, and start nothing."`

	serveFlags
}

// Run implements `coppice coordinator`.
func (c *coordinatorCmd) Run(a *app) error {
	timeouts, err := protocol.NewTimeouts(c.Heartbeat, c.Election)
	if err != nil {
		return usagef("--heartbeat %v, --election-timeout %v: %w", c.Heartbeat, c.Election, err)
	}
	if c.Timeouts {
		return printTimeouts(a, &timeouts)
	}
	if c.Dir == "" {
		return usagef("--dir is required")
	}
	peers, err := c.peers()
	if err != nil {
		return err
	}
	quotas, err := c.quotas()
	if err != nil {
		return err
	}
	budget, err := c.budget()
	if err != nil {
		return err
	}
	if c.Jobs < 1 {
		return usagef("--jobs %d: want at least 1", c.Jobs)
	}
	if err := checkAddressSpace(); err != nil {
		return err
	}
	v := c.start(a)
	return v.ended("coordinator", coordinator.Run(v.ctx, coordinator.Config{
		ID: c.ID, Dir: c.Dir, Peers: peers, Join: withPorts(c.Join), HTTPAddr: c.HTTP, RaftAddr: c.Raft, NATSAddr: c.NATSListen,
		RouteAddr: c.NATSRoutes, Proxied: c.Proxied, NATS: c.NATS, Heartbeat: c.Heartbeat, Election: c.Election, Concurrent: c.Jobs, SnapshotBytes: int64(c.Snapshot), Quotas: quotas, Budget: budget, KeepJobs: c.KeepJobs, Log: v.log,
		Lean: new(lean).begin,
	}))
}

// peers returns the coordinators that the flags name.
func (c *coordinatorCmd) peers() ([]coordinator.Peer, error) {
	if c.Address == "" {
		return parsePeers(c.Peers)
	}
	if len(c.Peers) > 0 {
		return nil, usagef("--address and --peers exclude each other: --peers says where this coordinator is")
	}
	self, err := parsePeer(c.ID + "=" + c.Address)
	if err != nil {
		return nil, usagef("--address %q: %w", c.Address, err)
	}
	return []coordinator.Peer{self}, nil
}

// parsePeers reads a list of ID=HOST:PORT.
func parsePeers(list []string) ([]coordinator.Peer, error) {
	var peers []coordinator.Peer
	for _, text := range list {
		p, err := parsePeer(text)
		if err != nil {
			return nil, usagef("--peers %q: %w", text, err)
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
	address = withPort(address)
	if err := protocol.CheckAddress(address); err != nil {
		return p, err
	}
	if err := protocol.CheckReachable(address); err != nil {
		return p, coordinator.Unreachable(err)
	}
	host, number, _ := net.SplitHostPort(address)
	port, _ := strconv.Atoi(number)
	if port > coordinator.LastPort {
		return p, fmt.Errorf("the port is at most %d: those above it are for Raft and NATS", coordinator.LastPort)
	}
	return coordinator.Peer{ID: id, Host: host, Port: port}, nil
}

type workerCmd struct {
	Join   []string    `required:"" placeholder:"HOST[:PORT]" help:"HTTP addresses of coordinators; any of them tells the rest."`
	Dir    string      `required:"" placeholder:"DIR" help:"Folder of the shard cache and the worker's identity."`
	NATS   []string    `name:"nats" placeholder:"URL" help:"Connect to this NATS (several, separated by commas) instead of the one that the coordinators name, such as a forwarded port."`
	ID     string      `placeholder:"NAME" help:"Name of the worker (default: chosen at random once and kept in the folder)."`
	Slots  int         `placeholder:"N" help:"Units computed at a time (default: one for each processor)."`
	Listen string      `placeholder:"HOST:PORT" help:"Where to serve /metrics, /healthz and /readyz (default: nowhere)."`
	Cache  units.Bytes `placeholder:"SIZE" help:"Bound of the shard cache on disk, such as 20GiB (default: 64GiB)."`
	Memory units.Bytes `placeholder:"SIZE" help:"Bound of the memory, such as 8GiB, that a unit on the whole dataset (a tree, a fold) may take; one that would take more goes to another worker (default: none)."`
	Kept   units.Bytes `name:"kept-memory" default:"256MiB" placeholder:"SIZE" help:"Memory of the process for routing probabilities that leaf updates of ldlf keep, such as 1GiB; without enough they are computed again, to the same bits."`

	serveFlags
}

// processors returns what sets on how many processors the process runs; nil where the environment's GOMAXPROCS
// has said it.
func processors() func(n int) {
	if os.Getenv("GOMAXPROCS") != "" {
		return nil
	}
	return func(n int) { runtime.GOMAXPROCS(n) }
}

// Run implements `coppice worker`.
func (c *workerCmd) Run(a *app) error {
	if c.Slots < 0 {
		return usagef("--slots %d: must not be negative", c.Slots)
	}
	if err := checkAddressSpace(); err != nil {
		return err
	}
	v := c.start(a)
	defer frugal()()
	return v.ended("worker", worker.Run(v.ctx, worker.Config{
		Join: withPorts(c.Join), NATS: c.NATS, Dir: c.Dir, ID: c.ID, Slots: c.Slots, Listen: c.Listen, CacheBytes: int64(c.Cache), MemoryBytes: int64(c.Memory), KeptBytes: max(1, int(c.Kept)), Processors: processors(), Log: v.log,
	}))
}
