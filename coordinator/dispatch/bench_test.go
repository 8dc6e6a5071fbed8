package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
	"github.com/coppice-ldl/coppice/worker"
	"github.com/prometheus/client_golang/prometheus"
)

// bench is a dispatcher and a real worker, joined by a real NATS server.
type bench struct {
	conn   *bus.Conn
	d      *dispatch.Dispatcher
	job    *round.Job
	data   *dataset.Manifest
	shards []*dataset.Rows
}

type noResults struct{}

func (noResults) Known(uint64, uint64) []schedule.Known                     { return nil }
func (noResults) Fetch(context.Context, *protocol.Result) ([]byte, error)   { return nil, nil }
func (noResults) Keep([]byte) (string, error)                               { return "", nil }
func (noResults) Record(context.Context, *protocol.Result, int, bool) error { return nil }
func (noResults) Withhold(context.Context, uint64, uint64, []uint32, time.Duration) error {
	return nil
}
func (noResults) Load(ctx context.Context, digest string) ([]byte, error) { return nil, nil }

func newBench(b *testing.B, workers int) *bench {
	b.Helper()
	s, err := bus.StartServer(bus.ServerOptions{Name: "bench", Host: "127.0.0.1"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	x := &bench{}
	if x.conn, err = bus.Connect(b.Context(), bus.Options{Server: s, Name: "leader"}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(x.conn.Close)
	x.prepareJob(b)
	subjects := protocol.Subjects{Cluster: "bench"}
	x.serveShards(b, subjects)
	x.d = dispatch.New(dispatch.Config{
		ID: "a", Epoch: 1, Heartbeat: 50 * time.Millisecond, Conn: x.conn, Subjects: subjects,
		Results: noResults{}, Metrics: metrics.NewCoordinator(prometheus.NewRegistry()), Log: slog.New(slog.DiscardHandler),
	})
	x.run(b, func(ctx context.Context) { x.d.Run(ctx) })
	for i := range workers {
		x.startWorker(b, s, fmt.Sprintf("w%d", i))
	}
	testkit.Until(b, "all workers to be there", func() bool { return len(x.d.Workers()) == workers })
	return x
}

func (x *bench) prepareJob(b *testing.B) {
	var err error
	if x.data, x.shards, err = importer.Build(generate.Artificial(2500, 1), importer.Options{}); err != nil {
		b.Fatal(err)
	}
	if x.job, err = spec.Resolve(protocol.Spec{Algorithm: "ldlf"}, x.data); err != nil {
		b.Fatal(err)
	}
}

// serveShards answers the worker's requests for shards.
func (x *bench) serveShards(b *testing.B, subjects protocol.Subjects) {
	blobs := make(map[string][]byte)
	for i, shard := range x.shards {
		blobs[x.data.Shards[i].Digest] = dataset.EncodeShard(shard, nil)
	}
	served, err := bus.ServeBlobs(x.conn, subjects.Fetch("*"), "", func(digest string) (bus.Blob, error) {
		data, ok := blobs[digest]
		if !ok {
			return nil, bus.ErrNoBlob
		}
		return memory{Reader: strings.NewReader(string(data))}, nil
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(served.Close)
}

type memory struct{ *strings.Reader }

func (memory) Close() error { return nil }

func (x *bench) run(b *testing.B, f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { f(ctx) })
	b.Cleanup(func() { cancel(); wait.Wait() })
}

func (x *bench) startWorker(b *testing.B, s *bus.Server, id string) {
	info := protocol.Cluster{ID: "bench", Protocol: protocol.Version, Numerics: round.Numerics,
		NATS: []string{s.ClientURL()}, Heartbeat: 50}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(info)
	}))
	b.Cleanup(web.Close)
	cfg := worker.Config{Join: []string{strings.TrimPrefix(web.URL, "http://")}, ID: id, Dir: b.TempDir(), Slots: 1}
	x.run(b, func(ctx context.Context) { worker.Run(ctx, cfg) })
}

// BenchmarkEmptyRound is a round of one task that sees no sample. It takes the time of the engine, the protocol and
// NATS alone, over loopback TCP to the worker.
func BenchmarkEmptyRound(b *testing.B) {
	x := newBench(b, 1)
	exec := x.d.Executor(1, x.job, x.data, dispatch.ExecutorOptions{})
	defer exec.Close()
	const opMean = 250 // pipeline's sums of label degrees
	r := &round.Round{Op: opMean, Tasks: 1, Scope: round.Sharded, How: round.Sums(3 + x.data.Labels)}
	var res round.Result
	if err := exec.Do(b.Context(), 0, r, &res); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	n := uint64(1)
	for b.Loop() {
		if err := exec.Do(b.Context(), n, r, &res); err != nil {
			b.Fatal(err)
		}
		n++
	}
}

// BenchmarkValueRound is a round that sends each worker a new version of a value, and has as many bytes back: as many
// as Θ and a gradient of LDLF on Yeast_alpha have. The tasks see hardly any sample.
func BenchmarkValueRound(b *testing.B) {
	const (
		opMean = 250
		bytes  = 6400
	)
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			x := newBench(b, workers)
			exec := x.d.Executor(1, x.job, x.data, dispatch.ExecutorOptions{})
			defer exec.Close()
			r := &round.Round{Op: opMean, Tasks: workers, Scope: round.Sharded, How: round.Sums(bytes / 8)}
			r.Vars = []round.Var{{ID: 1, Data: make([]byte, bytes)}}
			var res round.Result
			n := uint64(0)
			do := func() {
				r.Vars[0].Version = n + 1
				if err := exec.Do(b.Context(), n, r, &res); err != nil {
					b.Fatal(err)
				}
				n++
			}
			do()
			b.ReportAllocs()
			for b.Loop() {
				do()
			}
		})
	}
}
