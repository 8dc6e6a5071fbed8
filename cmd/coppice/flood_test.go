package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/internal/bus"
	"github.com/coppice-ldl/coppice/internal/proc"
	"github.com/coppice-ldl/coppice/protocol"
)

// floodSize is what greedy clients do to a coordinator at once.
type floodSize struct {
	idle      int   // HTTP connections that say nothing, and a quarter of it of NATS
	uploads   int   // that stand still
	deaf      int   // NATS clients that listen to all and read nothing
	fragments int   // of 1 MiB, each of another message
	memory    int64 // --message-memory, MiB
	most      int   // --max-connections
}

// fullFlood is the environment variable that has TestFlood run in full, on a machine
// with 15,000 descriptors.
const fullFlood = "COPPICE_TEST_FLOOD"

// flooded is how many times the budget of messages the memory may be: as much garbage, and
// what comes between two looks, on a machine that computes the flood as well.
const flooded = 6

// A coordinator under greedy clients stays within its budget of memory and descriptors;
// imports, jobs and questions how it is go on, to the same bits.
func TestFlood(t *testing.T) {
	raced(t)
	size := floodSize{idle: 400, uploads: 10, deaf: 10, fragments: 200, memory: 64, most: 64}
	if os.Getenv(fullFlood) != "" {
		size = floodSize{idle: 10_000, uploads: 300, deaf: 20, fragments: 2000, memory: 512, most: 512}
	}
	c := floodable(t, size)
	t.Setenv("COPPICE_SERVER", c.Servers())
	data := artificialFile(t, t.TempDir(), "set.csv", 2000, 1)
	args := []string{"train", "--data", data, "--steps", "100", "-o", "json", "--name"}
	before := works(t, append(args, "before")...)
	use := watchUse(t, c.Coordinators[0].Pid())
	rss, files := use.most()
	f := flood(t, c, size)
	until(t, "the flood", func() bool {
		return f.begun.Load() >= f.all
	})
	began := time.Now()
	more := artificialFile(t, t.TempDir(), "more.csv", 2000, 2)
	works(t, "dataset", "import", "--data", more, "--name", "more")
	imported := time.Since(began)
	after := works(t, append(args, "after")...)
	trained := time.Since(began) - imported
	for _, path := range []string{"/healthz", "/readyz", "/v1/self"} {
		f.answered(t, path)
	}
	if a, b := modelDigest(t, before), modelDigest(t, after); a != b {
		t.Errorf("digest %s before, %s after", a, b)
	}
	most, open := use.most()
	t.Logf("memory %d MiB before, %d MiB at most; %d descriptors before, %d at most; import %v, job %v", rss>>20, most>>20, files, open, imported.Round(time.Millisecond), trained.Round(time.Millisecond))
	if bound := rss + flooded*size.memory<<20 + int64(size.most)<<20; most > bound { // and a payload for each connection
		t.Errorf("%d MiB of memory, %d before; the bound is %d", most>>20, rss>>20, bound>>20)
	}
	if bound := 64 + 6*size.most; open > bound { // some are being closed
		t.Errorf("%d descriptors, at most %d may be", open, bound)
	}
}

