package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/api"
	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/jobs"
	"github.com/coppice-ldl/coppice/coordinator/leadership"
	"github.com/coppice-ldl/coppice/coordinator/members"
	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/retention"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/machine"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// node is a running coordinator. It opens its parts in the order of the fields,
// connects them, and closes them in the opposite order. After open only leading
// changes.
type node struct {
	cfg      *settings
	metrics  *metrics.Coordinator
	scrape   http.Handler // of /metrics
	subjects protocol.Subjects

	http   *httpServer
	raft   net.Listener
	nats   *messaging
	start  *startup
	blobs  *replica.Blobs
	store  *store.Store
	copies *copies
	folder *heldFolder
	health *health
	status *status
	member *membership

	refusals refusals
	leading  atomic.Pointer[dispatch.Dispatcher] // nil while this coordinator does not lead
	journal  atomic.Pointer[jobs.Journal]        // likewise
	turns    chan struct{}                       // a value is received in each turn of followLeadership that has no event
	closers  []func()
}

// Run runs a coordinator until ctx is done. Errors of the configuration wrap ErrUsage.
func Run(ctx context.Context, c Config) error {
	cfg, err := c.prepared(true)
	if err != nil {
		return err
	}
	if open := machine.OpenToOthers(cfg.Dir); open != "" {
		cfg.Log.Warn(open)
	}
	watching, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { cfg.TLS.Watch(watching) })
	defer watch.Wait()
	defer cancel()
	n := &node{cfg: cfg, turns: make(chan struct{})}
	defer func() {
		for _, end := range slices.Backward(n.closers) {
			end()
		}
	}()
	if err := n.open(ctx); err != nil {
		return err
	}
	cfg.Log.Info("the coordinator is up", "id", cfg.ID, "http", n.http.Addr().String(), "cluster", n.subjects.Cluster)
	return n.run(ctx)
}

// onClose adds a step to the end of Run, before the steps that were added earlier.
func (n *node) onClose(f func()) { n.closers = append(n.closers, f) }

func (n *node) open(ctx context.Context) error {
	registry := metrics.Registry()
	n.metrics, n.scrape = metrics.NewCoordinator(registry), metrics.Handler(registry)
	n.refusals.counted = n.metrics.Refused
	if err := n.reservePorts(); err != nil {
		return err
	}
	bound := []net.Addr{n.http.Addr(), n.raft.Addr()}
	for _, l := range n.nats.reserved {
		bound = append(bound, l.Addr())
	}
	if err := n.checkExposed(certs.Exposed(bound...)); err != nil {
		return err
	}
	var err error
	n.start, err = newStartup(ctx, n.cfg, func(d time.Duration) { n.metrics.RaftCommit.Observe(d.Seconds()) })
	if err != nil {
		return err
	}
	if n.cfg.TLS == nil && n.cfg.NATS != "" { // a cluster that this coordinator joins may name it
		if err := n.checkExposed(certs.ExposedURLs(ctx, strings.Split(n.cfg.NATS, ",")...)); err != nil {
			return err
		}
	}
	n.http.handle(api.Starting(n.cfg.public.Path, n.start.answer, n.start.waits, n.cfg.Log))
	n.http.start()
	n.onClose(n.http.stop)
	n.onClose(n.start.close)
	if err := n.start.decide(ctx); err != nil {
		return err
	}
	if err := n.start.writeFolder(ctx); err != nil {
		return err
	}
	n.subjects.Cluster = n.start.peers.clusterID
	n.onClose(n.nats.close)
	if err := n.nats.open(ctx, n.start.book, n.subjects, n.metrics); err != nil {
		return err
	}
	if err := n.openData(ctx); err != nil {
		return err
	}
	n.connect()
	n.http.handle(api.Handler(api.Config{
		ID: n.cfg.ID, TLS: n.cfg.TLS, Store: n.store, Blobs: n.blobs, Members: n.member.service, Metrics: n.scrape,
		Log:    n.cfg.Log,
		Quotas: n.cfg.Quotas,
		Status: api.Status{
			Cluster: n.status.cluster, Leader: n.status.leader, Local: n.status.local, Heard: n.status.heard,
			Ready: n.status.ready, Lacks: n.copies.notReady, Advice: n.status.readyText,
		},
		Running: api.Running{
			Live:    func(job uint64) (dispatch.Live, bool) { return n.leading.Load().Live(job) },
			Workers: func(job uint64) []string { return n.leading.Load().WorkersOf(job) },
			Waits:   n.status.jobWaits,
			Journal: n.journal.Load,
		},
		Prefix: n.cfg.public.Path, Open: n.cfg.exposed,
		Count: n.metrics.Requests.Add, Backed: n.metrics.LastBackup.SetToCurrentTime,
	}))
	n.onClose(n.http.stop) // clients connect to another coordinator before the rest is closed
	return nil
}

