package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/internal/machine"
	"github.com/coppice-ldl/coppice/internal/rtt"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// worker is a running worker.
type worker struct {
	cfg      Config
	id       string
	address  string // of its HTTP server, or empty
	log      *slog.Logger
	registry *prometheus.Registry
	metrics  *metrics.Worker
	drops    drops
	join     *joiner
	beat     *pulse
	inbox    *orders
	folder   *folder
	cache    *cache
	results  *results
	disk     *ownFolder
	kept     *engine.DerivedMemory // derived values of all jobs
	prefetch *prefetch
	ping     time.Duration                // between pings of the connection; 0: by the heartbeat
	session  atomic.Pointer[session]      // nil while there is none
	trip     atomic.Pointer[rtt.Estimate] // to the session's NATS server; nil: not measured yet
	news     chan struct{}                // one token: who leads, or the connection, has changed

	procs  *processors
	ctx    context.Context // ends when the worker stops: parent of all jobs' contexts
	cancel context.CancelFunc
	lanes  [laneKinds]*lanes
	crew   sync.WaitGroup // lanes, prefetchers, verification
	parts  chan computed  // from lanes to keepers
	keeps  sync.WaitGroup // keepers
	tasks  sync.WaitGroup // preparation of jobs and batches

	// mu guards what follows, the jobs, their batches and the lanes. It is held
	// for bookkeeping only, never while computing, sending or waiting.
	mu      sync.Mutex
	cluster string // id of the cluster that the jobs are of
	epoch   uint64 // highest seen
	leader  string
	heard   time.Time // of the leader, last
	vacant  bool      // it said that it leads no more
	refused string    // why the leader does not use this worker
	jobs    map[uint64]*job
	orders  uint64 // counts Run and Setup messages
	busy    int    // units in work
	past    uint64 // bytes of all jobs' results of earlier rounds
}

// Run runs a worker until ctx is done, then stops it cleanly and returns nil. It
// waits for coordinators and NATS for ever; an error says why this worker cannot
// work at all: ErrConfig, ErrFolder, ErrLocked, ErrVersion, or of the system. If its folder,
// which is a cache, is deleted meanwhile, it makes the folder anew and begins again under the
// same name.
func Run(ctx context.Context, cfg Config) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	if open := machine.OpenToOthers(cfg.Dir); open != "" {
		cfg.Log.Warn(open)
	}
	for {
		w, err := openWorker(cfg)
		if err != nil {
			return err
		}
		if err = w.run(ctx); !errors.Is(err, files.ErrGone) || ctx.Err() != nil {
			return err
		}
		cfg.Log.Error("the worker's folder, which is only a cache, is lost; the worker makes a new folder and starts again", "reason", err)
		cfg.last, cfg.Listen, cfg.Ready = w.id, w.cfg.Listen, nil
	}
}

// run runs an opened worker.
func (w *worker) run(ctx context.Context) error {
	web, err := w.listen()
	if err != nil {
		w.cancel()
		w.disk.close()
		w.folder.close()
		return err
	}
	w.begin()
	serving, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	var gone error
	watch.Go(func() {
		if gone = w.disk.watch(serving); gone != nil {
			cancel()
		}
	})
	err = w.serve(serving)
	cancel()
	watch.Wait()
	w.stop(web)
	if ctx.Err() != nil {
		return nil
	}
	return cmp.Or(gone, err)
}

// openWorker opens the worker's folder and makes what needs no network.
func openWorker(cfg Config) (*worker, error) {
	w := &worker{
		cfg: cfg, log: cfg.Log, kept: engine.NewDerivedMemory(cfg.KeptBytes), registry: metrics.Registry(), beat: newPulse(),
		jobs: make(map[uint64]*job), parts: make(chan computed, maxComputed), news: make(chan struct{}, 1),
	}
	w.procs = newProcessors(cfg.Slots, runtime.GOMAXPROCS(0), cfg.Processors)
	w.metrics = metrics.NewWorker(w.registry)
	w.drops = newDrops(w.metrics)
	w.inbox = &orders{w: w}
	w.join = newJoiner(cfg.Join, cfg.Net, cfg.Log)
	w.join.nats = cfg.NATS
	w.ctx, w.cancel = context.WithCancel(context.Background())
	for kind := range w.lanes {
		w.lanes[kind] = newLanes(kind, &w.mu)
	}
	var err error
	if w.folder, err = openFolder(cfg.Dir, cfg.Log); err != nil {
		return nil, err
	}
	if err := w.openFiles(); err != nil {
		w.folder.close()
		return nil, err
	}
	return w, nil
}

func (w *worker) openFiles() (err error) {
	if w.id, err = w.folder.id(w.cfg.ID, w.cfg.last); err != nil {
		return err
	}
	w.join.remember(w.folder)
	w.cache, err = openCache(cacheOptions{
		dir: w.folder.path(shardsName), limit: w.cfg.CacheBytes,
		fetch: w.fetch, changed: w.beat.full, log: w.log, metrics: w.metrics,
	})
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	if w.results, err = openResults(w.folder.path(resultsName)); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	w.prefetch = newPrefetch(w.cache, w.procs, w.log)
	if w.disk, err = holdFolder(w.folder, w.beat.full, w.cache.folder, w.results.folder); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}

