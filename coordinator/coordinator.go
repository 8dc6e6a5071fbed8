package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/api"
	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/jobs"
	"github.com/coppice-ldl/coppice/coordinator/members"
	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/retention"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/machine"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// node is a running coordinator. Its parts are opened in the order of its fields
// and closed in the opposite one.
type node struct {
	cfg      Config
	subjects protocol.Subjects
	metrics  *metrics.Coordinator
	scrape   http.Handler // of /metrics

	listener  *connections // of HTTP
	raft      net.Listener
	reserved  []net.Listener // the ports of NATS, until its server takes them
	process   string         // drawn for this process
	ofCluster string         // that the folder is of; empty: it is new
	damaged   error          // what is wrong with both files that say so
	joins     string         // the cluster that --join-cluster found; empty: none
	folder    *store.Folder  // of Raft, until the store takes it
	nats      *bus.Server    // nil with an external NATS
	conn      *bus.Conn
	blobs     *replica.Blobs
	store     *store.Store
	copies    *copies
	own       *ownFolder // that the parts are open in
	http      *http.Server

	roster     *roster
	peers      *peers // as they describe themselves
	membership *members.Service

	front    atomic.Pointer[http.Handler]        // of HTTP just now
	starting atomic.Pointer[store.Folder]        // from when it is claimed until the log is open
	leading  atomic.Pointer[dispatch.Dispatcher] // while this coordinator leads
	disk     atomic.Pointer[error]               // why the disk takes no more
	slow     atomic.Pointer[string]              // which round trip is long for the timeouts
	seen     sightings                           // of the other coordinators, while it leads

	closers []func()
}

// Run runs a coordinator until ctx is done. Errors of the configuration wrap
// ErrUsage.
func Run(ctx context.Context, cfg Config) error {
	cfg.runs = true
	cfg, err := cfg.prepared()
	if err != nil {
		return err
	}
	if open := machine.OpenToOthers(cfg.Dir); open != "" {
		cfg.Log.Warn(open)
	}
	n := &node{cfg: cfg, process: store.NewID()}
	defer n.close()
	if err := n.open(ctx); err != nil {
		return err
	}
	if cfg.Ready != nil {
		cfg.Ready()
	}
	cfg.Log.Info("the coordinator is up", "id", cfg.ID, "http", n.listener.Addr().String(), "cluster", n.subjects.Cluster)
	return n.run(ctx)
}

// onClose adds a step to close, to be taken before those added so far.
func (n *node) onClose(f func()) { n.closers = append(n.closers, f) }

func (n *node) close() {
	for i := len(n.closers) - 1; i >= 0; i-- {
		n.closers[i]()
	}
}

func (n *node) open(ctx context.Context) error {
	// Ports are opened before anything is written but the id of a new folder. So a first start
	// that fails has begun no cluster.
	for _, step := range []func(context.Context) error{
		n.openListeners, n.openIdentity, n.openHTTP, n.openStart, n.openFolder, n.openNATS, n.openBlobs, n.openStore, n.openAPI,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) openListeners(context.Context) (err error) {
	listener, err := net.Listen("tcp", n.cfg.HTTPAddr)
	if err != nil {
		return n.cfg.listenError(0, n.cfg.HTTPAddr, err)
	}
	n.listener = boundConnections(listener, n.cfg.Budget.Connections)
	n.onClose(func() { n.listener.Close() })
	if n.raft, err = net.Listen("tcp", n.cfg.RaftAddr); err != nil {
		return n.cfg.listenError(1, n.cfg.RaftAddr, err)
	}
	n.onClose(func() { n.raft.Close() }) // the store does it as well
	if n.cfg.NATS != "" {
		return nil
	}
	n.onClose(n.releaseReserved)
	for port, address := range map[int]string{2: n.cfg.NATSAddr, 3: n.cfg.RouteAddr} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return n.cfg.listenError(port, address, err)
		}
		n.reserved = append(n.reserved, l)
	}
	return nil
}

func (n *node) releaseReserved() {
	for _, l := range n.reserved {
		l.Close()
	}
	n.reserved = nil
}

func (n *node) openFolder(ctx context.Context) error {
	err := n.awaitRoom(ctx, func() error {
		if err := os.MkdirAll(n.cfg.Dir, 0o700); err != nil {
			return err
		}
		if err := setAsideMembers(n.cfg.Dir); err != nil {
			return err
		}
		if err := n.roster.kept.write(n.cfg.Dir); err != nil {
			return err
		}
		return n.cfg.keepClusterID(n.subjects.Cluster)
	})
	if err != nil {
		return fmt.Errorf("the coordinator's folder cannot be used: %w", err)
	}
	return nil
}