// reservePorts listens at all ports, and serves none of them yet.
func (n *node) reservePorts() error {
	listener, err := n.cfg.listen(0)
	if err != nil {
		return err
	}
	n.http = newHTTPServer(listener, n.cfg)
	n.http.gate.Refused = n.refusals.note
	n.onClose(func() { listener.Close() })
	if n.raft, err = n.cfg.listen(1); err != nil {
		return err
	}
	n.onClose(func() { n.raft.Close() }) // the store closes it as well
	if n.nats, err = reserveNATS(n.cfg); err != nil {
		return err
	}
	n.onClose(n.nats.release)
	return nil
}

// checkExposed refuses connections in the clear with other machines, unless Config.Insecure is true.
// exposed says that there are such connections; nil: there are none.
func (n *node) checkExposed(exposed error) error {
	if n.cfg.TLS != nil || exposed == nil {
		return nil
	}
	if !n.cfg.Insecure {
		return fmt.Errorf("%w: %w", ErrUsage, exposed)
	}
	if !n.cfg.exposed {
		n.cfg.exposed = true
		n.cfg.Log.Warn("--insecure: this coordinator exchanges everything with other machines without TLS")
	}
	return nil
}

// openData opens the blobs and the log.
func (n *node) openData(ctx context.Context) error {
	var folder *blobs.Folder
	err := n.start.awaitRoom(ctx, func() (err error) {
		folder, err = blobs.Open(filepath.Join(n.cfg.Dir, "blobs"))
		return err
	})
	if err != nil {
		return err
	}
	n.blobs = &replica.Blobs{
		Self: n.cfg.ID, Members: n.start.book.voters, Folder: folder, Conn: n.nats.conn, Subjects: n.subjects, Log: n.cfg.Log,
	}
	stop, err := n.blobs.Serve()
	if err != nil {
		return err
	}
	n.onClose(stop)
	if n.store, err = n.start.openStore(ctx, n.raft); err != nil {
		return err
	}
	n.onClose(func() {
		if err := n.store.Close(); err != nil {
			n.cfg.Log.Warn("Raft was not closed cleanly", "error", err)
		}
	})
	known := &registry{n.store, n.isLeading, n.subjects.Cluster}
	n.http.know(known)
	n.cfg.TLS.Revoked(known.Revoked)
	n.nats.admit()
	n.cfg.TLS.OnChange(n.store.CloseStreams)
	if n.folder, err = holdFolder(n.cfg.Dir, folder); err != nil {
		return err
	}
	n.onClose(n.folder.close)
	return nil
}

// connect makes the parts that need all others. None of them runs yet.
func (n *node) connect() {
	cfg, book, peers := n.cfg, n.start.book, n.start.peers
	n.copies = newCopies(n.store, n.blobs, cfg.Log)
	n.health = &health{cfg: cfg, book: book, peers: peers, store: n.store, nats: n.nats, copies: n.copies,
		folder: n.folder}
	n.status = &status{
		cfg: cfg, book: book, peers: peers, store: n.store, nats: n.nats, copies: n.copies, health: n.health,
		leading: n.leading.Load,
		reports: &reports{peers: peers, store: n.store, lag: n.metrics.RaftLag, leading: n.isLeading},
	}
	service := &members.Service{
		Log: n.store, Self: n.status.describeSelf, Find: book.find, Ask: cfg.asker.askSelf, Patience: cfg.patience(),
		Logger: cfg.Log, Security: n.status.security,
	}
	if cfg.TLS != nil {
		service.Certificates = cfg.TLS.Met
	}
	n.member = &membership{status: n.status, service: service, joins: n.start.joinedCluster != "",
		written: *book.kept.Load()}
}

