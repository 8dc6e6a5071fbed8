package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/protocol"
)

// The defaults of Config.
const (
	DefaultHeartbeat        = protocol.DefaultHeartbeat
	DefaultSnapshotLogBytes = 256 << 20
	DefaultSegmentBytes     = 8 << 20
)

// Constants of every store.
const (
	// the least number of entries that stay after a snapshot, for followers that are a little late
	trailingLogs     = 32
	maxShortLog      = 16 << 20    // the maximum of Config.shortLog
	snapshotEntries  = 1 << 16     // entries that are worth a snapshot, however small they are
	snapshotPause    = time.Minute // the default of Config.pause
	snapshotInterval = 30 * time.Second
	retainSnapshots  = 2
	appendEntries    = 16 // of at most 512 KiB each in one message
	pooledConns      = 3
)

// Peer is one coordinator of the cluster.
type Peer struct {
	ID       string
	RaftAddr string // host:port, which the others dial
}

// Config says what Open opens.
type Config struct {
	ID  string // of this node; it never changes for a folder
	Dir string // is made if it does not exist

	// RaftAddr is the address to listen on; port 0 takes a free port. If Listener is set,
	// it is used instead, and belongs to the store from then on, even if Open fails.
	RaftAddr string
	Listener net.Listener

	// TLS has the certificates of this node; nil: connections are in the clear.
	TLS *certs.Source

	// Peers lists all coordinators, with this one, and is the same on each. It is empty if
	// this node is alone. A new cluster begins with all of them (Folder.Decide); after that
	// the log decides who is a member. These addresses are used even if an older list in
	// the folder has others, so a cluster may move.
	Peers []Peer
	// PeerList is how a user gave Peers. Nodes begin a cluster only with equal lists.
	PeerList string
	// Cluster is the cluster that the node is known to belong to, though its folder may be
	// empty. It is empty if there is none.
	Cluster string
	// Locate, if set, returns the present Raft address of a member, or "" if it does not
	// know. It is asked before Peers and the log. It must not block.
	Locate func(id string) string

	// Ask asks another node, by ID, for its Answer. It must be set if there are several
	// peers.
	Ask func(ctx context.Context, id string) (Answer, error)

	// Heartbeat determines every timeout: a leader that hears no majority for three
	// heartbeats steps down, and a follower that hears no leader for three to six becomes a
	// candidate. The default is 100 ms. If Election is not 0, it replaces these three
	// heartbeats.
	Heartbeat, Election time.Duration

	// SnapshotLogBytes of log trigger a snapshot at once; the default is 256 MiB. A
	// sixteenth of it, or 16 MiB if that is less, triggers one a minute after the last: the
	// log of an idle node takes at most 64 MiB of its disk.
	SnapshotLogBytes int64
	SegmentBytes     int // of a log file, which are allocated at once; the default is 8 MiB

	// Committed, if set, is told the time from the proposal of each entry until it was
	// applied here. It must not block.
	Committed func(time.Duration)

	Logger *slog.Logger // the default is slog.Default()

	timeouts protocol.Timeouts
	pause    time.Duration // before a snapshot that only shortens the log; the default is a minute
	// fault, if set, may fail or delay operations of the disk or the network in tests:
	// "append", "delete", "read", "vote", "room", "timeout-now", "install"; and, in this
	// order, the steps of a first start: "identity", "identity-copy", "votes", "settle",
	// "settle-copy", "vote", "append".
	fault func(op string) error
}

// withDefaults checks the configuration and sets the defaults.
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
	seen := make(map[string]bool)
	for _, p := range c.Peers {
		if p.ID == "" || p.RaftAddr == "" || seen[p.ID] {
			return c, fmt.Errorf("store: peer %q at %q: every peer needs its own ID and an address", p.ID, p.RaftAddr)
		}
		seen[p.ID] = true
	}
	if len(c.Peers) > 0 && !seen[c.ID] {
		return c, fmt.Errorf("store: coordinator %q is not among its own peers", c.ID)
	}
	if c.replicated() && c.Ask == nil {
		return c, fmt.Errorf("store: node %q has %d peers, but no function to ask them", c.ID, len(c.Peers))
	}
	return c, nil
}

