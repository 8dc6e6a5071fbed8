package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"

	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/internal/rtt"
)

// node is one Raft node with its log and its connections. A restart within the process
// replaces it.
type node struct {
	session   *session
	transport *transport
	log       *diskLog
	raft      *raft.Raft
	shutdown  func() raft.Future // of raft: the same future at each call
	end       func() error       // close, the first time; later it returns the same error
	ended     chan struct{}      // closed after end
}

// close ends the node: Raft, then the connections that its goroutines may wait for, then the
// log.
func (n *node) close() error {
	defer close(n.ended)
	var errs []error
	switch {
	case n.raft != nil:
		ended := n.shutdown()
		_ = n.transport.Close() // it only ever returns nil
		_ = ended.Error()       // so does this; it waits
		_ = n.transport.Close() // Raft has closed it as well
	case n.transport != nil:
		_ = n.transport.Close()
	case n.session != nil:
		errs = append(errs, n.session.Close())
	}
	if n.transport != nil {
		n.transport.stop()
	}
	if n.log != nil {
		errs = append(errs, n.log.Close())
	}
	return errors.Join(errs...)
}

// supervisor keeps a Raft node running in a folder: it starts the node, restarts it if its
// log fails, and ends it.
type supervisor struct {
	config *Config
	folder *Folder
	self   Server // without an address
	stream *stream
	fsm    *fsm
	life   *lifecycle
	notify chan bool // from Raft: whether it leads

	changing sync.Mutex           // held while a node starts or ends
	node     atomic.Pointer[node] // nil before the first start; during a restart the last node, which is shut down
	restarts atomic.Uint64
	trouble  atomic.Pointer[error] // see Trouble
	unsaved  atomic.Pointer[error] // why the last snapshot failed
}

func (v *supervisor) raft() *raft.Raft { return v.node.Load().raft }

// start starts a node: it opens the log, sets damaged parts aside or refuses them, and runs
// Raft. If it fails, it closes again what it has opened.
func (v *supervisor) start() (err error) {
	log := newLog(v.config.Logger)
	n := &node{ended: make(chan struct{})}
	n.end = sync.OnceValue(n.close)
	defer func() {
		if err != nil {
			err = errors.Join(err, n.end())
		}
	}()
	saved, err := openSnapshots(v.folder.path, log.Named("snapshot"))
	if err != nil {
		return err
	}
	base, bad, err := saved.check()
	if err != nil {
		return err
	}
	if n.log, err = openDiskLog(v.folder, v.config, log.Named("wal"), v.writeFailed); err != nil {
		return err
	}
	if err := n.log.check(v.folder, base, bad); err != nil {
		return err
	}
	if err := v.checkEmpty(n.log, base); err != nil {
		return err
	}
	for path, why := range bad { // the log and the other snapshots are enough
		v.config.Logger.Error("a snapshot is damaged; it is set aside, because another one replaces it", "error", why)
		if err := v.folder.setAside(path); err != nil {
			return err
		}
	}
	if err := v.folder.writeFirst(n.log, saved); err != nil {
		return fmt.Errorf("store: cannot start the log in %s: %w", v.folder.log(), err)
	}
	n.session = v.stream.session()
	at := newAddresses(v.config, v.Addr())
	n.transport = newTransport(raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		ServerAddressProvider: at, Logger: log.Named("net"), Stream: n.session, MaxPool: pooledConns,
		Timeout:         v.config.patience(),
		MaxRPCsInFlight: 1, // see DESIGN.md, One append at a time
	}), n.session.dials.Load, v.config.fault)
	v.fsm.begin()
	r, err := newRaft(v.config.raft(v.self, v.notify, log), v.fsm, n.log, raftStable{v.folder.stable, v.life.fatal}, saved,
		n.transport)
	if err != nil {
		return fmt.Errorf("store: folder %s: %w", v.folder.path, err)
	}
	at.node.Store(r)
	n.raft, n.shutdown = r, sync.OnceValue(r.Shutdown)
	v.node.Store(n)
	return v.checkPeers()
}

