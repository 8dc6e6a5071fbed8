package worker

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/harness/testkit/natstest"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
	"github.com/coppice-ldl/coppice/worker/batch"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	interval = 25 * time.Millisecond
	timeout  = time.Minute      // of any wait
	ping     = 10 * time.Second // a busy machine is no broken connection here
)

var serverOptions = bus.ServerOptions{Ping: ping}

// data is an imported dataset.
type data struct {
	dir      string // shard files by digest
	manifest *dataset.Manifest
	local    *local.Data
}

var (
	dense  = sync.OnceValue(func() dataset.Source { return generate.Artificial(600, 3) })
	sparse = sync.OnceValue(func() dataset.Source {
		s, err := generate.New(generate.Options{Rows: 400, Features: 90, Labels: 4, Density: 0.05, Seed: 5})
		if err != nil {
			panic(err)
		}
		return s
	})
)

func importData(t testing.TB, src dataset.Source) *data {
	t.Helper()
	d := &data{dir: t.TempDir()}
	var err error
	if d.manifest, err = importer.Import(src, d.dir, importer.Options{}); err != nil {
		t.Fatal(err)
	}
	_, shards := datatest.Build(t, src)
	d.local = &local.Data{Manifest: d.manifest, Shards: shards}
	return d
}

// newTestJob resolves a small job.
func newTestJob(t testing.TB, d *data, seed uint64, given param.Values) *round.Job {
	t.Helper()
	a, err := registry.Find("ldlf")
	if err != nil {
		t.Fatal(err)
	}
	values := param.Values{
		"trees": int64(2), "depth": int64(4), "steps": int64(30), "leaf_batches": int64(10),
		"leaf_iterations": int64(3), "batch_size": int64(128),
	}
	for k, v := range given {
		values[k] = v
	}
	r, err := a.Resolve(values, d.manifest)
	if err != nil {
		t.Fatal(err)
	}
	return &round.Job{
		Algorithm: "ldlf", Numerics: round.Numerics, Seed: seed, Dataset: d.manifest.Digest(), Params: r.Params,
		Split: dataset.Split{
			Seed: seed, TestFraction: 0.1,
			ValidationFraction: r.ValidationFraction, ValidationMin: r.ValidationMin,
		},
	}
}

// cluster is what a worker needs around it: NATS, a coordinator's HTTP address,
// and blobs.
type cluster struct {
	t        testing.TB
	server   *bus.Server
	conn     *bus.Conn
	subjects protocol.Subjects
	http     *httptest.Server

	mu    sync.Mutex
	info  protocol.Cluster
	blobs map[string]string // path by digest
	gate  chan struct{}     // where set, blobs are served once it is closed
	asked map[string]int    // requests by digest
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	return newClusterOf(t, serverOptions)
}

func newClusterOf(t testing.TB, options bus.ServerOptions) *cluster {
	t.Helper()
	c := &cluster{t: t, blobs: make(map[string]string), asked: make(map[string]int)}
	c.server = natstest.Server(t, options)
	c.conn = c.dial()
	c.info = protocol.Cluster{
		ID: "test", Version: "t", Protocol: protocol.Version, Numerics: round.Numerics,
		NATS: []string{c.server.ClientURL()}, Heartbeat: int(interval / time.Millisecond),
	}
	c.subjects = protocol.Subjects{Cluster: c.info.ID}
	c.http = httptest.NewServer(http.HandlerFunc(c.serveHTTP))
	t.Cleanup(c.http.Close)
	if _, err := bus.ServeBlobs(c.conn, c.subjects.Fetch("*"), "coordinators", c.open); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) dial() *bus.Conn {
	c.t.Helper()
	conn, err := bus.Connect(c.t.Context(), bus.Options{URLs: []string{c.server.ClientURL()}, Name: "leader", Ping: ping})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(conn.Close)
	return conn
}

func (c *cluster) serveHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.URL.Path != "/v1/cluster" {
		http.NotFound(w, r)
		return
	}
	json.NewEncoder(w).Encode(c.info)
}

// set changes what the coordinator says of the cluster.
func (c *cluster) set(f func(*protocol.Cluster)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.info)
}

