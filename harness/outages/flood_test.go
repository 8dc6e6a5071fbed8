package outages_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// floodSize is what greedy clients do to a coordinator at once.
type floodSize struct {
	// HTTP connections that say nothing, and a quarter as many of NATS that say their name only; with deaf and halves,
	// more than most
	idle      int
	uploads   int           // that stand still
	deaf      int           // NATS clients that ask for pieces of a blob, listen to what they may, and read nothing
	halves    int           // NATS clients that send most of a message of 1 MiB
	fragments int           // of 1 MiB, each of another message
	memory    int64         // --message-memory, MiB
	most      int           // --max-connections
	lasts     time.Duration // while jobs follow each other
}

// fullFlood is the environment variable that has TestFlood run for a minute, with the default
// budget.
const fullFlood = "COPPICE_TEST_FLOOD"

// files is how many descriptors the flood takes of this process.
func (s *floodSize) files() uint64 {
	return uint64(s.idle + s.idle/4 + s.uploads + s.deaf + s.halves + 200)
}

// bound is the memory of a coordinator, in bytes, that takes idle without the flood: the
// collector may leave as much garbage as there are bytes in use, and a connection of NATS
// takes a payload of 1 MiB while one comes.
func (s *floodSize) bound(idle int64) int64 { return 2*idle + 2*s.memory<<20 + int64(s.most)<<20 }

// A coordinator under greedy clients stays within its budget of memory and descriptors;
// imports, jobs and questions how it is go on, to the same bits.
func TestFlood(t *testing.T) {
	testkit.WithoutRace(t)
	if testing.Short() {
		t.Skip("it floods a coordinator with connections")
	}
	size := floodSize{idle: 400, uploads: 10, deaf: 40, halves: 8, fragments: 200, memory: 64, most: 128}
	if os.Getenv(fullFlood) != "" {
		size = floodSize{idle: 10_000, uploads: 300, deaf: 200, halves: 100, fragments: 2000, memory: 512, most: 512,
			lasts: time.Minute}
	}
	needFiles(t, size.files())
	c := floodable(t, size, 2)
	t.Setenv("COPPICE_SERVER", c.Servers())
	data := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 2000, 1)
	args := []string{"train", "--data", data, "--steps", "100", "-o", "json", "--name"}
	before := cmdtest.Works(t, append(args, "before")...)
	use := watchUse(t, c.Coordinators[0].Pid())
	idle, files := use.rss(), use.most()
	f := flood(t, c, size)
	testkit.Until(t, "the flood", func() bool { return f.begun.Load() >= f.all })
	f.felt(t, `coppice_connections_closed_total{service="nats"}`)
	f.felt(t, `coppice_connections_closed_total{service="http"}`)
	f.felt(t, "coppice_messages_dropped_total")
	began := time.Now()
	more := cmdtest.ArtificialFile(t, t.TempDir(), "more.csv", 2000, 2)
	cmdtest.Works(t, "dataset", "import", "--data", more, "--name", "more")
	imported := time.Since(began)
	var after string
	trained, jobs := time.Duration(0), 0
	for start := time.Now(); jobs == 0 || time.Since(start) < size.lasts; jobs++ {
		one := time.Now()
		after = cmdtest.Works(t, append(args, fmt.Sprint("after", jobs))...)
		trained = max(trained, time.Since(one))
	}
	for _, path := range []string{"/healthz", "/readyz", "/v1/self"} {
		f.answered(t, path)
	}
	if a, b := modelDigest(t, before), modelDigest(t, after); a != b {
		t.Errorf("digest %s before, %s after", a, b)
	}
	peak, open := use.peak(), use.most()
	t.Logf("memory %d MiB before, %d MiB at most, bound %d; %d descriptors before, %d at most; import %v, slowest of %d "+
		"jobs %v", idle>>20, peak>>20, size.bound(idle)>>20,
		files, open, imported.Round(time.Millisecond), jobs, trained.Round(time.Millisecond))
	f.kept(t)
	if bound := size.bound(idle); peak > bound {
		t.Errorf("%d MiB of memory, %d before; the bound is %d", peak>>20, idle>>20, bound>>20)
	}
	if bound := 64 + 3*size.most; open > bound { // what a coordinator asks the system for
		t.Errorf("%d descriptors, at most %d may be", open, bound)
	}
}