// replicated reports whether other nodes have the same log.
func (c *Config) replicated() bool { return len(c.Peers) > 1 }

// fails runs a fault of tests.
func (c *Config) fails(op string) error {
	if c.fault == nil {
		return nil
	}
	return c.fault(op)
}

// shortLog returns how many bytes of entries stay after a snapshot. So many new bytes are
// worth another snapshot, if Config.pause has passed.
func (c *Config) shortLog() int64 { return min(c.SnapshotLogBytes/16, maxShortLog) }

// shorten reports whether a snapshot should shorten the log. since is the time since the
// last one, logged the bytes of log since then.
func (c *Config) shorten(since time.Duration, logged int64) bool {
	return since >= c.pause && logged >= c.shortLog()
}

// election returns the least time that a follower waits for its leader.
func (c *Config) election() time.Duration { return c.timeouts.RaftElection }

// patience returns the bound of one exchange with a peer or one wait for Raft's main loop.
func (c *Config) patience() time.Duration { return c.timeouts.RaftExchange }

// selfAddr returns the address that the others reach Raft of this node at.
func (c *Config) selfAddr() string {
	for _, p := range c.Peers {
		if p.ID == c.ID {
			return p.RaftAddr
		}
	}
	return c.RaftAddr
}

// newLog returns a logger for Raft that writes to log.
func newLog(log *slog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Name: "raft", Level: hclog.Debug, Output: io.Discard})
	l.RegisterSink(sink{log})
	return l
}

// sink passes the records of hclog to slog.
type sink struct{ log *slog.Logger }

// levels has the levels of records, one below Raft's own. Raft's information about every
// election is a detail here, and an error of Raft, such as a peer that does not answer, is
// often temporary.
var levels = map[hclog.Level]slog.Level{
	hclog.Info: slog.LevelDebug, hclog.Warn: slog.LevelInfo, hclog.Error: slog.LevelWarn,
}