func (n *node) openNATS(ctx context.Context) error {
	reg := metrics.Registry()
	n.metrics = metrics.NewCoordinator(reg)
	options := bus.Options{
		Name: "coordinator " + n.cfg.ID, Ping: n.cfg.timeouts.Ping, Traffic: n.metrics, Log: n.cfg.Log,
		Received: int(n.cfg.Budget.parts().received), Backlog: int(n.cfg.Budget.parts().backlog),
	}
	options.MayAnswer = n.subjects.MayAnswer
	if n.cfg.NATS != "" {
		options.URLs = strings.Split(n.cfg.NATS, ",")
	} else {
		s, err := n.startNATS()
		if err != nil {
			return err
		}
		n.nats, options.Server = s, s
		n.onClose(s.Close)
	}
	ctx, cancel := context.WithTimeout(ctx, protocol.NATSStart)
	defer cancel()
	conn, err := bus.Connect(ctx, options)
	if err != nil {
		return err
	}
	n.conn = conn
	n.onClose(conn.Close)
	n.scrape = metrics.Handler(reg)
	return nil
}

func (n *node) openBlobs(ctx context.Context) error {
	var folder *blobs.Folder
	err := n.awaitRoom(ctx, func() (err error) {
		folder, err = blobs.Open(filepath.Join(n.cfg.Dir, "blobs"))
		return err
	})
	if err != nil {
		return err
	}
	n.blobs = &replica.Blobs{
		Self: n.cfg.ID, Members: n.others, Folder: folder, Conn: n.conn, Subjects: n.subjects, Log: n.cfg.Log,
	}
	stop, err := n.blobs.Serve()
	if err != nil {
		return err
	}
	n.onClose(stop)
	return nil
}

// storeConfig describes the store.
func (n *node) storeConfig() store.Config {
	cfg := store.Config{
		ID: n.cfg.ID, Dir: filepath.Join(n.cfg.Dir, "raft"), RaftAddr: n.cfg.RaftAddr,
		Heartbeat: n.cfg.Heartbeat, Election: n.cfg.Election, SnapshotLogBytes: n.cfg.SnapshotBytes, Logger: n.cfg.Log,
		Committed: func(d time.Duration) { n.metrics.RaftCommit.Observe(d.Seconds()) },
		PeerList:  n.cfg.peerList(), Cluster: n.ofCluster, Locate: n.roster.raft, Ask: n.peers.ask,
	}
	for _, m := range n.roster.known() {
		cfg.Peers = append(cfg.Peers, store.Peer{ID: m.ID, RaftAddr: m.Raft})
	}
	return cfg
}

// awaitRoom tries again where the disk is full: what is on it is whole, and an
// operator who makes room should not have to do more.
func (n *node) awaitRoom(ctx context.Context, try func() error) error {
	for {
		err := try()
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
			n.disk.Store(nil)
			return err
		}
		n.disk.Store(&err)
		n.cfg.Log.Error("the disk is full; the coordinator starts once the disk has free space", "error", err)
		wait.For(ctx, n.cfg.timeouts.DiskProbe)
		if ctx.Err() != nil {
			return err
		}
	}
}

// openHTTP serves HTTP; until openAPI it answers what others must know of a
// coordinator that starts.
func (n *node) openHTTP(context.Context) error {
	n.serve(api.Starting(n.beginning, n.waits))
	n.http = n.boundHTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(*n.front.Load()).ServeHTTP(w, r)
	}))
	var done sync.WaitGroup
	done.Go(func() {
		if err := n.http.Serve(n.listener); !errors.Is(err, http.ErrServerClosed) {
			n.cfg.Log.Error("HTTP stopped", "error", err)
		}
	})
	n.onClose(func() {
		n.http.Close() // watchers connect again elsewhere
		done.Wait()
	})
	return nil
}

func (n *node) serve(h http.Handler) { n.front.Store(&h) }

func (n *node) openAPI(context.Context) error {
	n.serve(api.Handler(api.Config{
		ID: n.cfg.ID, Cluster: n.cluster, Local: n.local, Heard: n.heard, Ready: n.ready, Lacks: n.copies.notReady, Store: n.store, Blobs: n.blobs, Members: n.membership,
		Metrics: n.scrape, Log: n.cfg.Log, Live: n.live, WorkersOf: n.workersOf, Waits: n.jobWaits, Standing: n.standing, Count: n.metrics.Requests.Add, Backed: n.backed, Quotas: n.quotas(),
	}))
	n.onClose(func() { n.http.Close() }) // clients go elsewhere before the rest is closed
	return nil
}

