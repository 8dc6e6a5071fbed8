// Package coordinator is one member of the replicated coordinator: Raft, NATS,
// blobs, the HTTP API, and, on the leader, the driver of jobs. DESIGN.md says why
// it is shaped as it is.
package coordinator

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// Peer is a coordinator of the cluster. By default it serves HTTP on Port, Raft on
// the next, NATS clients and NATS routes on the two after.
type Peer struct {
	ID   string
	Host string
	Port int
}

func (p Peer) addr(offset int) string { return net.JoinHostPort(p.Host, strconv.Itoa(p.Port+offset)) }

// Config describes a coordinator.
type Config struct {
	ID  string
	Dir string // Raft's log and snapshots, and the blobs
	// Peers lists every coordinator, this one included; the same on each. Empty: a
	// single one.
	Peers []Peer
	// Join lists HTTP addresses of coordinators of a cluster that this one shall be
	// added to; Peers then has this one only. It matters at the first start.
	Join []string
	// The addresses that this coordinator listens on; empty: by its peer's port.
	HTTPAddr, RaftAddr, NATSAddr, RouteAddr string
	// Proxied: others reach this coordinator where Peers says, wherever it listens.
	Proxied bool
	// NATS is the URL of an external NATS (several, separated by commas); empty: an
	// embedded one.
	NATS string
	// Heartbeat is the setting from which every timeout derives; 0: the default.
	// Election, where not 0, is Raft's election timeout instead of the derived one.
	Heartbeat, Election time.Duration
	// Concurrent is how many jobs run at once; 0: the default.
	Concurrent int
	// SnapshotBytes of log are worth a snapshot; 0: the default.
	SnapshotBytes int64
	// Quotas bound what users may put on the cluster.
	Quotas Quotas
	// BlobGrace is how long a blob stays that nothing refers to; 0: an hour. An import puts
	// its blobs before the manifest refers to them.
	BlobGrace time.Duration
	// KeepJobs is how many ended jobs are kept: the leader deletes those beyond it that
	// ended first. 0: all.
	KeepJobs int
	// Lean, if set, is called when a job with large messages begins on this leader, and what it returns when that
	// ends: meanwhile this process should have little garbage.
	Lean func() (end func())
	// Budget bounds what others take of this process.
	Budget Budget
	Log    *slog.Logger
	// Ready, if set, is called once the coordinator answers.
	Ready func()

	runs     bool // a coordinator begins; else its folder is made, and its NATS not known
	timeouts protocol.Timeouts
	kept     keptMembers // in the folder
}

// The defaults of Config.
const (
	DefaultPort       = 7100
	DefaultHeartbeat  = protocol.DefaultHeartbeat
	DefaultConcurrent = 4
)

// ErrUsage is wrapped by errors about what a user asked for.
var ErrUsage = errors.New("wrong usage")

// prepared checks the configuration and fills in what it leaves open.
func (c Config) prepared() (Config, error) {
	err := protocol.CheckID(c.ID)
	if err != nil {
		return c, fmt.Errorf("%w: --id: %w", ErrUsage, err)
	}
	if err := checkFolder(c.Dir); err != nil {
		return c, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	var damaged error
	if c.kept, damaged, err = readMembers(c.Dir); err != nil {
		return c, err
	}
	if damaged != nil {
		c.Log.Error("the file of the list of members is damaged; the list comes from its copy or from the log, and is written again", "error", damaged)
	}
	if err := c.checkRestored(); err != nil {
		return c, err
	}
	if c.Proxied && len(c.Peers) == 0 {
		return c, fmt.Errorf("%w: --behind-proxy needs --peers or --address, the addresses at which others reach this coordinator", ErrUsage)
	}
	if err := c.defaultPeers(); err != nil {
		return c, err
	}
	self, err := c.self()
	if err != nil {
		return c, err
	}
	for i, addr := range []*string{&c.HTTPAddr, &c.RaftAddr, &c.NATSAddr, &c.RouteAddr} {
		if *addr == "" {
			*addr = self.addr(i)
		}
	}
	if err := c.checkTold(); err != nil {
		return c, err
	}
	each := fewestPorts
	if c.runs && c.NATS == "" {
		each = len(ports)
	}
	if err := c.checkApart(each); err != nil {
		return c, err
	}
	if c.timeouts, err = protocol.NewTimeouts(c.Heartbeat, c.Election); err != nil {
		return c, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	c.Heartbeat = c.timeouts.Heartbeat
	if c.Concurrent == 0 {
		c.Concurrent = DefaultConcurrent
	}
	if c.KeepJobs < 0 {
		return c, fmt.Errorf("%w: the number of ended jobs to keep must be at least 0 (0 keeps all), got %d", ErrUsage, c.KeepJobs)
	}
	if c.BlobGrace == 0 {
		c.BlobGrace = protocol.BlobGrace
	}
	c.Quotas.fill()
	if c.Budget, err = c.Budget.prepared(); err != nil {
		return c, err
	}
	return c, c.fitDescriptors()
}

// defaultPeers fills in where this coordinator is, if nothing says so: where it was
// when the folder was last used, or at the default port.
func (c *Config) defaultPeers() error {
	if len(c.Join) > 0 && len(c.Peers) > 1 {
		return fmt.Errorf("%w: --join-cluster and --peers exclude each other: the running cluster names its own members", ErrUsage)
	}
	if len(c.Peers) > 0 {
		return nil
	}
	c.Peers = []Peer{{c.ID, "127.0.0.1", DefaultPort}}
	was, ok := c.kept.find(c.ID)
	if !ok {
		return nil
	}
	if err := protocol.CheckReachable(was.HTTP); err != nil {
		return fmt.Errorf("%w: %s says that this coordinator is at %q: %w; give the address at which others reach it with --address", ErrUsage, filepath.Join(c.Dir, membersName), was.HTTP, err)
	}
	for to, from := range map[*string]string{
		&c.HTTPAddr: was.HTTP, &c.RaftAddr: was.Raft, &c.NATSAddr: strings.TrimPrefix(was.NATS, "nats://"), &c.RouteAddr: was.Routes,
	} {
		if *to == "" {
			*to = from
		}
	}
	return nil
}

// self finds this coordinator among the peers.
func (c *Config) self() (Peer, error) {
	seen := make(map[string]bool)
	var self *Peer
	for i, p := range c.Peers {
		if seen[p.ID] {
			return Peer{}, fmt.Errorf("%w: --peers names %q twice", ErrUsage, p.ID)
		}
		seen[p.ID] = true
		if p.ID == c.ID {
			self = &c.Peers[i]
		}
	}
	if self == nil {
		return Peer{}, fmt.Errorf("%w: --peers does not name this coordinator, %q", ErrUsage, c.ID)
	}
	if n := len(c.Peers); len(c.kept.Members) == 0 && !c.kept.Used && (n%2 == 0 || n > 7) {
		return Peer{}, fmt.Errorf("%w: --peers names %d coordinators, want 1, 3 or 5", ErrUsage, n)
	}
	return *self, nil
}