// Accept implements hclog.SinkAdapter.
func (s sink) Accept(name string, level hclog.Level, msg string, args ...any) {
	to, ok := levels[level]
	if !ok || !s.log.Enabled(context.Background(), to) {
		return
	}
	attrs := append([]any{"component", name}, args...)
	for i, a := range attrs {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			attrs[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	s.log.Log(context.Background(), to, msg, attrs...)
}

var (
	// ErrNotLeader says that only the leader accepts entries. Nothing has been written. The
	// error is a *NotLeaderError.
	ErrNotLeader = errors.New("not the leader")
	// ErrAmbiguous says that nobody knows yet whether the entry is in the log: it may still
	// be applied, under this leader or the next. It is harmless to propose it again,
	// because entries have an epoch, a round, a token or a name.
	ErrAmbiguous = errors.New("the outcome is unknown")
	// ErrClosed says that Close was called. Nothing has been written.
	ErrClosed = errors.New("store: closed")
	// ErrLocked says that another process has the folder.
	ErrLocked = errors.New("in use by another process")
	// ErrCorrupt says that the checksum of a file does not match, or that acknowledged
	// entries are missing. The error names the file.
	ErrCorrupt = errors.New("corrupt")
	// ErrFolder says that the folder belongs to another node or to another version.
	ErrFolder = errors.New("not a folder of this coordinator")
)

// NotLeaderError names the leader, if this node knows one.
type NotLeaderError struct{ Leader string }

func (e *NotLeaderError) Error() string {
	if e.Leader == "" {
		return "store: this coordinator is not the leader, and knows no leader at the moment"
	}
	return fmt.Sprintf("store: this coordinator is not the leader; the leader is %s", e.Leader)
}

// Is reports whether target is ErrNotLeader.
func (e *NotLeaderError) Is(target error) bool { return target == ErrNotLeader }

// Server is one voter or nonvoter of Raft: a coordinator and the folder that it has. Raft's
// server ID consists of both, so a coordinator with an emptied folder is another server.
type Server = protocol.RaftServer

// raftID returns the ID of the server in Raft.
func raftID(s Server) raft.ServerID { return raft.ServerID(s.ID + "." + s.Directory) }

// address returns the address that Raft dials. It names the server, so that the stream
// layer knows which server must answer there.
func addressOf(s Server) raft.ServerAddress {
	return raft.ServerAddress(string(raftID(s)) + "@" + s.RaftAddr)
}

// parseServer splits a server ID and an address of Raft.
func parseServer(id raft.ServerID, address raft.ServerAddress) Server {
	s := Server{ID: string(id), RaftAddr: string(address)}
	if at := strings.IndexByte(s.RaftAddr, '@'); at >= 0 {
		s.RaftAddr = s.RaftAddr[at+1:]
	}
	if dot := strings.LastIndexByte(s.ID, '.'); dot >= 0 {
		s.ID, s.Directory = s.ID[:dot], s.ID[dot+1:]
	}
	return s
}

// NewID draws an identifier for a folder or a cluster: 48 random bits in hexadecimal.
func NewID() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Phase says how far a node is. See DESIGN.md, A node that starts.
type Phase string

// The phases.
const (
	PhaseNew     Phase = "new"     // it is not settled how the node begins
	PhaseOpening Phase = "opening" // the node reads its log
	PhaseJoining Phase = "joining" // its log is empty; a leader has to add the node
	PhaseMember  Phase = "member"  // the node has a log
)

// Answer is what a node tells others about itself.
type Answer struct {
	Phase     Phase
	ID        string
	Directory string
	Cluster   string   // empty if the node belongs to none yet
	Founders  []Server // the servers that the cluster began with; empty if the node was added
	Seeded    bool     // true if a new node was restored from a backup
	RaftAddr  string   // host:port
	// Peers and Heartbeat must be the same on all nodes that begin a cluster.
	Peers     string
	Heartbeat time.Duration

	Term uint64 // of Raft; 0 before the log is open
	Last uint64 // index of its last entry
	// Members lists the servers of the latest configuration that the node knows to be
	// committed, and Voters the IDs of its voters. Both are empty if it knows none.
	Members []Server
	Voters  []string
}

// The names in a folder.
const (
	lockName      = "LOCK"
	formatName    = "FORMAT" // what the folder is; FORMAT.copy is its copy
	formatCopy    = "FORMAT.copy"
	stableName    = "VOTE"
	ackedName     = "ACKED"
	logName       = "log"
	snapshotsName = "snapshots" // Raft makes it
	seedName      = "SEED"
	corruptName   = "corrupt"
	probeName     = "PROBE"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the CRC-32C of a text in hexadecimal.
func checksum(text string) string {
	return fmt.Sprintf("%08x", crc32.Checksum([]byte(text), castagnoli))
}

// passes reports whether an error of the disk ends if somebody makes room.
func passes(err error) bool {
	return isAny(err, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EMFILE, syscall.ENFILE)
}

func isAny(err error, list ...syscall.Errno) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// corrupted returns an error that wraps ErrCorrupt and names the file. If why says only
// that the file cannot be read at the moment, the error does not wrap ErrCorrupt: a file
// that may be intact is not set aside, and other coordinators may have the same trouble.
func corrupted(path string, why error) error {
	if passes(why) || isAny(why, syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOMEM, syscall.EAGAIN,
		syscall.EBUSY) {
		return fmt.Errorf("store: %s: %w", path, why)
	}
	return fmt.Errorf("store: %w: %s: %w", ErrCorrupt, path, why)
}

// replaceFile writes a small file of the folder; see files.Replace.
func replaceFile(path, text string) error {
	if err := files.Replace(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

func syncFolder(path string) error {
	if err := files.SyncFolder(path); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