// run leads while Raft says so and keeps house all the time. It returns when ctx
// is done, once everything it started has stopped.
func (n *node) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var tasks sync.WaitGroup
	tasks.Go(func() { n.copies.Run(ctx) })
	tasks.Go(func() { n.copies.becomeWhole(ctx, n.copies.leaderApplied) })
	tasks.Go(func() { n.deleteSurplus(ctx) })
	tasks.Go(func() { n.observe(ctx) })
	tasks.Go(func() { n.keepSightings(ctx) })
	tasks.Go(func() { n.keepFit(ctx) })
	tasks.Go(func() { n.keepClients(ctx) })
	tasks.Go(func() { n.keepBudget(ctx) })
	var removed, gone error
	tasks.Go(func() {
		if removed = n.keepMembers(ctx); removed != nil {
			cancel()
		}
	})
	tasks.Go(func() {
		if gone = n.own.watch(ctx); gone != nil {
			cancel()
		}
	})
	err := n.followLeadership(ctx)
	cancel()
	tasks.Wait()
	return n.cfg.lostFolder(cmp.Or(err, gone, removed), n.roster.known())
}

// retentionEvery is the time between two turns of the deletion of jobs and blobs; tests have it shorter.
var retentionEvery = 5 * time.Second

// deleteSurplus deletes jobs and blobs that are not kept, until ctx is done.
func (n *node) deleteSurplus(ctx context.Context) {
	retention.Run(ctx, retention.Config{
		Log: n.store, Blobs: n.blobs.Folder, Leading: func() bool { return n.leading.Load() != nil }, Every: retentionEvery,
		BlobGrace: n.cfg.BlobGrace, KeepJobs: n.cfg.KeepJobs, Logger: n.cfg.Log,
	})
}

// ready reports why the coordinator cannot serve just now, or nil.
func (n *node) ready() error {
	why := n.trouble()
	if id, _ := n.store.Leader(); id != "" {
		return why
	}
	if why != nil {
		return fmt.Errorf("the cluster has no leader; %w", why)
	}
	return errors.New("the cluster has no leader")
}

// live tells how far a job is, as far as this coordinator leads.
func (n *node) live(job uint64) (dispatch.Live, bool) {
	if d := n.leading.Load(); d != nil {
		return d.Live(job)
	}
	return dispatch.Live{}, false
}

// workersOf lists the workers that compute a job just now, as far as this coordinator
// leads.
func (n *node) workersOf(job uint64) []string {
	if d := n.leading.Load(); d != nil {
		return d.WorkersOf(job)
	}
	return nil
}

// backed notes that a whole backup was sent.
func (n *node) backed() { n.metrics.LastBackup.SetToCurrentTime() }

// cluster describes the cluster as this coordinator knows it.
func (n *node) cluster() protocol.Cluster {
	s := n.store.State()
	c := n.describeCluster(s)
	if d := n.leading.Load(); d != nil {
		c.Workers, c.Members = d.Workers(), n.seenMembers(time.Now())
		jobs.AddIdle(c.Workers, d.Idle(), s.Jobs(), n.jobWaits(s))
	} else if c.Leader == n.cfg.ID {
		c.Leader = "" // elected, not in charge yet
	}
	return c
}

// local is protocol.ClusterLocal: Raft's leader is named only where it is the leader of
// the epoch that is told as well.
func (n *node) local() protocol.Cluster {
	s := n.store.State()
	c := n.describeCluster(s)
	c.Workers, c.Leader = []protocol.Worker{}, ""
	if n.hears(s) {
		c.Leader = s.Leader()
	}
	if len(c.Coordinators) == 0 { // started without a majority, it has applied nothing
		c.Coordinators = n.roster.known()
	}
	return c
}

// heard reports whether this coordinator hears the leader of the epoch that it knows.
func (n *node) heard() bool { return n.hears(n.store.State()) }

func (n *node) hears(s *state.State) bool {
	leader, _ := n.store.Leader()
	return leader != "" && leader == s.Leader() && (leader != n.cfg.ID || n.leading.Load() != nil)
}

func (n *node) describeCluster(s *state.State) protocol.Cluster {
	c := protocol.Cluster{
		ID: n.subjects.Cluster, Version: version.String, Protocol: protocol.Version, Numerics: round.Numerics,
		Epoch: s.Epoch(), Heartbeat: int(n.cfg.Heartbeat / time.Millisecond),
		Coordinators: s.Members(), NATS: n.natsURLs(), Distrusted: s.DistrustedWorkers(), Problem: n.problem(), Warning: n.warning(),
	}
	c.Leader, _ = n.store.Leader()
	return c
}
