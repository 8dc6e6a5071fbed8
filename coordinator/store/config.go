package store

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/protocol"
)

// The defaults of Config.
const (
	DefaultHeartbeat        = protocol.DefaultHeartbeat
	DefaultSnapshotLogBytes = 256 << 20
	DefaultSegmentBytes     = 8 << 20
)

// What is the same for every store.
const (
	trailingLogs     = 32          // entries at least that stay behind a snapshot, for followers a little late
	maxShortLog      = 16 << 20    // bytes at most of what Config.shortLog returns
	snapshotEntries  = 1 << 16     // entries that are worth a snapshot however small they are
	snapshotPause    = time.Minute // the default of Config.pause
	snapshotInterval = 30 * time.Second
	retainSnapshots  = 2
	appendEntries    = 16 // of at most 512 KiB each in one message
	pooledConns      = 3
)

// Peer is one coordinator of the cluster.
type Peer struct {
	ID       string
	RaftAddr string // host:port that the others dial
}

// Config says what Open opens.
type Config struct {
	ID  string // of this node; never changes for a folder
	Dir string // made if it does not exist

	// RaftAddr is the address to listen on; port 0 takes a free one. Listener,
	// where set, is used instead and belongs to the store from then on, also when
	// Open fails.
	RaftAddr string
	Listener net.Listener

	// Peers lists all coordinators, this one included, and is the same on each;
	// empty: this node alone. A new cluster begins with all of them (Folder.Decide). After
	// that the log decides who is a member. The addresses here are used even if an older list
	// in the folder has others, so a cluster may move.
	Peers []Peer
	// PeerList is how a user gave Peers. Nodes begin a cluster only with equal lists.
	PeerList string
	// Cluster is the cluster that the node is known to belong to, though its folder may be
	// empty; empty: none.
	Cluster string
	// Locate, where set, returns where Raft of a member is now, and is asked before
	// Peers and the log; empty: it does not know. It must not block.
	Locate func(id string) string

	// Ask asks another node, by ID, how it is; it must be set if there are several
	// peers. It is bounded by ctx.
	Ask func(ctx context.Context, id string) (Answer, error)

	// Heartbeat is the one setting that every timeout derives from: a leader that
	// hears no majority for three heartbeats steps down, a follower that hears no
	// leader for three to six stands for election. Default 100 ms. Election, where not
	// 0, takes the place of those three heartbeats.
	Heartbeat, Election time.Duration

	// SnapshotLogBytes of log trigger a snapshot at once; default 256 MiB. A sixteenth of it, or 16 MiB where that is
	// less, triggers one a minute after the last: the log of an idle node takes at most 64 MiB of its disk.
	SnapshotLogBytes int64
	SegmentBytes     int // of a log file, allocated at once; default 8 MiB

	// Committed, where set, is told how long each entry took from its proposal
	// until it was applied here. It must not block.
	Committed func(time.Duration)

	Logger *slog.Logger // default slog.Default()

	timeouts protocol.Timeouts
	pause    time.Duration // between the last snapshot and one that only makes the log shorter; default a minute
	// fault, where set, may fail or hold up what touches the disk or the network:
	// "append", "delete", "read", "vote", "room", "timeout-now", "install"; and, in this order, the
	// steps of a first start: "identity", "identity-copy", "votes", "settle", "settle-copy",
	// "vote", "append". For tests.
	fault func(op string) error
}

// withDefaults checks the configuration and fills it in.
func (c Config) withDefaults() (Config, error) {
	if c.SnapshotLogBytes == 0 {
		c.SnapshotLogBytes = DefaultSnapshotLogBytes
	}
	if c.SegmentBytes == 0 {
		c.SegmentBytes = DefaultSegmentBytes
	}
	if c.pause == 0 {
		c.pause = snapshotPause
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.ID == "" || c.Dir == "" {
		return c, fmt.Errorf("store: a coordinator needs an ID and a folder, got %q and %q", c.ID, c.Dir)
	}
	var err error
	if c.timeouts, err = protocol.NewTimeouts(c.Heartbeat, c.Election); err != nil {
		return c, fmt.Errorf("store: %w", err)
	}
	c.Heartbeat = c.timeouts.Heartbeat
	return c, c.checkPeers()
}

func (c *Config) checkPeers() error {
	seen := make(map[string]bool)
	for _, p := range c.Peers {
		if p.ID == "" || p.RaftAddr == "" || seen[p.ID] {
			return fmt.Errorf("store: peer %q at %q: every peer needs its own ID and an address", p.ID, p.RaftAddr)
		}
		seen[p.ID] = true
	}
	if len(c.Peers) > 0 && !seen[c.ID] {
		return fmt.Errorf("store: coordinator %q is not among its own peers", c.ID)
	}
	if c.replicated() && c.Ask == nil {
		return fmt.Errorf("store: node %q has %d peers, but no function to ask them", c.ID, len(c.Peers))
	}
	return nil
}

// replicated reports whether others have what this node has.
func (c *Config) replicated() bool { return len(c.Peers) > 1 }

// fails runs a fault of tests.
func (c *Config) fails(op string) error {
	if c.fault == nil {
		return nil
	}
	return c.fault(op)
}

// shortLog is how many bytes of entries stay behind a snapshot, and how many after it are worth another once
// Config.pause has passed.
func (c *Config) shortLog() int64 { return min(c.SnapshotLogBytes/16, maxShortLog) }

// shorten reports whether a snapshot should make the log shorter, so long after the last and so many bytes of log.
func (c *Config) shorten(since time.Duration, logged int64) bool {
	return since >= c.pause && logged >= c.shortLog()
}

// election is how long a follower waits at least for its leader.
func (c *Config) election() time.Duration { return c.timeouts.RaftElection }

// patience bounds one exchange with a peer or one wait for Raft's main loop.
func (c *Config) patience() time.Duration { return c.timeouts.RaftExchange }

// selfAddr returns where the others reach this node's Raft.
func (c *Config) selfAddr() string {
	for _, p := range c.Peers {
		if p.ID == c.ID {
			return p.RaftAddr
		}
	}
	return c.RaftAddr
}

// raft returns the configuration of the Raft node.
func (c *Config) raft(self Server, notify chan<- bool, log hclog.Logger) *raft.Config {
	r := raft.DefaultConfig()
	r.LocalID = self.raftID()
	r.HeartbeatTimeout = c.election()
	r.ElectionTimeout = c.election()
	r.LeaderLeaseTimeout = c.timeouts.RaftLease
	r.CommitTimeout = c.timeouts.RaftCommit
	r.MaxAppendEntries = appendEntries
	r.BatchApplyCh = true // proposals queue while the log syncs, and share the next sync
	r.TrailingLogs = trailingLogs
	r.SnapshotThreshold = snapshotEntries
	r.SnapshotInterval = snapshotInterval
	r.NoLegacyTelemetry = true
	r.NotifyCh = notify
	r.Logger = log
	return r
}
