// Package worker is the process that computes. It keeps verified copies of shards on disk, computes
// tasks with the kernels of algorithms, and answers the leader of the coordinators over NATS. All
// that it has can be fetched or computed again, so it may be killed at any moment. DESIGN.md
// explains the decisions.
package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/internal/machine"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/bus"
	"github.com/coppice-ldl/coppice/worker/batch"
)

// worker connects the parts of a worker. Each part guards its own state.
type worker struct {
	*env
	registry  *prometheus.Registry
	folder    *folder
	disk      *folderWatch
	cache     *cache
	procs     *processors
	jobs      *jobs
	executors [batch.Executors]*executors
	revoked   atomic.Pointer[[]string] // serial numbers of certificates, in order; nil: the leader has named none
	orders    *orders
	leader    *leadership
	heartbeat *heartbeat
	sessions  *sessions

	ctx        context.Context // ends when the worker stops
	cancel     context.CancelFunc
	background sync.WaitGroup // prefetching and verification
}

// Run runs a worker until ctx is done, then stops it cleanly and returns nil. It waits for
// coordinators and NATS without end. An error says why this worker cannot work at all: ErrConfig,
// ErrFolder, ErrLocked, ErrVersion, or an error of the system. If its folder, which is a cache, is
// deleted, it makes a new folder and starts again under the same name.
func Run(ctx context.Context, cfg Config) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	if open := machine.OpenToOthers(cfg.Dir); open != "" {
		cfg.Log.Warn(open)
	}
	if cfg.TLS == nil && !cfg.Insecure {
		if err := certs.ExposedURLs(ctx, cfg.NATS...); err != nil {
			return fmt.Errorf("%w: --nats: %w", ErrConfig, err)
		}
	}
	watching, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { cfg.TLS.Watch(watching) })
	defer watch.Wait()
	defer cancel()
	for {
		w, err := openWorker(cfg)
		if err != nil {
			return err
		}
		if err = w.run(ctx); !errors.Is(err, files.ErrGone) || ctx.Err() != nil {
			return err
		}
		cfg.Log.Error("the worker's folder, which is only a cache, is lost; the worker makes a new folder and starts again",
			"reason", err)
		cfg.last, cfg.Listen, cfg.Ready = w.id, w.cfg.Listen, nil
	}
}

// openWorker opens the worker's folder and makes all that needs no network.
func openWorker(cfg Config) (*worker, error) {
	folder, err := openFolder(cfg.Dir, cfg.Log)
	if err != nil {
		return nil, err
	}
	w := &worker{env: &env{cfg: cfg, process: rand.Text(), log: cfg.Log, link: &link{log: cfg.Log}}, folder: folder,
		registry: metrics.Registry()}
	w.metrics = metrics.NewWorker(w.registry)
	w.procs = newProcessors(cfg.Slots, runtime.GOMAXPROCS(0), cfg.Processors)
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.heartbeat = &heartbeat{env: w.env, kick: make(chan struct{}, 1)}
	if err := w.openFiles(); err != nil {
		w.cancel()
		folder.close()
		return nil, err
	}
	w.heartbeat.jobs, w.heartbeat.cache, w.heartbeat.disk = w.jobs, w.cache, w.disk
	w.orders = &orders{stepper: stepper{jobs: w.jobs}, prefetch: &backlog[dataset.ShardRef]{
		limit: prefetchers, procs: w.procs, running: &w.background,
		work: func(ref dataset.ShardRef) { w.cache.prefetch(w.ctx, ref) },
	}}
	w.leader = &leadership{env: w.env}
	w.sessions = &sessions{
		env: w.env, Traffic: &w.metrics.Traffic, coordinators: newCoordinators(&cfg), leader: w.leader, jobs: w.jobs,
		heartbeat: w.heartbeat,
		onLead:    w.lead, onOrder: w.orders.handle, openBlob: w.blob, ctx: w.ctx, cancel: w.cancel,
		news: make(chan struct{}, 1),
	}
	cfg.TLS.Revoked(func(serial string) bool {
		list := w.revoked.Load()
		if list == nil {
			return false
		}
		_, found := slices.BinarySearch(*list, serial)
		return found
	})
	w.leader.changed = w.sessions.check
	return w, nil
}