// floodable starts a cluster of one coordinator and two workers with a budget.
func floodable(t *testing.T, size floodSize) *proc.Cluster {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := proc.Start(ctx, proc.Config{
		Exe: exe, Env: []string{asCommand + "=1"}, Dir: t.TempDir(), Coordinators: 1, Workers: 2,
		Args: []string{"--message-memory", fmt.Sprintf("%dMiB", size.memory), "--max-connections", strconv.Itoa(size.most)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			var b strings.Builder
			c.Tail(&b, 30)
			t.Log(b.String())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// modelDigest reads the model's digest from the JSON of train.
func modelDigest(t *testing.T, text string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, `"model_digest"`)
	if !ok || len(rest) < 70 {
		t.Fatalf("no digest in %s", text)
	}
	return strings.Trim(rest[:70], `": ,`)
}

// use is the memory and the descriptors of a process.
type use struct {
	pid  int
	mu   sync.Mutex
	rss  int64
	open int
}

// watchUse looks until the test ends.
func watchUse(t *testing.T, pid int) *use {
	u := &use{pid: pid}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	u.look()
	done.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
			u.look()
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return u
}

func (u *use) look() {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", u.pid))
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kib, _ := strconv.ParseInt(strings.TrimSpace(strings.SplitN(rest, "kB", 2)[0]), 10, 64)
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", u.pid))
	u.mu.Lock()
	defer u.mu.Unlock()
	u.rss, u.open = max(u.rss, kib<<10), max(u.open, len(files))
}

func (u *use) most() (rss int64, open int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.rss, u.open
}

// greed is a flood that goes on until the test ends.
type greed struct {
	t          *testing.T
	ctx        context.Context
	tasks      sync.WaitGroup
	begun      atomic.Int64
	all        int64  // parts of it
	http, nats string // addresses
}

func flood(t *testing.T, c *proc.Cluster, size floodSize) *greed {
	ctx, cancel := context.WithCancel(t.Context())
	f := &greed{t: t, ctx: ctx, http: c.HTTP(c.Coordinators[0])}
	t.Cleanup(func() { cancel(); f.tasks.Wait() })
	host, port, err := net.SplitHostPort(f.http)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	f.nats = net.JoinHostPort(host, strconv.Itoa(n+2))
	info, err := c.Client().Cluster(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sender, err := bus.Connect(ctx, bus.Options{URLs: []string{"nats://" + f.nats}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sender.Subscribe("flood", func(bus.Message) {}); err != nil { // who listens to nothing is closed
		t.Fatal(err)
	}
	f.tasks.Go(func() {
		defer sender.Close()
		f.fragments(sender, protocol.Subjects{Cluster: info.ID}, size.fragments)
	})
	const hands = 8
	f.all = int64(hands*(size.idle/hands+size.idle/hands/4) + size.uploads + size.deaf + size.fragments)
	for range hands {
		f.tasks.Go(func() { f.idle(f.http, size.idle/hands) })
		f.tasks.Go(func() { f.idle(f.nats, size.idle/hands/4) })
	}
	for range size.uploads {
		f.tasks.Go(func() { f.upload() })
	}
	for range size.deaf {
		f.tasks.Go(func() { f.deaf() })
	}
	return f
}

// idle keeps connections open that say nothing, and opens others in place of those that were
// opened first, for ever.
func (f *greed) idle(address string, n int) {
	open := make([]net.Conn, n)
	defer func() {
		for _, c := range open {
			if c != nil {
				c.Close()
			}
		}
	}()
	for i := 0; f.ctx.Err() == nil; i = (i + 1) % n {
		if open[i] != nil {
			open[i].Close()
			f.pause(20 * time.Millisecond)
		} else {
			f.begun.Add(1)
		}
		open[i], _ = net.DialTimeout("tcp", address, time.Second) // an error: it is refused
	}
}

// upload announces a large blob and sends three bytes, again and again.
func (f *greed) upload() {
	for first := true; f.ctx.Err() == nil; {
		if c, err := net.DialTimeout("tcp", f.http, time.Second); err == nil {
			fmt.Fprintf(c, "PUT /v1/blobs/%064d HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\nabc", 0, 256<<20)
			c.SetReadDeadline(time.Now().Add(15 * time.Second))
			stop := context.AfterFunc(f.ctx, func() { c.Close() })
			f.begins(first)
			first = false
			io.Copy(io.Discard, c)
			stop()
			c.Close()
		}
		f.pause(10 * time.Millisecond)
	}
}

// deaf subscribes to everything, says that it is alive, and reads nothing.
func (f *greed) deaf() {
	for first := true; f.ctx.Err() == nil; {
		if c, err := net.DialTimeout("tcp", f.nats, time.Second); err == nil {
			_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
			_, err := io.WriteString(c, "CONNECT {\"verbose\":false}\r\nSUB > 1\r\nPING\r\n")
			f.begins(first)
			first = false
			for err == nil && f.ctx.Err() == nil {
				f.pause(50 * time.Millisecond)
				_, err = io.WriteString(c, "PONG\r\n")
			}
			c.Close()
		}
		f.pause(100 * time.Millisecond)
	}
}

// fragments sends beginnings of messages that never end.
func (f *greed) fragments(c *bus.Conn, subjects protocol.Subjects, n int) {
	for i := uint64(0); f.ctx.Err() == nil; i++ {
		part := protocol.Fragment{Sender: i, Message: 1, Total: protocol.MaxMessage, Data: make([]byte, 1<<20-1<<10)}
		err := c.Send(subjects.Beats(), "", part.Append(nil)) // an error: it was closed, and connects again
		f.begins(i < uint64(n))
		if err != nil || i >= uint64(n) {
			f.pause(10 * time.Millisecond)
		}
	}
}

// begins counts a part of the flood.
func (f *greed) begins(first bool) {
	if first {
		f.begun.Add(1)
	}
}

func (f *greed) pause(d time.Duration) {
	select {
	case <-f.ctx.Done():
	case <-time.After(d):
	}
}

// answered wants an answer within a few tries: a try may be the one that is cut off.
func (f *greed) answered(t *testing.T, path string) {
	t.Helper()
	var err error
	for range 3 {
		var r *http.Response
		if r, err = (&http.Client{Timeout: 5 * time.Second}).Get("http://" + f.http + path); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return
			}
			err = fmt.Errorf("status %d", r.StatusCode)
		}
	}
	t.Errorf("%s: %v", path, err)
}