// raft returns the configuration of the Raft node.
func (c *Config) raft(self Server, notify chan<- bool, log hclog.Logger) *raft.Config {
	r := raft.DefaultConfig()
	r.LocalID = raftID(self)
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

// newRaft is raft.NewRaft with an error instead of a panic.
func newRaft(c *raft.Config, f raft.FSM, log *diskLog, stable raftStable, saved raft.SnapshotStore,
	t raft.Transport) (r *raft.Raft, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				r, err = nil, fmt.Errorf("%v", p)
			}
		}()
		err = io.ErrUnexpectedEOF // if the goroutine ends in raftLog or raftStable
		r, err = raft.NewRaft(c, f, raftLog{log}, stable, saved, t)
	}()
	<-done
	return r, err
}

// checkEmpty refuses an empty log if the node may have acknowledged something. Leaders have
// term 2 or higher, and a cluster begins in term 1, so until then the first entry may be
// written again. A node that waits to be added has term 0 until a leader reaches it; if it
// is killed before the first entry is on the disk, its log looks like a deleted one.
func (v *supervisor) checkEmpty(d *diskLog, base uint64) error {
	last, err := d.LastIndex()
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	term, err := v.folder.stable.GetUint64([]byte(keyTerm))
	if err != nil {
		return err
	}
	i, checked := v.folder.Identity(), v.node.Load() != nil // at the first start
	if max(last, base) > 0 || checked || term == 0 || term == 1 && len(i.Founders) > 0 {
		return nil
	}
	return corrupted(v.folder.log(), fmt.Errorf("the log is empty, although this node was in term %d: the log was "+
		"deleted, or its first entries never arrived", term))
}

// checkPeers compares Config.Peers with the members in the log, which decide. It refuses a
// list if at least half of it are neither members nor at the address of one: the list is of
// another cluster.
func (v *supervisor) checkPeers() error {
	members := v.Members()
	if len(members) == 0 {
		return nil // the node waits to be added
	}
	strange := 0
	var given, have []string
	for _, p := range v.config.Peers {
		given = append(given, p.ID)
		known := func(m Member) bool { return m.ID == p.ID || m.RaftAddr == p.RaftAddr }
		if p.ID != v.config.ID && !slices.ContainsFunc(members, known) {
			strange++
		}
	}
	for _, m := range members {
		have = append(have, m.ID)
	}
	if strange > 0 && 2*strange >= len(given) {
		return fmt.Errorf("store: folder %s is %w: its cluster has the members %v, but --peers names %v; add members with "+
			"`coppice cluster add`, not with --peers",
			v.folder.path, ErrFolder, slices.Compact(have), given)
	}
	return nil
}

// errStuck says that Raft could not be restarted: only a new process helps.
var errStuck = errors.New("store: Raft did not shut down in time; restart the process")

// restart ends the node and starts another, which helps if Raft or its log is stuck. As
// after a crash, nothing acknowledged is lost, and proposals without an answer get
// ErrAmbiguous. The state never goes back for readers.
func (v *supervisor) restart(why error) error {
	v.changing.Lock()
	defer v.changing.Unlock()
	if v.life.stopped() {
		return ErrClosed
	}
	v.config.Logger.Warn("Raft is restarted in this process", "reason", why)
	began, old := time.Now(), v.node.Load()
	ended := make(chan error, 1)
	go func() { ended <- old.end() }()
	select {
	case err := <-ended:
		if err != nil {
			v.config.Logger.Warn("Raft did not shut down cleanly", "error", err)
		}
	case <-time.After(4 * v.config.patience()):
		v.life.stop(errStuck)
		return errStuck
	}
	v.notify <- false // the last notification of the old node may be lost; there is always a reader
	if err := v.start(); err != nil {
		return err
	}
	v.restarts.Add(1)
	v.config.Logger.Info("Raft runs again", "seconds", time.Since(began).Seconds())
	return nil
}