// openFiles opens what the folder holds, and makes jobs, which needs it.
func (w *worker) openFiles() (err error) {
	if w.id, err = w.folder.id(w.cfg.ID, w.cfg.last, func(id string) bool {
		return w.cfg.TLS.Belongs(id, certs.Worker, certs.Pool) == nil
	}); err != nil {
		return err
	}
	if err := w.cfg.TLS.Belongs(w.id, certs.Worker, certs.Pool); err != nil {
		return fmt.Errorf("%w: --tls-dir: %w", ErrConfig, err)
	}
	w.cache, err = openCache(cacheOptions{
		dir: w.folder.path(shardsName), limit: w.cfg.CacheBytes,
		fetch: w.link.fetch, changed: w.heartbeat.full, log: w.log, metrics: w.metrics,
	})
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	results, err := openResults(w.folder.path(resultsName))
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	if w.disk, err = watchFolder(w.folder, w.heartbeat.full, w.cache.folder, results.folder); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	w.jobs = &jobs{
		env: w.env, cache: w.cache, results: results, procs: w.procs, kept: engine.NewDerivedMemory(w.cfg.KeptBytes),
		report: w.heartbeat.full, ctx: w.ctx, computed: make(chan computed, maxComputed),
		machine: batch.New(batch.Config{Worker: w.id, Slots: w.cfg.Slots, Memory: w.cfg.MemoryBytes}),
	}
	for kind := range w.executors {
		w.executors[kind] = newExecutors(batch.Executor(kind))
	}
	w.jobs.wake = func(kind batch.Executor, tasks int) { w.executors[kind].ready(tasks) }
	return nil
}