// needFiles lets this process have n descriptors, or skips the test.
func needFiles(t *testing.T, n uint64) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Cur >= n {
		return
	}
	wider := unix.Rlimit{Cur: n, Max: max(n, limit.Max)}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &wider); err != nil {
		t.Skipf("this process may have %d open files, and %d are needed (ulimit -n): %v", limit.Cur, n, err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) })
}

// floodable starts a cluster of one coordinator and so many workers with a budget.
func floodable(t *testing.T, size floodSize, workers int) *proc.Cluster {
	t.Helper()
	return cmdtest.StartWith(t, proc.Config{
		Coordinators: 1, Workers: workers,
		Args: []string{"--message-memory", fmt.Sprintf("%dMiB", size.memory), "--max-connections", strconv.Itoa(size.most)},
	})
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
	open int
}

// watchUse counts descriptors until the test ends.
func watchUse(t *testing.T, pid int) *use {
	u := &use{pid: pid}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	u.look()
	done.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-tick.C:
				u.look()
			}
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return u
}

func (u *use) look() {
	files, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", u.pid))
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open = max(u.open, len(files))
}

// most returns the most descriptors that were seen.
func (u *use) most() (open int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.open
}

// rss returns the memory of now, in bytes, and peak the most since the process began, as
// the system counts them.
func (u *use) rss() int64  { return u.status("VmRSS:") }
func (u *use) peak() int64 { return u.status("VmHWM:") }

func (u *use) status(line string) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", u.pid))
	_, rest, _ := strings.Cut(string(status), line)
	kib, _ := strconv.ParseInt(strings.TrimSpace(strings.SplitN(rest, "kB", 2)[0]), 10, 64)
	return kib << 10
}