// close ends the node, if there is one. If Raft is stuck, it is not waited for: the process
// must be able to end.
func (v *supervisor) close() error {
	v.changing.Lock()
	defer v.changing.Unlock()
	n := v.node.Load()
	if n == nil {
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- n.end() }()
	if !errors.Is(v.life.Err(), errStuck) {
		return <-ended
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(v.config.patience()):
		return errStuck
	}
}

// shutdown shuts Raft down, so that a node that cannot follow neither leads nor votes.
func (v *supervisor) shutdown() {
	v.changing.Lock()
	defer v.changing.Unlock()
	v.node.Load().shutdown()
}

// writeFailed is called by the log when a write has failed. The node follows and votes, but
// is not a candidate until the log is open again. It stops if the files of the log are not
// in their place.
func (v *supervisor) writeFailed(err error) {
	if n := v.node.Load(); n != nil {
		n.transport.notWritable.Store(true)
	}
	v.trouble.Store(&err)
	if errors.Is(err, files.ErrGone) {
		v.life.stop(err)
		return
	}
	v.config.Logger.Error("the log failed; it is opened again as soon as possible", "error", err)
}

// mendLog restarts Raft if its log has failed or its last start has, as soon as the disk
// has room.
func (v *supervisor) mendLog() {
	n := v.node.Load()
	var why error
	if broken := n.log.broken.Load(); broken != nil {
		why = *broken
	} else {
		select {
		case <-n.ended:
			why = errors.New("the last start of Raft failed")
		default:
			return
		}
	}
	if v.config.fails("room") == nil && hasRoom(v.folder.path, uint64(v.config.SegmentBytes)+1<<20) {
		v.mend(why)
	}
}

// mend restarts Raft. If it cannot start, the next mendLog tries again, except after errors
// that do not go away.
func (v *supervisor) mend(why error) {
	err := v.restart(why)
	switch {
	case err == nil:
		v.trouble.Store(nil)
	case errors.Is(err, ErrClosed), errors.Is(err, errStuck):
	case errors.Is(err, ErrCorrupt), errors.Is(err, ErrFolder):
		v.life.stop(err)
	default:
		v.trouble.Store(&err)
		v.config.Logger.Warn("Raft could not be restarted yet", "error", err)
	}
}

// Trouble returns why this node cannot lead at the moment, or nil: its disk is full, or its
// log cannot be written.
func (v *supervisor) Trouble() error { return loaded(&v.trouble) }

// Unsaved returns why the last snapshot could not be written, or nil. The log grows
// meanwhile.
func (v *supervisor) Unsaved() error { return loaded(&v.unsaved) }

func loaded(p *atomic.Pointer[error]) error {
	if e := p.Load(); e != nil {
		return *e
	}
	return nil
}

// Restarts returns how often Raft was restarted in this process.
func (v *supervisor) Restarts() uint64 { return v.restarts.Load() }

// Snapshot writes a snapshot now and deletes the log before it. The store also does so by
// itself: see Config.SnapshotLogBytes.
func (v *supervisor) Snapshot() error {
	if err := v.raft().Snapshot().Error(); err != nil {
		return fmt.Errorf("store: cannot write a snapshot: %w", err)
	}
	return nil
}

// save is Snapshot for the store itself: it logs the result.
func (v *supervisor) save() {
	before := time.Now()
	err := v.Snapshot()
	switch {
	case err == nil:
		v.config.Logger.Debug("a snapshot was written", "seconds", time.Since(before).Seconds())
		v.unsaved.Store(nil)
	case !errors.Is(err, raft.ErrRaftShutdown):
		v.unsaved.Store(&err)
		v.config.Logger.Warn("a snapshot could not be written, so the log grows", "error", err)
	}
}

// RoundTrips returns the round trips to the other coordinators, by id, that this one
// measured lately: the leader by its heartbeats, a candidate by asking the others whether
// it may be one.
func (v *supervisor) RoundTrips() map[string]rtt.Estimate {
	n := v.node.Load()
	if n == nil {
		return nil
	}
	return n.transport.trips.Since(tripsKept)
}

