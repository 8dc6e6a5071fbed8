package coordinator_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sync/errgroup"
)

// figures are what a process holds.
type figures struct {
	Goroutines    int
	Files         int // open files, with sockets; 0 if the system does not tell
	Sockets       int
	Connections   int // of NATS
	Subscriptions uint32
}

// hold counts them, without what is only kept for reuse.
func hold(t *testing.T, c *cluster, nats *server.Server) figures {
	t.Helper()
	c.client.Close()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections() // what coordinators forward by
	f := figures{Goroutines: runtime.NumGoroutine(), Connections: nats.NumClients(),
		Subscriptions: nats.NumSubscriptions()}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return f
	}
	f.Files = len(entries)
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			f.Sockets++
		}
	}
	return f
}

// atMost reports whether no figure of f is greater than in most.
func (f figures) atMost(most figures) bool {
	return f.Goroutines <= most.Goroutines && f.Files <= most.Files && f.Sockets <= most.Sockets &&
		f.Connections <= most.Connections && f.Subscriptions <= most.Subscriptions
}

// natsServer starts a NATS that can be asked what it holds.
func natsServer(t *testing.T) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
		MaxPayload: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(testkit.Limit) {
		t.Fatal("NATS does not start")
	}
	return s
}

// startOn starts three coordinators and two workers on an external NATS.
func startOn(t *testing.T, nats string) *cluster {
	t.Helper()
	c := prepare(t, 3)
	c.log = slog.New(slog.DiscardHandler) // it would be long
	for _, p := range c.peers {
		cfg := coordinator.Config{ID: p.ID, Dir: filepath.Join(c.dir, p.ID), Peers: c.peers, NATS: nats,
			Heartbeat: 200 * time.Millisecond, Log: c.log}
		c.run(p.ID, func(ctx context.Context) error { return coordinator.Run(ctx, cfg) })
	}
	for _, id := range []string{"w0", "w1"} {
		c.startWorker(id)
	}
	return c
}

// Over 200 jobs that are submitted, watched, paused, cancelled and finished, no
// goroutine, file, connection or subscription is left behind.
func TestNothingLeaks(t *testing.T) {
	testkit.WithoutRace(t)
	ctx := deadline(t)
	nats := natsServer(t)
	c := startOn(t, nats.ClientURL())
	c.pause.Store(int64(2 * time.Millisecond)) // jobs that are cancelled last until then
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(200, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	lives(t, ctx, c, 0, 12) // whatever is kept is there then
	before := settled(t, c, nats, func(f, last figures) bool { return f == last })
	lives(t, ctx, c, 12, 200)
	after := settled(t, c, nats, func(f, _ figures) bool { return f.atMost(before) })
	t.Logf("before %+v, after %+v", before, after)
	jobs, err := c.client.Jobs().All(ctx)
	if err != nil {
		t.Fatal(err)
	}
	count := make(map[protocol.JobState]int)
	for i := range jobs {
		count[jobs[i].State]++
	}
	if len(jobs) != 212 || count[protocol.Done] != 106 || count[protocol.Cancelled] != 106 {
		t.Errorf("%d jobs: %v", len(jobs), count)
	}
}

// settled waits until what is held is as wanted for half a second.
func settled(t *testing.T, c *cluster, nats *server.Server, wanted func(f, last figures) bool) figures {
	t.Helper()
	var last figures
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	good := 0
	for range 400 {
		<-tick.C
		f := hold(t, c, nats)
		if good++; !wanted(f, last) {
			good = 0
		}
		if last = f; good == 10 {
			return f
		}
	}
	stacks := make([]byte, 1<<20)
	t.Fatalf("it stays at %+v\n%s", last, stacks[:runtime.Stack(stacks, true)])
	return last
}

// lives runs n jobs through their lives, eight at a time.
func lives(t *testing.T, ctx context.Context, c *cluster, from, n int) {
	t.Helper()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i := from; i < from+n; i++ {
		g.Go(func() error { return life(ctx, c.client, i) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// life is the life of one job. Every second job is finished; the others are cancelled
// in the queue, while they run, or while they are paused.
func life(ctx context.Context, cl *client.Client, i int) error {
	finishes := i%2 == 0
	s := testSpec(map[string]string{"steps": "4", "patience": "4", "trees": "1", "depth": "3", "leaf_iterations": "1"})
	s.Name = fmt.Sprintf("job-%d", i)
	if !finishes {
		s.Set["steps"], s.Set["patience"] = "1000000", "1000000"
	}
	j, err := cl.Jobs().Submit(ctx, s)
	if err != nil {
		return err
	}
	end := protocol.Done
	if !finishes {
		end = protocol.Cancelled
		if err := cancelled(ctx, cl, j.Name, i/2%3); err != nil {
			return fmt.Errorf("%s: %w", j.Name, err)
		}
	}
	last, err := cl.Jobs().Watch(ctx, j.Name, func(*protocol.JobInfo) {})
	if err == nil && last.State != end {
		err = fmt.Errorf("%s is %s: %s", j.Name, last.State, last.Error)
	}
	return err
}

// cancelled cancels a job at once, once it runs, or once it is paused.
func cancelled(ctx context.Context, cl *client.Client, job string, when int) error {
	if when > 0 {
		seen, stop := context.WithCancel(ctx)
		defer stop()
		_, err := cl.Jobs().Watch(seen, job, func(j *protocol.JobInfo) {
			if j.State == protocol.Running {
				stop()
			}
		})
		if seen.Err() == nil {
			return fmt.Errorf("it ended by itself: %w", err)
		}
	}
	if when > 1 {
		for _, wish := range []func(context.Context, string) (*protocol.JobInfo, error){cl.Jobs().Pause, cl.Jobs().Resume,
			cl.Jobs().Pause} {
			if _, err := wish(ctx, job); err != nil {
				return err
			}
		}
	}
	_, err := cl.Jobs().Cancel(ctx, job)
	return err
}