// keepers is how many units are stored at a time.
const keepers = 2

// begin starts the goroutines that live as long as the worker.
func (w *worker) begin() {
	w.metrics.OnScrape(w.observe)
	for kind, l := range w.lanes {
		for i := range w.cfg.Slots {
			w.crew.Go((&lane{w: w, lanes: l, number: kind*w.cfg.Slots + i}).run)
		}
	}
	for range keepers {
		w.keeps.Go(w.keeper)
	}
	for range prefetchers {
		w.crew.Go(func() { w.prefetch.run(w.ctx) })
	}
	w.crew.Go(func() {
		w.procs.begin()
		defer w.procs.end()
		w.cache.verify(w.ctx)
	})
}

// stop ends everything, in this order:
//
//  1. the session is over already: it said goodbye, no order comes any more, and
//     nothing that is still computed will be sent
//  2. all jobs' contexts end, if they have not, so that fetches and collected
//     units stop
//  3. tasks end; they hand batches to lanes, so before the lanes
//  4. lanes and prefetchers end, each after the unit that it computes, then the
//     keepers that store such units
//  5. jobs are forgotten: nobody reads their shards any more, which are unmapped
//  6. HTTP ends last but for the folder, so that /healthz answers until now
//  7. the folder is unlocked: another process may have it
func (w *worker) stop(web *web) {
	w.cancel()
	w.procs.begin() // for whatever the process does next
	w.tasks.Wait()
	w.mu.Lock()
	for _, l := range w.lanes {
		l.close()
	}
	w.mu.Unlock()
	w.prefetch.close()
	w.crew.Wait()
	close(w.parts)
	w.keeps.Wait()
	w.forgetAll()
	web.close()
	w.metrics.OnScrape(nil)
	w.join.close()
	w.disk.close()
	w.folder.close()
	w.log.Info("the worker has stopped", "worker", w.id)
}

func (w *worker) forgetAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, j := range w.jobs {
		w.forget(j)
	}
}

// observe sets the gauges before they are read.
func (w *worker) observe() {
	holds, bytes := w.cache.holdings()
	s := w.session.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.metrics
	m.Slots.Set(float64(w.cfg.Slots))
	m.Busy.Set(float64(w.busy))
	m.Jobs.Set(float64(len(w.jobs)))
	m.Epoch.Set(float64(w.epoch))
	m.Shards.Set(float64(len(holds)))
	m.CacheBytes.Set(float64(bytes))
	m.Connected.Set(0)
	if s != nil && s.conn.Connected() {
		m.Connected.Set(1)
	}
}

// send publishes a message. What is lost is asked for again, so an error is only
// logged.
func (w *worker) send(subject string, msg []byte) {
	s := w.session.Load()
	if s == nil {
		return
	}
	w.sent(subject, s.conn.Send(subject, "", msg))
}

// sendParts is send of a message that is parts, one behind the other.
func (w *worker) sendParts(subject string, parts ...[]byte) {
	if s := w.session.Load(); s != nil {
		w.sent(subject, s.conn.SendParts(subject, "", parts...))
	}
}

func (w *worker) sent(subject string, err error) {
	if err != nil {
		w.log.Debug("a message could not be sent", "subject", subject, "error", err)
	}
}

// reuse gives the memory of a message that nobody reads any more to the next ones.
func (w *worker) reuse(message []byte) {
	if s := w.session.Load(); s != nil {
		s.conn.Room().Reuse(message)
	}
}

// release drops such memory: there is no job.
func (w *worker) release() {
	if s := w.session.Load(); s != nil {
		s.conn.Room().Release()
	}
}

// tell has the session looked at soon. It never blocks.
func (w *worker) tell() {
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// fetch pulls a blob from whichever coordinator has it. When the session ends
// under way the pull fails: nothing would answer it; with errMoved where another session
// has followed, in which it may be tried again.
func (w *worker) fetch(ctx context.Context, digest string, size int64, to io.Writer) error {
	s := w.session.Load()
	if s == nil {
		return errNoSession
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	err := s.conn.FetchBlob(ctx, s.subjects.Blobs(), digest, size, to)
	if next := w.session.Load(); err != nil && s.ctx.Err() != nil && next != nil && next != s {
		return fmt.Errorf("%w: %w", errMoved, err)
	}
	return err
}

var (
	errNoSession = errors.New("worker: there is no connection to the cluster")
	errMoved     = errors.New("worker: the connection has changed meanwhile")
)

// silence returns for how long no leader was heard.
func (w *worker) silence() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.heard)
}

// enterCluster makes the worker one of this cluster: jobs and epochs of another
// mean nothing here.
func (w *worker) enterCluster(c *protocol.Cluster) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cluster != c.ID {
		for _, j := range w.jobs {
			w.forget(j)
		}
		w.cluster, w.epoch, w.leader, w.refused = c.ID, 0, "", ""
	}
	w.epoch = max(w.epoch, c.Epoch)
	w.heard, w.vacant = time.Now(), false // patience begins anew
}
