// Package coordinator is one member of the replicated coordinator: Raft, NATS,
// blobs, the HTTP API, and, on the leader, the driver of jobs. DESIGN.md says why
// it is shaped as it is.
package coordinator

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"
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
	// The addresses that this coordinator listens on; empty: by its peer's port.
	HTTPAddr, RaftAddr, NATSAddr, RouteAddr string
	// NATS is the URL of an external NATS (several, separated by commas); empty: an
	// embedded one.
	NATS string
	// Heartbeat is the setting from which every timeout derives; 0: the default.
	Heartbeat time.Duration
	// Concurrent is how many jobs run at once; 0: the default.
	Concurrent int
	Log        *slog.Logger
	// Ready, if set, is called once the coordinator answers.
	Ready func()
}

// The defaults of Config.
const (
	DefaultPort       = 7100
	DefaultHeartbeat  = 100 * time.Millisecond
	DefaultConcurrent = 4
)

// ErrUsage is wrapped by errors about what a user asked for.
var ErrUsage = errors.New("wrong usage")

// prepared checks the configuration and fills in what it leaves open.
func (c Config) prepared() (Config, error) {
	if c.ID == "" || strings.ContainsAny(c.ID, " .*>\t\n") {
		return c, fmt.Errorf("%w: the id %q: use letters, digits and dashes", ErrUsage, c.ID)
	}
	if len(c.Peers) == 0 {
		c.Peers = []Peer{{c.ID, "127.0.0.1", DefaultPort}}
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
	if c.Heartbeat == 0 {
		c.Heartbeat = DefaultHeartbeat
	}
	if c.Concurrent == 0 {
		c.Concurrent = DefaultConcurrent
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
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
	if n := len(c.Peers); n%2 == 0 || n > 7 {
		return Peer{}, fmt.Errorf("%w: --peers names %d coordinators; use 1, 3 or 5", ErrUsage, n)
	}
	return *self, nil
}

// clusterID returns the cluster's name in NATS subjects: the one kept in the
// folder, or, at the first start, one derived from the peers, so that all agree on
// it, or drawn, for a single coordinator.
func (c *Config) clusterID() string {
	if b, err := os.ReadFile(c.clusterFile()); err == nil && len(b) > 0 {
		return strings.TrimSpace(string(b))
	}
	if len(c.Peers) > 1 {
		return c.derivedID()
	}
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// keepClusterID writes the cluster's name into the folder: it never changes.
func (c *Config) keepClusterID(id string) error {
	return os.WriteFile(c.clusterFile(), []byte(id+"\n"), 0o644)
}

func (c *Config) clusterFile() string { return filepath.Join(c.Dir, "CLUSTER") }

func (c *Config) derivedID() string {
	var names []string
	for _, p := range c.Peers {
		names = append(names, p.ID+"="+p.addr(0))
	}
	sort.Strings(names)
	sum := sha256.Sum256([]byte(strings.Join(names, ",")))
	return hex.EncodeToString(sum[:6])
}