func (c *cluster) open(digest string) (bus.Blob, error) {
	c.mu.Lock()
	path, ok := c.blobs[digest]
	c.asked[digest]++
	gate := c.gate
	c.mu.Unlock()
	if gate != nil {
		<-gate
	}
	if !ok {
		return nil, bus.ErrNoBlob
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, bus.ErrNoBlob
	}
	info, err := f.Stat()
	if err != nil {
		return nil, bus.ErrNoBlob
	}
	return file{f, info.Size()}, nil
}

type file struct {
	*os.File
	size int64
}

func (f file) Size() int64 { return f.size }

// close shuts the gate before blobs; the function that it returns opens it.
func (c *cluster) close() (open func()) {
	gate := make(chan struct{})
	c.mu.Lock()
	c.gate = gate
	c.mu.Unlock()
	open = sync.OnceFunc(func() {
		c.mu.Lock()
		c.gate = nil
		c.mu.Unlock()
		close(gate)
	})
	c.t.Cleanup(open)
	return open
}

func (c *cluster) requests(digest string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[digest]
}

// add puts a dataset's shards into the coordinators' blobs.
func (c *cluster) add(d *data) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range d.manifest.Shards {
		c.blobs[s.Digest] = filepath.Join(d.dir, s.Digest)
	}
}

func (c *cluster) remove(digest string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.blobs, digest)
}

// put adds one blob.
func (c *cluster) put(b []byte) (digest string) {
	digest = blobs.Sum(b)
	path := filepath.Join(c.t.TempDir(), digest)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blobs[digest] = path
	return digest
}

// running is a worker under test.
type running struct {
	*worker
	t    testing.TB
	stop func() // and wait for its end
}

// job returns a job, or nil.
func (r *running) job(id uint64) *batch.Job {
	r.jobs.mu.Lock()
	defer r.jobs.mu.Unlock()
	return r.jobs.machine.Jobs()[id]
}

// quiet reports whether f reports true for every job.
func (r *running) quiet(f func(*batch.Job) bool) bool {
	r.jobs.mu.Lock()
	defer r.jobs.mu.Unlock()
	for _, j := range r.jobs.machine.Jobs() {
		if !f(j) {
			return false
		}
	}
	return true
}

// start runs a worker until the test ends or stop is called.
func (c *cluster) start(cfg Config) *running {
	c.t.Helper()
	cfg.Join = []string{c.http.Listener.Addr().String()}
	if cfg.Dir == "" {
		cfg.Dir = c.t.TempDir()
	}
	if cfg.Slots == 0 {
		cfg.Slots = 2
	}
	cfg.Log = testLog(c.t)
	ready := make(chan Info, 1)
	cfg.Ready = func(i Info) { ready <- i }
	return runWorker(c.t, cfg, ready)
}

func runWorker(t testing.TB, cfg Config, ready chan Info) *running {
	t.Helper()
	cfg, err := cfg.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	w, err := openWorker(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.sessions.ping = ping
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.run(ctx) }()
	r := &running{worker: w, t: t}
	r.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the worker ended with: %v", err)
			}
		case <-time.After(timeout):
			t.Error("the worker does not stop")
		}
	})
	t.Cleanup(r.stop)
	select {
	case <-ready:
	case <-time.After(timeout):
		t.Fatal("the worker is not ready")
	}
	return r
}

// testLog logs to t while the test runs.
func testLog(t testing.TB) *slog.Logger {
	x := &testWriter{t: t}
	t.Cleanup(x.close)
	return slog.New(slog.NewTextHandler(x, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

type testWriter struct {
	mu sync.Mutex
	t  testing.TB
}

func (x *testWriter) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.t != nil {
		x.t.Logf("%s", b[:len(b)-1])
	}
	return len(b), nil
}

func (x *testWriter) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.t = nil
}

// eventually waits until f reports true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	testkit.Until(t, what, f)
}

func receive[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	return testkit.Receive(t, what, ch)
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// counter returns a counter's value.
func counter(c prometheus.Counter) float64 {
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		panic(err)
	}
	return m.GetCounter().GetValue()
}

// lineLog hands each line of the log to ch.
func lineLog(ch chan string) *slog.Logger { return slog.New(slog.NewTextHandler(lines(ch), nil)) }

type lines chan string

func (l lines) Write(b []byte) (int, error) {
	select {
	case l <- string(b):
	default:
	}
	return len(b), nil
}