// tripsKept is the time after which a round trip is forgotten.
const tripsKept = 30 * time.Second

// Leader returns the node that leads Raft, if this node knows it, and its Raft address;
// else both are empty.
func (v *supervisor) Leader() (id, addr string) {
	a, i := v.raft().LeaderWithID()
	leader := parseServer(i, a)
	return leader.ID, leader.RaftAddr
}

// IsLeader reports whether this node believes that it leads Raft. VerifyLeader asks the
// others.
func (v *supervisor) IsLeader() bool {
	_, id := v.raft().LeaderWithID()
	return id == raftID(v.self)
}

// Member is one server of the cluster, as in the configuration in the log.
type Member struct {
	Server
	Voter bool // true if it votes; a nonvoter receives the log and does not count for a majority
}

// Members lists the members by coordinator, from the latest configuration in the log here;
// on the leader it is the one in force. The list is empty on a node that has joined no
// cluster yet. While a coordinator with a new folder catches up, it is listed twice.
func (v *supervisor) Members() []Member {
	var list []Member
	for _, m := range v.raft().GetConfiguration().Configuration().Servers {
		list = append(list, Member{parseServer(m.ID, m.Address), m.Suffrage == raft.Voter})
	}
	slices.SortFunc(list, func(a, b Member) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), strings.Compare(a.Directory, b.Directory))
	})
	return list
}

// Addr returns the address that peers reach this node at.
func (v *supervisor) Addr() string {
	return parseServer("", raft.ServerAddress(v.stream.advert)).RaftAddr
}

// CloseStreams ends the connections to peers, which are made again. Connections made before a
// change of certificates end that way.
func (v *supervisor) CloseStreams() {
	if n := v.node.Load(); n != nil && n.transport != nil {
		n.transport.CloseStreams()
	}
}

// await makes a call of Raft, which may take long, and waits for it until ctx is done. The
// call goes on until Raft answers it or the node ends; Raft may then never answer it.
func (v *supervisor) await(ctx context.Context, call func(*raft.Raft) error) error {
	if err := v.life.begin(); err != nil {
		return err
	}
	n := v.node.Load()
	answer, done := make(chan error, 1), make(chan error, 1)
	go func() { answer <- call(n.raft) }()
	go func() {
		defer v.life.calls.Done()
		select {
		case err := <-answer:
			done <- err
		case <-n.ended:
			done <- v.translate(raft.ErrRaftShutdown)
		}
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// translate turns Raft's error about a proposal into an error of this package.
func (v *supervisor) translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		leader, _ := v.Leader()
		if leader == v.config.ID { // about to be another
			leader = ""
		}
		return &NotLeaderError{Leader: leader}
	}
	// After ErrLeadershipLost, ErrRaftShutdown, ErrEnqueueTimeout or an error of the disk,
	// the entry may be on some disks.
	return fmt.Errorf("store: %w: %w", ErrAmbiguous, err)
}

// inPlace returns nil if the held files and the log's folder, the list of its segments and
// its open segments still exist. It checks nothing during a restart, which may move the log
// aside.
func (v *supervisor) inPlace(held *files.Places) error {
	if !v.changing.TryLock() {
		return nil
	}
	defer v.changing.Unlock()
	log := v.node.Load().log
	return cmp.Or(held.Check(), log.place.Check(), files.Check(log.meta, nil), log.files.check())
}

// hasRoom reports whether the disk of a folder takes so many bytes, by its own account and
// by a small file.
func hasRoom(folder string, bytes uint64) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return false
	}
	if st.Blocks > 0 && st.Bavail*uint64(st.Bsize) < bytes {
		return false
	}
	probe := filepath.Join(folder, probeName+".tmp")
	defer os.Remove(probe)
	return files.WriteSynced(probe, make([]byte, 64<<10), 0o600) == nil
}
