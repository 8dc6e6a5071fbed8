package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/natstest"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// wire carries TCP to an address until it is cut.
type wire struct {
	listener net.Listener
	to       string
	work     sync.WaitGroup

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l := testkit.Listen(t)
	w := &wire{listener: l, to: to, conns: make(map[net.Conn]bool)}
	w.work.Go(w.accept)
	t.Cleanup(func() {
		l.Close()
		w.set(true)
		w.work.Wait()
	})
	return w
}

func (w *wire) url() string { return "nats://" + w.listener.Addr().String() }

func (w *wire) accept() {
	for {
		in, err := w.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", w.to)
		if err != nil || !w.add(in, out) {
			in.Close()
			continue
		}
		for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
			w.work.Go(func() {
				io.Copy(pair[0], pair[1])
				pair[0].Close()
				pair[1].Close()
			})
		}
	}
}

func (w *wire) add(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		if w.cut {
			c.Close()
		} else {
			w.conns[c] = true
		}
	}
	return !w.cut
}

// set cuts the wire or mends it.
func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	for c := range w.conns {
		c.Close()
		delete(w.conns, c)
	}
}

// ready returns a coordinator's answer to /readyz: empty when it is.
func (c *cluster) ready(id string) string {
	for _, p := range c.peers {
		if p.ID != id {
			continue
		}
		r, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", p.Port))
		if err != nil {
			return err.Error()
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		if r.StatusCode == http.StatusOK {
			return ""
		}
		return string(b)
	}
	return "no peer " + id
}

// A leader that has Raft but no NATS hands over; the job goes on to the same
// digest. Without NATS anywhere the leader stays.
func TestALeaderWithoutNATSHandsOver(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	server := natstest.Server(t, bus.ServerOptions{Ping: bus.DefaultPing})
	c := prepare(t, 3)
	wires := make(map[string]*wire)
	for _, p := range c.peers {
		wires[p.ID] = newWire(t, strings.TrimPrefix(server.ClientURL(), "nats://"))
	}
	c.tune = func(cfg *coordinator.Config) { cfg.NATS = wires[cfg.ID].url() }
	workers := newWire(t, strings.TrimPrefix(server.ClientURL(), "nats://"))
	c.startAll(0)
	c.natsOf = []string{workers.url()}
	c.startWorker("w0")
	s := eventful()
	want := localDigest(t, s)
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	var old string
	end := c.train(ctx, s, func() {
		old = c.leader(ctx)
		wires[old].set(true)
		began := time.Now()
		testkit.Until(t, "change of leader", func() bool { l := c.leader(ctx); return l != "" && l != old })
		t.Logf("another led %v after the leader lost NATS", time.Since(began))
		if why := c.ready(old); !strings.Contains(why, "NATS") {
			t.Errorf("a coordinator without NATS says %q", why)
		}
	})
	if got := end.Models[0].Digest; got != want {
		t.Errorf("digest %s, --local has %s", got, want)
	}
	wires[old].set(false)
	testkit.Until(t, "NATS again", func() bool { return c.ready(old) == "" })
	epoch, elections := c.epoch(ctx), c.elections.Load()
	for _, w := range wires {
		w.set(true)
	}
	testkit.Until(t, "loss of NATS everywhere", func() bool {
		return c.ready("a") != "" && c.ready("b") != "" && c.ready("c") != ""
	})
	timer := time.NewTimer(5 * time.Second) // more than two handovers would take
	<-timer.C
	c.staysLed(ctx, epoch, elections)
}

// staysLed fails the test if the leader epoch has changed without an election after missed heartbeats.
func (c *cluster) staysLed(ctx context.Context, epoch uint64, elections int64) {
	c.t.Helper()
	if now := c.epoch(ctx); now != epoch && c.elections.Load() == elections {
		c.t.Errorf("the leader epoch is %d, before it was %d, and no coordinator missed heartbeats", now, epoch)
	}
}

func (c *cluster) epoch(ctx context.Context) uint64 {
	info, err := c.client.Cluster(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	return info.Epoch
}

// smallDisk gives coordinator a a disk of 100 MB and returns its folder. It skips the
// test if that is not possible.
func (c *cluster) smallDisk() string {
	c.t.Helper()
	if os.Getuid() != 0 {
		c.t.Skip("mounting a small file system needs root")
	}
	small := filepath.Join(c.dir, "a")
	if err := os.Mkdir(small, 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=100m"); err != nil {
		c.t.Skipf("a small file system cannot be mounted: %v", err)
	}
	c.t.Cleanup(func() {
		c.stopAll()
		if err := syscall.Unmount(small, 0); err != nil {
			c.t.Error(err)
		}
	})
	return small
}

// TestALeaderWithAFullDiskHandsOver: a leader with a full disk says so and hands over.
// Imports are refused, and the job goes on to the same digest. The coordinator fetches
// everything once the disk has room.
func TestALeaderWithAFullDiskHandsOver(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	c := prepare(t, 3)
	small := c.smallDisk()
	c.startAll(1)
	s := eventful()
	want := localDigest(t, s)
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "a to lead", func() bool {
		return c.leader(ctx) == "a" || c.client.Members().Transfer(ctx, "a") == nil
	})
	hog := filepath.Join(small, "hog")
	end := c.train(ctx, s, func() {
		fill(t, hog)
		began := time.Now()
		testkit.Until(t, "change of leader", func() bool { l := c.leader(ctx); return l != "" && l != "a" })
		t.Logf("another led %v after the disk was full", time.Since(began))
		testkit.Until(t, "full disk to be told", func() bool { return strings.Contains(c.ready("a"), "no space") })
		testkit.Until(t, "another to lead for good", func() bool { l := c.leader(ctx); return l != "" && l != "a" })
		m, err := c.client.Members().List(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range m.Members {
			if full := strings.Contains(one.Problem, "space"); full != (one.ID == "a") {
				t.Errorf("%s: %q", one.ID, one.Problem)
			}
		}
	})
	if got := end.Models[0].Digest; got != want {
		t.Errorf("digest %s, --local has %s", got, want)
	}
	if err := os.Remove(hog); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "a to be ready", func() bool { return c.ready("a") == "" })
	testkit.Until(t, "a to lead again", func() bool {
		return c.leader(ctx) == "a" || c.client.Members().Transfer(ctx, "a") == nil
	})
	if models, err := c.client.Models().List(ctx); err != nil || len(models) != 1 {
		t.Errorf("%d models, %v", len(models), err)
	}
}

// Alone, a coordinator with a full disk refuses imports, says so, and goes on by
// itself.
func TestAFullDiskAlone(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := prepare(t, 1)
	small := c.smallDisk()
	c.startAll(1)
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	hog := filepath.Join(small, "hog")
	fill(t, hog)
	_, err := c.client.Blobs().Put(ctx, []byte("more"))
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusInsufficientStorage {
		t.Errorf("an import on a full disk: %v", err)
	}
	testkit.Until(t, "full disk to be told", func() bool { return strings.Contains(c.ready("a"), "full") })
	s := testSpec(map[string]string{"steps": "300", "trees": "2"})
	want := localDigest(t, s)
	job, err := c.client.Jobs().Submit(ctx, s) // a few bytes of log: room was made for them before
	if err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the job to say why it does not end", func() bool { // there is no room for its model
		j, err := c.client.Jobs().Get(ctx, job.Name)
		return err == nil && j.WaitingFor == protocol.WaitRetry && strings.Contains(j.Waiting, "no space left")
	})
	if err := os.Remove(hog); err != nil {
		t.Fatal(err)
	}
	end, err := c.client.Jobs().Watch(ctx, job.Name, func(*protocol.JobInfo) {})
	if err != nil || len(end.Models) != 1 || end.Models[0].Digest != want {
		t.Errorf("%v, %+v, want %s", err, end, want)
	}
}

