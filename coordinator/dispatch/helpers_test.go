package dispatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/natstest"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	// never is a heartbeat that is longer than any test: nothing is overdue.
	never = time.Hour
	// quick is a heartbeat that passes many times in a test.
	quick = 5 * time.Millisecond

	epoch = 7
	jobID = 40
)

// lab is a Dispatcher on a real NATS server, without workers.
type lab struct {
	t       *testing.T
	server  *bus.Server
	conn    *bus.Conn // the leader's
	d       *Dispatcher
	results *fakeResults
	options ExecutorOptions // of executors

	registry *prometheus.Registry
	metrics  *metrics.Coordinator
}

func newLab(t *testing.T, heartbeat time.Duration) *lab {
	t.Helper()
	return newLabWith(t, heartbeat, func(*Config) {})
}

// newLabWith is newLab with changes to the configuration and to the limits. No worker dies of silence, unless a change
// says so.
func newLabWith(t *testing.T, heartbeat time.Duration, change func(*Config), changes ...func(*schedule.Limits)) *lab {
	t.Helper()
	s := natstest.Server(t, bus.ServerOptions{RoutePort: -1, Cluster: "lab"})
	l := &lab{t: t, server: s, results: newFakeResults(), registry: prometheus.NewRegistry()}
	l.metrics = metrics.NewCoordinator(l.registry)
	l.conn = l.connect()
	cfg := Config{
		ID: "a", Epoch: epoch, Heartbeat: heartbeat, Conn: l.conn, Subjects: subjects,
		Results: l.results, Metrics: l.metrics, Log: slog.New(slog.DiscardHandler),
	}
	change(&cfg)
	l.d = New(cfg)
	limits := limits(heartbeat)
	limits.Dead = never
	for _, change := range changes {
		change(&limits)
	}
	l.d.workers = schedule.NewWorkers(limits, cfg.Quarantined)
	leads := make(chan struct{}, 1)
	sub, err := l.conn.Subscribe(subjects.Lead(), func(bus.Message) {
		select {
		case leads <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() {
		if err := l.d.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("the dispatcher ended with %v", err)
		}
	})
	t.Cleanup(func() { cancel(); run.Wait() })
	testkit.Receive(t, "the dispatcher's beginning", leads) // it listens by now
	return l
}

var subjects = protocol.Subjects{Cluster: "lab"}

func (l *lab) connect() *bus.Conn {
	l.t.Helper()
	return natstest.Connect(l.t, l.server)
}

func (l *lab) ctx() context.Context {
	return testkit.Context(l.t)
}

// until waits for a condition that nothing notifies of.
func (l *lab) until(what string, done func() bool) {
	l.t.Helper()
	testkit.Until(l.t, what, done)
}

// silent declares that a worker has not been heard of for too long.
func (l *lab) silent(name string) {
	l.d.mu.Lock()
	l.d.workers.Heard(name, time.Now().Add(-2*never))
	l.d.mu.Unlock()
	l.d.expire(time.Now())
}

// view describes a worker; false: the leader does not know it.
func (l *lab) view(name string) (schedule.WorkerView, bool) {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	list := l.d.workers.View(time.Now())
	at := slices.IndexFunc(list, func(w schedule.WorkerView) bool { return w.Name == name })
	if at < 0 {
		return schedule.WorkerView{}, false
	}
	return list[at], true
}

// metric reads an instrument by its name and the value of its label, if it has one. Of a histogram it returns the
// number of observations.
func (l *lab) metric(name, label string) float64 {
	l.t.Helper()
	families, err := l.registry.Gather()
	if err != nil {
		l.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() != "coppice_"+name || len(m.Label) > 0 && m.Label[0].GetValue() != label {
				continue
			}
			switch {
			case m.Counter != nil:
				return m.Counter.GetValue()
			case m.Gauge != nil:
				return m.Gauge.GetValue()
			}
			return float64(m.Histogram.GetSampleCount())
		}
	}
	l.t.Fatalf("no metric %s of %q", name, label)
	return 0
}

// dropped waits until so many messages were dropped for a reason.
func (l *lab) dropped(reason string, n float64) {
	l.t.Helper()
	l.until(fmt.Sprintf("%v %s messages", n, reason), func() bool {
		return l.metric("results_dropped_total", reason) >= n
	})
	l.counted("results_dropped_total", reason, n)
}

func (l *lab) counted(name, label string, want float64) {
	l.t.Helper()
	if got := l.metric(name, label); got != want {
		l.t.Errorf("%s %s is %v, want %v", name, label, got, want)
	}
}

const labShards = 8

// manifest describes a dataset of eight shards.
func manifest() *dataset.Manifest {
	m := &dataset.Manifest{Format: dataset.ManifestFormat, Rows: 80, Features: 1, Labels: 1, NonZeros: 80}
	for s := range labShards {
		m.Shards = append(m.Shards, dataset.ShardRef{Digest: fmt.Sprintf("%064d", s), Rows: 10, Bytes: 100})
	}
	return m
}

// executor makes the executor of a job.
func (l *lab) executor(id uint64) *Executor {
	l.t.Helper()
	return l.d.Executor(id, &round.Job{Algorithm: "canary", Seed: id}, manifest(), l.options)
}

// doing is a round under way.
type doing struct {
	l      *lab
	r      *round.Round
	n      uint64
	res    round.Result
	done   chan error
	cancel context.CancelFunc
}

