package coordinator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/freeport"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/harness/testkit/natstest"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
	"github.com/coppice-ldl/coppice/worker"
)

// A cluster waits for most of its time: for elections, heartbeats and timeouts.
func TestMain(m *testing.M) {
	if testkit.Race {
		testkit.AtOnce(2)
	} else {
		testkit.AtOnce(4)
	}
	os.Exit(m.Run())
}

// cluster is coordinators and workers in this process, on loopback, with real
// NATS, Raft and disks.
type cluster struct {
	t      *testing.T
	dir    string
	peers  []coordinator.Peer
	client *client.Client
	log    *slog.Logger
	tune   func(*coordinator.Config) // if set, changes the configuration of each coordinator
	equip  func(*worker.Config)      // if set, changes the configuration of each worker
	natsOf []string                  // NATS servers for workers; if empty, as the coordinators say
	// checkpoints is the least time between two checkpoints of a fold; 0 means the
	// workers' default.
	checkpoints time.Duration
	// pause is how long workers wait after each task, in nanoseconds. With it, a job lasts without computing.
	pause atomic.Int64

	// elections counts elections after missed heartbeats, which a busy machine causes. A transfer of the leadership
	// is none.
	elections atomic.Int64

	mu    sync.Mutex
	stops map[string]func() // by id of coordinator or worker; each waits
}

// freeBlock returns the first of four ports in a row that are free.
func freeBlock(t *testing.T) int {
	t.Helper()
	port, err := freeport.Block()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func start(t *testing.T, coordinators, workers int) *cluster {
	t.Helper()
	c := prepare(t, coordinators)
	c.startAll(workers)
	return c
}

// prepare finds ports for coordinators; none runs yet.
func prepare(t *testing.T, coordinators int) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir(), stops: make(map[string]func())}
	c.log = slog.New(slog.NewTextHandler(testWriter{t, &c.elections}, &slog.HandlerOptions{Level: slog.LevelInfo}))
	var servers []string
	for i := range coordinators {
		p := coordinator.Peer{ID: string(rune('a' + i)), Host: "127.0.0.1", Port: freeBlock(t)}
		c.peers = append(c.peers, p)
		servers = append(servers, fmt.Sprintf("127.0.0.1:%d", p.Port))
	}
	t.Cleanup(c.stopAll)
	var err error
	if c.client, err = client.New(strings.Join(servers, ",")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.client.Close)
	c.client.Patience = patience
	return c
}

// patience is how long clients of tests try. On a busy machine, elections follow each other.
const patience = 2 * time.Minute

func (c *cluster) startAll(workers int) {
	for _, p := range c.peers {
		c.startCoordinator(p.ID)
	}
	for i := range workers {
		c.startWorker(fmt.Sprintf("w%d", i))
	}
}

// testWriter writes to the log of a test, and counts the elections after missed heartbeats.
type testWriter struct {
	t         *testing.T
	elections *atomic.Int64
}

func (w testWriter) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("heartbeat timeout reached")) {
		w.elections.Add(1)
	}
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

func (c *cluster) run(id string, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, coordinator.ErrRemoved) {
			c.t.Errorf("%s: %v", id, err)
		}
	}()
	c.mu.Lock()
	c.stops[id] = func() { cancel(); <-done }
	c.mu.Unlock()
}

func (c *cluster) startCoordinator(id string) {
	cfg := coordinator.Config{
		ID: id, Dir: filepath.Join(c.dir, id), Peers: c.peers, Heartbeat: 200 * time.Millisecond,
		Log: c.log.With("node", id),
	}
	if c.tune != nil {
		c.tune(&cfg)
	}
	c.run(id, func(ctx context.Context) error { return coordinator.Run(ctx, cfg) })
}

func (c *cluster) startWorker(id string) {
	var join []string
	for _, p := range c.peers {
		join = append(join, fmt.Sprintf("127.0.0.1:%d", p.Port))
	}
	cfg := worker.Config{Join: join, ID: id, Dir: filepath.Join(c.dir, id), Slots: 1, NATS: c.natsOf,
		CheckpointEvery: c.checkpoints, Log: c.log.With("node", id), Spoil: c.wait}
	if c.equip != nil {
		c.equip(&cfg)
	}
	c.run(id, func(ctx context.Context) error { return worker.Run(ctx, cfg) })
}