// run runs an opened worker.
func (w *worker) run(ctx context.Context) error {
	web, err := listen(&w.cfg, w.registry, w.unready)
	if err != nil {
		w.cancel()
		w.disk.close()
		w.folder.close()
		return err
	}
	if web != nil {
		w.heartbeat.http = web.address
		w.cfg.Listen = web.port // the same one if the worker starts again
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
	if w.cfg.Watch != nil {
		watch.Go(func() { w.cfg.Watch(serving, w.check) })
	}
	err = w.sessions.run(serving, func(cluster string) {
		if w.cfg.Ready != nil {
			w.cfg.Ready(Info{w.id, cluster, w.heartbeat.http})
		}
	})
	cancel()
	watch.Wait()
	w.stop(web)
	if ctx.Err() != nil {
		return nil
	}
	return cmp.Or(gone, err)
}

// begin starts the goroutines that live as long as the worker.
func (w *worker) begin() {
	w.metrics.OnScrape(w.observe)
	for _, pool := range w.executors {
		pool.begin(w.jobs)
	}
	for range storers {
		w.jobs.storing.Go(w.jobs.store)
	}
	w.background.Go(func() {
		w.procs.begin()
		defer w.procs.end()
		w.cache.verify(w.ctx)
	})
}

// stop ends everything, in this order:
//
//  1. The session is over already: it said goodbye, no order comes any longer, and nothing that is computed is sent.
//  2. All jobs are forgotten, so that fetches and tasks of gather rounds end.
//  3. What opens jobs and fetches shards ends.
//  4. Executors end, each after its task, then the storers of their results. Now nothing reads shards, and all are
//     unmapped.
//  5. HTTP ends late, so that /healthz answers until now.
//  6. The folder is unlocked. Another process may have it.
func (w *worker) stop(web *web) {
	w.jobs.reset(w.jobs.epoch())
	w.cancel()
	w.procs.begin() // for whatever the process does next
	w.jobs.background.Wait()
	for _, pool := range w.executors {
		pool.close()
	}
	close(w.jobs.computed)
	w.jobs.storing.Wait()
	w.background.Wait()
	w.jobs.results.close()
	web.close()
	w.metrics.OnScrape(nil)
	w.sessions.coordinators.close()
	w.disk.close()
	w.folder.close()
	w.log.Info("the worker has stopped", "worker", w.id)
}

// observe sets the gauges before they are read.
func (w *worker) observe() {
	holds, bytes := w.cache.holdings()
	epoch, jobs := w.jobs.counts()
	m := w.metrics
	m.Slots.Set(float64(w.cfg.Slots))
	m.Busy.Set(float64(w.jobs.busy.Load()))
	m.Jobs.Set(float64(jobs))
	m.Epoch.Set(float64(epoch))
	m.Shards.Set(float64(len(holds)))
	m.CacheBytes.Set(float64(bytes))
	m.ObserveSecurity(w.cfg.Insecure, w.cfg.TLS)
	m.Connected.Set(0)
	if s := w.link.session.Load(); s != nil && s.conn.Connected() {
		m.Connected.Set(1)
	}
}

// unready says why the worker cannot take orders now; empty: it can.
func (w *worker) unready() string {
	s := w.link.session.Load()
	switch {
	case s == nil:
		return "no coordinator has answered yet"
	case !s.conn.Connected():
		return "the worker is not connected to NATS"
	}
	return cmp.Or(w.disk.trouble(), w.leader.trouble(s.limits))
}

// longestTurn is many times what a turn of sessions takes if nobody answers.
const longestTurn = 2 * time.Minute

// check returns an error if sessions are stuck. It does not return while a lock of the jobs or of the cache is never
// given back. A worker without a coordinator passes, because it works again when a coordinator answers.
func (w *worker) check(context.Context) error {
	w.jobs.counts()
	w.cache.holdings()
	if d := time.Since(*w.sessions.coordinators.turned.Load()); d > longestTurn {
		return fmt.Errorf("the worker has not checked its session for %v", d.Round(time.Second))
	}
	return nil
}

// lead handles a message of Subjects.Lead. A leader that is new hears at once what the worker
// holds.
func (w *worker) lead(m bus.Message) {
	var l protocol.Lead
	if err := protocol.Read(&l, m.Data); err != nil {
		w.dropped("malformed")
		return
	}
	if !w.jobs.hear(l.Epoch) {
		return
	}
	if len(l.Revoked) > 0 {
		w.revoked.Store(&l.Revoked)
	}
	if w.leader.hears(&l) {
		w.heartbeat.full()
	}
}

// blob opens a blob that another process asks this worker for: a result or a shard.
func (w *worker) blob(digest string) (bus.Blob, error) {
	if b, err := w.jobs.results.open(digest); err == nil {
		return b, nil
	}
	if b, err := w.cache.folder.OpenBlob(digest); err == nil {
		return b, nil
	}
	return nil, bus.ErrNoBlob // the asking process finds it elsewhere, or has it computed again
}

// web is the worker's HTTP server.
type web struct {
	address string // by which others reach it
	port    string // the address to listen at again
	server  *http.Server
	done    chan struct{}
}

// listen starts an HTTP server at the configured address. If that is empty, it returns nil.
func listen(cfg *Config, registry *prometheus.Registry, unready func() string) (*web, error) {
	address, log := cfg.Listen, cfg.Log
	if address == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("worker: cannot listen for HTTP at --listen %s: %w", address, err)
	}
	if err := certs.Exposed(l.Addr()); err != nil && cfg.TLS == nil && !cfg.Insecure {
		l.Close()
		return nil, fmt.Errorf("%w: --listen: %w", ErrConfig, err)
	}
	at := l.Addr().(*net.TCPAddr)
	others := at.String()
	if at.IP.IsUnspecified() { // it listens on all interfaces: others reach it by the name of this machine
		host, err := os.Hostname()
		if err != nil {
			host = "localhost"
		}
		others = net.JoinHostPort(host, fmt.Sprint(at.Port))
	}
	mux := http.NewServeMux()
	route := func(pattern string, h http.HandlerFunc) { mux.HandleFunc(pattern, access.Route(pattern, h)) }
	route("GET /metrics", metrics.Handler(registry).ServeHTTP)
	route("GET /healthz", func(r http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(r, "ok")
	})
	route("GET /readyz", func(r http.ResponseWriter, _ *http.Request) {
		if reason := unready(); reason != "" {
			http.Error(r, reason, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(r, "ok")
	})
	own, _, _ := net.SplitHostPort(others)
	gate := &access.Gate{TLS: cfg.TLS, Hosts: append(slices.Clone(cfg.Hosts), own), OpenMetrics: cfg.OpenMetrics,
		MetricsToken: cfg.MetricsToken}
	x := &web{
		address: others, port: at.String(),
		server: &http.Server{Handler: gate.Identify(mux), ConnContext: certs.ConnContext,
			ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 *
				time.Minute}, done: make(chan struct{}),
	}
	go func() {
		defer close(x.done)
		secure := certs.Listen(l, cfg.TLS, certs.Terms{Port: certs.PortHTTP, Late: true,
			Within: protocol.LeastHandshake, Log: log})
		if err := x.server.Serve(secure); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the HTTP server ended", "error", err)
		}
	}()
	return x, nil
}

// close ends the server. Requests have at most a second to end.
func (x *web) close() {
	if x == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if x.server.Shutdown(ctx) != nil {
		x.server.Close()
	}
	<-x.done
}

// lentFrom is the number of bytes from which a value stays in its message, if it is aligned there.
// So the parameters of a large network are not copied.
const lentFrom = 1 << 20

// orders handles the leader's messages to this worker, one at a time. It never waits: what takes
// long is done by others.
type orders struct {
	prefetch *backlog[dataset.ShardRef]

	mu      sync.Mutex // two sessions overlap for a moment. It guards what follows, which is memory of decoding.
	stepper stepper
	run     protocol.Run
	value   protocol.Value
	chunk   protocol.Chunk
	bundle  protocol.Bundle
}

// handle handles a message of Subjects.Work.
func (o *orders) handle(m bus.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if kind, _ := protocol.KindOf(m.Data); kind != protocol.KindBundle {
		o.bundle.Messages = append(o.bundle.Messages[:0], m.Data)
	} else if err := protocol.Read(&o.bundle, m.Data); err != nil {
		o.malformed(m, err)
		return
	}
	for _, data := range o.bundle.Messages {
		m.Data = data
		kind, err := protocol.KindOf(data)
		if err == nil {
			err = o.order(kind, m)
		}
		if err != nil {
			o.malformed(m, err)
		}
	}
	clear(o.bundle.Messages)
}

func (o *orders) malformed(m bus.Message, err error) {
	o.stepper.jobs.dropped("malformed")
	o.stepper.jobs.log.Warn("a message was dropped", "subject", m.Subject, "error", err)
}

// order decodes a message that is not a bundle, and reports it to jobs.
func (o *orders) order(kind protocol.Kind, m bus.Message) error {
	j := o.stepper.jobs
	switch kind {
	case protocol.KindRun:
		if err := protocol.Read(&o.run, m.Data); err != nil {
			return err
		}
		j.metrics.Rounds.Inc()
		if m.Reply == "" {
			j.dropped("malformed")
			return nil
		}
		o.stepper.step(&batch.Run{Run: &o.run, Reply: m.Reply})
	case protocol.KindValue:
		return o.onValue(m)
	case protocol.KindChunk:
		return o.onChunk(m)
	case protocol.KindSetup:
		var s protocol.Setup
		if err := protocol.Read(&s, m.Data); err != nil {
			return err
		}
		spec, err := json.Marshal(s.Job) // it names the dataset by its digest, so it tells jobs apart
		if err != nil {
			spec = nil // it is like no other
		}
		o.stepper.step(&batch.Setup{Setup: &s, Spec: string(spec)})
	case protocol.KindForget:
		var f protocol.Forget
		if err := protocol.Read(&f, m.Data); err != nil {
			return err
		}
		o.stepper.step(&batch.Forget{Forget: &f})
	case protocol.KindHold:
		var h protocol.Hold
		if err := protocol.Read(&h, m.Data); err != nil {
			return err
		}
		if j.hear(h.Epoch) {
			o.prefetch.add(h.Shards...)
		}
	case protocol.KindProbe: // it is not answered: the leader only wants to know whether somebody receives it
		var p protocol.Probe
		if err := protocol.Read(&p, m.Data); err != nil {
			return err
		}
		j.hear(p.Epoch)
	default:
		j.dropped("malformed")
	}
	return nil
}

// onValue reports a value, and copies it if it is kept and not lent. The copy needs no lock,
// because nothing reads the value before the next message.
func (o *orders) onValue(m bus.Message) error {
	v := &o.value
	defer func() { v.Data = nil }()
	if err := protocol.Read(v, m.Data); err != nil {
		return err
	}
	e := &batch.Value{Epoch: v.Epoch, Job: v.Job, Ref: v.Ref, Bytes: len(v.Data)}
	if len(v.Data) >= lentFrom && num.Aligned(v.Data) {
		e.Local = &value{data: v.Data, message: m.Data}
	}
	a := o.stepper.step(e)
	if k, ok := a.(batch.Keep); ok && e.Local == nil {
		copy(k.Version.Local.(*value).data, v.Data)
	}
	return refusal(a)
}

// onChunk reports a chunk of a value. Its bytes are not copied, because the message belongs to the
// worker. A chunk without bytes may be a result of this worker.
func (o *orders) onChunk(m bus.Message) error {
	p := &o.chunk
	defer func() { p.Data = nil }()
	if err := protocol.Read(p, m.Data); err != nil {
		return err
	}
	if p.Here && blobs.Sum(p.Data) != p.Digest {
		return fmt.Errorf("%w: chunk %d of a value does not match its digest", protocol.ErrMessage, p.Index)
	}
	j := o.stepper.jobs
	c := &chunk{digest: p.Digest, data: p.Data, report: j.step}
	if !p.Here && j.results.retain(p.Digest) {
		c.own = j.results
	}
	a := o.stepper.step(&batch.Chunk{
		Epoch: p.Epoch, Job: p.Job, Ref: p.Ref, Index: int(p.Index), Of: int(p.Of),
		Bytes: len(p.Data), Sent: p.Here, Found: c.own != nil, Local: c,
	})
	if _, kept := a.(batch.KeepChunk); !kept {
		c.release()
	}
	return refusal(a)
}

// refusal returns why a message is refused, if that is what a step has left to do.
func refusal(a batch.Action) error {
	if r, ok := a.(batch.RefuseMessage); ok {
		return r.Err
	}
	return nil
}