func (l *lab) do(x *Executor, n uint64, r *round.Round) *doing {
	ctx, cancel := context.WithCancel(l.ctx())
	d := &doing{l: l, r: r, n: n, done: make(chan error, 1), cancel: cancel}
	go func() { d.done <- x.Do(ctx, n, r, &d.res) }()
	return d
}

func (d *doing) wait() error {
	d.l.t.Helper()
	return testkit.Receive(d.l.t, "the end of the round", d.done)
}

// sums waits for the end of a reduce round and checks its sum.
func (d *doing) sums() {
	d.l.t.Helper()
	if err := d.wait(); err != nil {
		d.l.t.Fatal(err)
	}
	if diff := cmp.Diff(sumOf(d.r, d.n), d.res.Sum); diff != "" {
		d.l.t.Errorf("sum of round %d (-want +got):\n%s", d.n, diff)
	}
}

// pending fails the test if the round has ended.
func (d *doing) pending() {
	d.l.t.Helper()
	select {
	case err := <-d.done:
		d.l.t.Fatalf("the round ended too early, error %v", err)
	default:
	}
}

var labShape = round.Shape{F64: 2, F32: 3, Rows: 4, Width: 2}

// reduceRound returns a reduce round of so many tasks.
func reduceRound(units int, vars ...round.Var) *round.Round {
	return &round.Round{Op: 3, Tasks: units, How: &round.Reduce{Shape: labShape, Steps: [2]uint64{5, 6}},
		Roles: dataset.Train, Vars: vars}
}

func variable(id uint16, version uint64) round.Var {
	return round.Var{ID: id, Version: version, Data: fmt.Appendf(nil, "value %d of %d", version, id)}
}

// fill computes a task of a round. Its numbers have magnitudes far apart, so that another order of the sum, or a task
// counted twice, shows.
func fill(p *round.Partial, round uint64, task int) {
	rng := rand.New(rand.NewPCG(round, uint64(task)))
	value := func() float64 { return math.Ldexp(rng.Float64()-0.5, rng.IntN(60)-30) }
	for i := range p.F64 {
		p.F64[i] = value()
	}
	for i := range p.F32 {
		p.F32[i] = float32(value())
	}
	for row := range uint32(labShape.Rows) {
		if rng.IntN(2) == 0 {
			p.Index = append(p.Index, row)
			p.Values = append(p.Values, float32(value()), float32(value()))
		}
	}
}

// sumOf returns the sum of a round.
func sumOf(r *round.Round, n uint64) *round.Partial {
	var tree engine.Tree
	tree.Reset(r.Tasks, r.Reduce().Shape)
	for task := range r.Tasks {
		p := tree.Partial()
		fill(p, n, task)
		tree.Put(0, task, p)
	}
	return tree.Root()
}

// fakeResults is a Results in memory.
type fakeResults struct {
	mu       sync.Mutex
	known    map[uint32]string
	recorded []uint32
	failed   []uint32 // of recorded
	of       int
	fetch    func(*protocol.Result) error // may block; nil: at once
	record   func(*protocol.Result) error // the same
	withheld map[uint32]time.Duration
	bytes    map[string][]byte
}

func newFakeResults() *fakeResults {
	return &fakeResults{known: make(map[uint32]string), bytes: make(map[string][]byte),
		withheld: make(map[uint32]time.Duration)}
}

func (p *fakeResults) Known(job, round uint64) (known []schedule.Known) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for task, text := range p.known {
		digest, _ := digests.Parse(text)
		known = append(known, schedule.Known{Task: task, Digest: digest})
	}
	return known
}

func (p *fakeResults) Fetch(ctx context.Context, c *protocol.Result) ([]byte, error) {
	if p.fetch != nil {
		if err := p.fetch(c); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return p.Load(ctx, c.Digest)
}

func (p *fakeResults) Keep(result []byte) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	digest := blobs.Sum(result)
	p.bytes[digest] = result
	return digest, nil
}

func (p *fakeResults) Record(ctx context.Context, c *protocol.Result, of int, failed bool) error {
	if p.record != nil {
		if err := p.record(c); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recorded = append(p.recorded, c.Task)
	if failed {
		p.failed = append(p.failed, c.Task)
	}
	p.of = of
	return ctx.Err()
}

func (p *fakeResults) Withhold(ctx context.Context, _, _ uint64, tasks []uint32, took time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, task := range tasks {
		p.withheld[task] = took
	}
	return ctx.Err()
}

func (p *fakeResults) Load(_ context.Context, digest string) ([]byte, error) {
	if digest == digestOf(77) {
		return nil, errors.New("the result is lost: " + digest)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if result := p.bytes[digest]; result != nil {
		return result, nil
	}
	return []byte("result " + digest), nil
}

// tasks lists the tasks whose results are recorded, ascending.
func (p *fakeResults) tasks() []uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(slices.Values(p.recorded))
}

// digestOf returns the digest of a task's result.
func digestOf(task uint32) string { return fmt.Sprintf("%064x", task+1) }

// resultOf returns the bytes of a task's result, as Load does.
func resultOf(task uint32) []byte { return []byte("result " + digestOf(task)) }

// cloned returns a copy of bytes that nobody else writes to.
func cloned(b [][]byte) [][]byte {
	for i := range b {
		b[i] = bytes.Clone(b[i])
	}
	return b
}