// retentionEvery is the time between two turns of retention; tests have it shorter.
var retentionEvery = 5 * time.Second

// run runs all parts. It returns when ctx is done or the coordinator must end, once
// everything it started has stopped.
func (n *node) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	observer := &observer{status: n.status, http: n.http, blobs: n.blobs.Folder, metrics: n.metrics}
	var tasks sync.WaitGroup
	tasks.Go(func() { n.copies.Run(ctx) })
	tasks.Go(func() { n.copies.becomeComplete(ctx, n.status.leaderApplied) })
	tasks.Go(func() {
		retention.Run(ctx, retention.Config{
			Log: n.store, Blobs: n.blobs.Folder, Leading: n.isLeading, Every: retentionEvery,
			BlobGrace: n.cfg.BlobGrace, KeepJobs: n.cfg.KeepJobs, Logger: n.cfg.Log,
		})
	})
	tasks.Go(func() { observer.run(ctx) })
	tasks.Go(func() { logAudit(ctx, n.store, n.isLeading, n.cfg.Log) })
	tasks.Go(func() { n.refusals.run(ctx, n.status.putRecords, n.cfg.Log) })
	tasks.Go(func() { observer.observeLoad(ctx) })
	tasks.Go(func() { n.status.reports.run(ctx) })
	tasks.Go(func() { n.health.watch(ctx) })
	tasks.Go(func() { n.nats.divertClients(ctx, n.leader) })
	if n.cfg.Up != nil {
		tasks.Go(func() { n.cfg.Up(ctx, n.check) })
	}
	var removed, lost error
	tasks.Go(func() {
		if removed = n.member.run(ctx); removed != nil {
			cancel()
		}
	})
	tasks.Go(func() {
		if lost = n.folder.watch(ctx); lost != nil {
			cancel()
		}
	})
	err := n.followLeadership(ctx)
	cancel()
	tasks.Wait()
	return n.cfg.lostFolder(cmp.Or(err, lost, removed), n.start.book.known())
}

// followLeadership leads while Raft says that this coordinator is the leader, until ctx
// is done or the store ends.
func (n *node) followLeadership(ctx context.Context) error {
	end := func() {}
	defer func() { end() }()
	for changes := n.store.Leadership(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-n.store.Down():
			return n.store.Err()
		case <-n.turns:
		case leads := <-changes:
			end()
			end = func() {}
			if leads {
				end = n.lead(ctx)
			}
		}
	}
}

// check returns an error if one of the loops that this coordinator needs does not answer in time: Raft's, and
// followLeadership, which also waits for the end of a leadership. A coordinator without a quorum passes, because it
// works again when the others do.
func (n *node) check(ctx context.Context) error {
	if err := n.store.VerifyLeader(ctx); err != nil && ctx.Err() != nil { // any answer will do
		return errors.New("the loop of Raft does not answer")
	}
	n.store.Stats()
	select {
	case n.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errors.New("a leadership does not begin or does not end")
	}
}

// lead begins a leadership, and returns a function that ends it and waits for its end.
func (n *node) lead(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		leadership.Run(ctx, leadership.Config{
			ID: n.cfg.ID, Heartbeat: n.cfg.Heartbeat, Concurrent: n.cfg.Concurrent, Lean: n.cfg.Lean,
			Store: n.store, Blobs: n.blobs, Conn: n.nats.conn, Subjects: n.subjects,
			Members: n.start.book.known, Leading: n.setLeading, Lost: n.copies.Unavailable, Disconnect: n.nats.disconnect,
			Secure:  n.cfg.TLS != nil,
			Metrics: n.metrics, Log: n.cfg.Log,
		})
	}()
	return func() {
		cancel()
		<-done
	}
}

// isLeading reports whether this coordinator leads.
func (n *node) isLeading() bool { return n.leading.Load() != nil }

// setLeading takes in who gives work to workers, and the events that the log does not have yet: nil
// if this coordinator does not lead any longer.
func (n *node) setLeading(d *dispatch.Dispatcher, journal *jobs.Journal) {
	n.journal.Store(journal)
	n.leading.Store(d)
}

// leader returns the leader that Raft hears, or "".
func (n *node) leader() string {
	id, _ := n.store.Leader()
	return id
}