// wait is called after each task. It makes a job last without computing, so that a test can act while the job runs. No
// test depends on how long it waits.
func (c *cluster) wait(uint32, *round.Partial, []byte) {
	time.Sleep(time.Duration(c.pause.Load()))
}

func (c *cluster) stop(id string) {
	c.mu.Lock()
	stop := c.stops[id]
	delete(c.stops, id)
	c.mu.Unlock()
	if stop != nil { // else the test is over
		stop()
	}
}

func (c *cluster) stopAll() {
	c.mu.Lock()
	var wait sync.WaitGroup
	for _, stop := range c.stops {
		wait.Go(stop)
	}
	clear(c.stops)
	c.mu.Unlock()
	wait.Wait()
}

// leader waits until there is one.
func (c *cluster) leader(ctx context.Context) string {
	for {
		info, err := c.client.Cluster(ctx)
		if err != nil {
			c.t.Fatal(err)
		}
		if info.Leader != "" {
			return info.Leader
		}
		select {
		case <-ctx.Done():
			c.t.Fatal("no leader")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func testSpec(set map[string]string) protocol.Spec {
	return protocol.Spec{Algorithm: "ldlf", Dataset: "art", TestFraction: 0.1, Set: set}
}

// eventful is a job that lasts while something happens to the cluster, because workers pause meanwhile.
func eventful() protocol.Spec {
	return testSpec(map[string]string{"steps": "150", "patience": "1000", "trees": "2", "depth": "5"})
}

// lasting is how many steps or trees a job has in place of n, so that it takes about as long
// with the race detector as without.
func lasting(n int) string { return strconv.Itoa(n / testkit.Slowdown) }

// localDigests has a function by spec that returns the digest of --local: several tests have the same spec.
var localDigests sync.Map

func localDigest(t *testing.T, s protocol.Spec) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	digest, _ := localDigests.LoadOrStore(string(b), sync.OnceValue(func() string { return trainedHere(t, s) }))
	return digest.(func() string)()
}

// trainedHere returns the digest of a spec's model, or of its first fold's, trained in this
// process.
func trainedHere(t *testing.T, s protocol.Spec) string {
	t.Helper()
	m, shards := datatest.Artificial(t, 600)
	j, err := spec.Resolve(s, m)
	if err != nil {
		t.Fatal(err)
	}
	o, err := local.Run(t.Context(), j, &local.Data{Manifest: m, Shards: shards}, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return o.ModelDigest
}

// train submits a job, calls meanwhile at its first progress and returns the
// job's end. Until meanwhile returns, workers pause after each task.
func (c *cluster) train(ctx context.Context, s protocol.Spec, meanwhile func()) *protocol.JobInfo {
	c.t.Helper()
	lasts := meanwhile != nil && c.pause.CompareAndSwap(0, int64(10*time.Millisecond))
	job, err := c.client.Jobs().Submit(ctx, s)
	if err != nil {
		c.t.Fatal(err)
	}
	var once sync.Once
	end, err := c.client.Jobs().Watch(ctx, job.Name, func(j *protocol.JobInfo) {
		if j.Progress != nil && j.Progress.Step > 0 && meanwhile != nil {
			once.Do(func() {
				if meanwhile(); lasts {
					c.pause.Store(0)
				}
			})
		}
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if end.State != protocol.Done {
		c.t.Fatalf("job %s: %s: %s", end.Name, end.State, end.Error)
	}
	return end
}

// deadline returns a context that ends what hangs. It is long enough for a busy machine with the race detector on.
func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestClusterGivesTheDigestOfLocalTraining(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	s := testSpec(map[string]string{"steps": lasting(600), "patience": "100", "trees": "2"})
	want := localDigest(t, s)
	for _, size := range []struct{ coordinators, workers int }{{1, 1}, {3, 2}} {
		t.Run(fmt.Sprintf("%d coordinators, %d workers", size.coordinators, size.workers), func(t *testing.T) {
			c := start(t, size.coordinators, size.workers)
			if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
				importer.Options{}); err != nil {
				t.Fatal(err)
			}
			if got := c.train(ctx, s, nil).Models[0].Digest; got != want {
				t.Errorf("digest %s, --local has %s", got, want)
			}
		})
	}
}

func TestAJobSurvivesItsLeaderAndAWorker(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	s := eventful()
	want := localDigest(t, s)
	c := start(t, 3, 2)
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	end := c.train(ctx, s, func() {
		c.stop(c.leader(ctx))
		c.stop("w0")
		c.startWorker("w2")
	})
	if got := end.Models[0].Digest; got != want {
		t.Errorf("digest %s, --local has %s", got, want)
	}
}

func TestFoldsRunAsOneJob(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	s := testSpec(map[string]string{"steps": lasting(200), "trees": "2", "depth": "5"})
	s.TestFraction, s.Folds = 0, 3
	want := localDigest(t, s)
	c := start(t, 1, 2)
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	end := c.train(ctx, s, nil)
	if !strings.Contains(string(end.Outcome), want) {
		t.Errorf("the outcome %.300s lacks the digest %s of --local", end.Outcome, want)
	}
	if len(end.Models) != 3 {
		t.Errorf("%d models for three folds", len(end.Models))
	}
}

// TestASubJobGoesOnElsewhere takes a worker away that runs a fold, after it has
// handed a checkpoint back: another worker goes on from there.
func TestASubJobGoesOnElsewhere(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	s := longFolds()
	s.Set["patience"] = s.Set["steps"]
	c := prepare(t, 1)
	// not two seconds: the other worker is to tell of what is left
	c.checkpoints = 20 * time.Millisecond
	// a coordinator's lets nobody hear what workers send
	nats := natstest.Server(t, bus.ServerOptions{Ping: bus.DefaultPing})
	t.Cleanup(c.stopAll)
	c.tune = func(cfg *coordinator.Config) { cfg.NATS = nats.ClientURL() }
	c.startAll(2)
	c.put(ctx, "art")
	want := localDigest(t, s)
	f := &foldWatch{handed: make(chan string, 1)}
	stop := f.listen(ctx, c)
	ended := make(chan struct{})
	var stopping sync.WaitGroup
	stopping.Go(func() {
		select {
		case id := <-f.handed:
			c.stop(id)
		case <-ended:
		}
	})
	end := c.train(ctx, s, nil)
	close(ended)
	stopping.Wait()
	stop()
	if !strings.Contains(string(end.Outcome), want) {
		t.Errorf("the outcome %.300s lacks the digest %s of --local", end.Outcome, want)
	}
	if f.heard == 0 {
		t.Fatal("nothing was heard of what workers send")
	}
	if f.first.Rounds == 0 {
		t.Skip("the folds ended before a checkpoint was due: this machine is too fast")
	}
	if f.from < f.first.Rounds {
		t.Errorf("a fold of which round %d was handed back went on at round %d", f.first.Rounds, f.from)
	}
}

// foldWatch listens to what workers tell the leader of folds.
type foldWatch struct {
	handed chan string         // the worker of the first checkpoint
	first  protocol.Checkpoint // without its state
	heard  int                 // messages
	from   uint64              // the first round that another worker tells of the same fold
}

func (f *foldWatch) listen(ctx context.Context, c *cluster) (stop func()) {
	c.t.Helper()
	info, err := c.client.Cluster(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	conn, err := bus.Connect(ctx, bus.Options{URLs: info.NATS})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(conn.Close)
	results := protocol.Subjects{Cluster: info.ID}.Results(info.Leader, info.Epoch)
	sub, err := conn.Subscribe(protocol.ResultsOf(results, "*"), f.hear)
	if err != nil {
		c.t.Fatal(err)
	}
	return sub.Close
}

func (f *foldWatch) hear(m bus.Message) {
	f.heard++
	var at protocol.Checkpoint
	var p protocol.Progress
	switch {
	case f.first.Worker == "" && at.Decode(m.Data) == nil:
		f.first = protocol.Checkpoint{Worker: at.Worker, Task: at.Task, Resume: protocol.Resume{Rounds: at.Rounds}}
		f.handed <- at.Worker
	case f.from == 0 && p.Decode(m.Data) == nil && f.first.Worker != "" && p.Worker != f.first.Worker &&
		p.Task == f.first.Task:
		f.from = p.Done.Rounds
	}
}