// TestAFullDiskAtTheStart: a coordinator that starts with a full disk says so, waits
// for room, and begins.
func TestAFullDiskAtTheStart(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	for _, coordinators := range []int{1, 3} {
		t.Run(fmt.Sprint(coordinators), func(t *testing.T) {
			c := prepare(t, coordinators)
			small := c.smallDisk()
			hog := filepath.Join(small, "hog")
			fill(t, hog)
			c.tune = func(cfg *coordinator.Config) {
				if cfg.ID == "a" {
					cfg.Dir = filepath.Join(small, "data")
				}
			}
			c.startAll(1)
			testkit.Until(t, "full disk to be told", func() bool { return strings.Contains(c.ready("a"), "the disk is full") })
			if err := os.Remove(hog); err != nil {
				t.Fatal(err)
			}
			testkit.Until(t, "a to be ready", func() bool { return c.ready("a") == "" })
		})
	}
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// A coordinator that loses the majority sends its NATS clients away, refuses new ones,
// and lets them in again once it hears a leader.
func TestSendsClientsAway(t *testing.T) {
	t.Parallel()
	ctx := testkit.Context(t)
	c := start(t, 3, 0)
	c.leader(ctx)
	p := c.peers[0]
	here := bus.Options{URLs: []string{fmt.Sprintf("nats://127.0.0.1:%d", p.Port+2)}, Name: "client"}
	conn, err := bus.Connect(ctx, here)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if at := conn.ServerName(); at != p.ID {
		t.Fatalf("the client is connected to %q", at)
	}
	for _, other := range c.peers[1:] {
		c.stop(other.ID)
	}
	testkit.Until(t, "the client to be sent away", func() bool { return !conn.Connected() })
	if other, err := bus.Connect(ctx, here); err == nil {
		other.Close()
		t.Error("a client was let in")
	}
	c.startCoordinator(c.peers[1].ID)
	testkit.Until(t, "the client to be let in again", conn.Connected)
}