// greed is a flood that goes on until the test ends.
type greed struct {
	t          *testing.T
	ctx        context.Context
	tasks      sync.WaitGroup
	begun      atomic.Int64
	all        int64  // parts of it
	http, nats string // addresses
	subjects   protocol.Subjects
	worker     string // a worker that there is
	blob       string // digest of a blob that there is
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
	f.subjects, f.worker = protocol.Subjects{Cluster: info.ID}, info.Workers[0].ID
	if f.blob, err = c.Client().Blobs().Put(ctx, make([]byte, 4*protocol.BlobChunk)); err != nil {
		t.Fatal(err)
	}
	sender, err := bus.Connect(ctx, bus.Options{URLs: []string{"nats://" + f.nats}, Name: "fragments",
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	f.tasks.Go(func() {
		defer sender.Close()
		f.fragments(sender, size.fragments)
	})
	const hands = 8
	f.all = int64(hands*(size.idle/hands+size.idle/hands/4) + size.uploads + size.deaf + size.halves + size.fragments + 1)
	for range hands {
		f.tasks.Go(func() { f.idle(f.http, "", size.idle/hands) })
		f.tasks.Go(func() { f.idle(f.nats, introduction("idle"), size.idle/hands/4) })
	}
	for range size.uploads {
		f.tasks.Go(f.upload)
	}
	for i := range size.deaf {
		name := fmt.Sprint("deaf", i)
		if i%20 == 0 {
			name = f.worker
		}
		f.tasks.Go(func() { f.deaf(name) })
	}
	for range size.halves {
		f.tasks.Go(f.half)
	}
	f.tasks.Go(f.shout)
	return f
}

// introduction is the beginning of a connection of a NATS client.
func introduction(name string) string {
	return fmt.Sprintf("CONNECT {\"verbose\":false,\"name\":%q}\r\n", name)
}

// idle keeps n connections open until the end of the flood. A connection sends hello, and then nothing. Every 100 ms, a
// new connection replaces the oldest one.
func (f *greed) idle(address, hello string, n int) {
	open := make([]net.Conn, n)
	defer func() {
		for _, c := range open {
			if c != nil {
				c.Close()
			}
		}
	}()
	for i := 0; n > 0 && f.ctx.Err() == nil; i = (i + 1) % n {
		if open[i] != nil {
			open[i].Close()
			f.pause(100 * time.Millisecond)
		} else {
			f.begun.Add(1)
		}
		var err error
		if open[i], err = net.DialTimeout("tcp", address, time.Second); err == nil { // else it is refused
			_, _ = io.WriteString(open[i], hello)
		}
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

// natsClient connects to NATS again and again, introduces itself by a name, and begins
// with hello; then it calls say until an error or the end of the flood.
func (f *greed) natsClient(name, hello string, say func(c net.Conn) error) {
	for first := true; f.ctx.Err() == nil; {
		if c, err := net.DialTimeout("tcp", f.nats, time.Second); err == nil {
			stop := context.AfterFunc(f.ctx, func() { c.Close() })
			_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
			_, err := io.WriteString(c, introduction(name)+hello)
			f.begins(first)
			first = false
			for err == nil && f.ctx.Err() == nil {
				err = say(c)
			}
			stop()
			c.Close()
		}
		f.pause(500 * time.Millisecond)
	}
}

// deaf listens to everything and to what it may, asks for pieces of a blob, says that it is
// alive, and reads nothing.
func (f *greed) deaf(name string) {
	answers := f.subjects.Answers(name)
	listens := fmt.Sprintf("SUB > 1\r\nSUB %s 2\r\nSUB %s 3\r\nSUB %s.> 4\r\n", f.subjects.Lead(),
		f.subjects.Work(name), answers)
	get := (&protocol.BlobGet{Digest: f.blob, Length: protocol.BlobChunk}).Append(nil)
	asks := fmt.Sprintf("PUB %s %s.x %d\r\n%s\r\nPONG\r\n", f.subjects.Fetch(name), answers, len(get), get)
	f.natsClient(name, listens, func(c net.Conn) error {
		_, err := io.WriteString(c, asks)
		f.pause(time.Second)
		return err
	})
}

// half sends most of a message, and then nothing.
func (f *greed) half() {
	const n, due = 1 << 20, 1 << 10
	part := fmt.Sprintf("SUB %s 1\r\nPUB %s %d\r\n", f.subjects.Lead(), f.subjects.Heartbeats("half"), n) +
		strings.Repeat("x", n-due)
	f.natsClient("half", part, func(c net.Conn) error {
		_, err := io.Copy(io.Discard, c) // until it is closed: it answers no ping
		return errors.Join(err, io.EOF)
	})
}

// shout sends messages to who would listen to everything.
func (f *greed) shout() {
	loud := fmt.Sprintf("PUB %s %d\r\n%s\r\nPONG\r\n", f.subjects.Lead(), 1<<20, strings.Repeat("x", 1<<20))
	f.natsClient("shout", "PING\r\n", func(c net.Conn) error {
		go io.Copy(io.Discard, c)
		var err error
		for err == nil && f.ctx.Err() == nil {
			_, err = io.WriteString(c, loud)
			f.pause(20 * time.Millisecond)
		}
		return err
	})
}

// fragments sends beginnings of messages that never end.
func (f *greed) fragments(c *bus.Conn, n int) {
	for i := uint64(0); n > 0 && f.ctx.Err() == nil; i++ {
		part := protocol.Fragment{Sender: i, Message: 1, Total: protocol.MaxMessage, Data: make([]byte, 1<<20-1<<10)}
		err := c.Send(f.subjects.Heartbeats("fragments"), "", part.Append(nil)) // an error: it was closed, and connects again
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

// felt waits until a counter of the coordinator is above zero.
func (f *greed) felt(t *testing.T, counter string) {
	t.Helper()
	testkit.Until(t, counter, func() bool { return f.counter(counter) > 0 })
}

// counter returns a counter of the coordinator, NaN where it says none.
func (f *greed) counter(name string) float64 {
	r, err := (&http.Client{Timeout: 5 * time.Second}).Get("http://" + f.http + "/metrics")
	if err != nil {
		return math.NaN()
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	_, rest, ok := strings.Cut(string(b), "\n"+name+" ")
	n, bad := strconv.ParseFloat(strings.SplitN(rest, "\n", 2)[0], 64)
	if err != nil || !ok || bad != nil {
		return math.NaN()
	}
	return n
}

// kept wants the coordinator to have kept its own connection to NATS. It may lose the connection once, because on a
// machine without a free processor it may read the flood too slowly itself; it then connects again at once.
func (f *greed) kept(t *testing.T) {
	t.Helper()
	lost := math.NaN()
	testkit.Until(t, "metrics", func() bool {
		lost = f.counter("coppice_nats_disconnects_total")
		return !math.IsNaN(lost)
	})
	if lost > 1 {
		t.Errorf("the coordinator lost its own connection to NATS %v times", lost)
	}
}

// answered wants an answer within a few tries: a try may be the one that is cut off.
func (f *greed) answered(t *testing.T, path string) {
	t.Helper()
	var err error
	for range 3 {
		var r *http.Response
		if r, err = (&http.Client{Timeout: testkit.Limit}).Get("http://" + f.http + path); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return
			}
			err = fmt.Errorf("status %d", r.StatusCode)
		}
	}
	t.Errorf("%s: %v", path, err)
}
