package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/worker/batch"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/natstest"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// beat waits for a beat of w that f likes.
func (l *leader) beat(w *running, what string, f func(protocol.Heartbeat) bool) protocol.Heartbeat {
	l.t.Helper()
	for {
		if b := receive(l.t, what, l.beats); b.Worker == w.id && f(b) {
			return b
		}
	}
}

// Beats say who the worker is; a full one says what it holds; the last one that
// it leaves.
func TestBeats(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{Slots: 3, Listen: "127.0.0.1:0"})
	b := l.beat(w, "a full beat", func(b protocol.Heartbeat) bool { return b.Full })
	if b.Protocol != protocol.Version || b.Numerics != round.Numerics || b.Slots != 3 || b.Metrics != w.heartbeat.http ||
		len(b.Holds) > 0 {
		t.Errorf("got %+v", b)
	}
	l.to(w, &protocol.Hold{Epoch: 5, Shards: d.manifest.Shards})
	b = l.beat(w, "a full beat with all shards", func(b protocol.Heartbeat) bool {
		return len(b.Holds) == len(d.manifest.Shards)
	})
	for _, s := range d.manifest.Shards {
		if !slices.Contains(b.Holds, s.Digest) {
			t.Errorf("shard %s is not held", s.Digest)
		}
	}
	l.beat(w, "a short beat", func(b protocol.Heartbeat) bool { return !b.Full && b.Holds == nil })
	l.id = "b" // under the same epoch: cannot be, but is a change to be answered
	l.announce()
	l.beat(w, "a full beat for another leader", func(b protocol.Heartbeat) bool { return b.Full })
	w.stop()
	l.beat(w, "a goodbye", func(b protocol.Heartbeat) bool { return b.Leaving })
}

// A cache survives a restart and is announced once it is verified.
func TestRestart(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	dir := t.TempDir()
	w := c.start(Config{Dir: dir})
	id := w.id
	l.to(w, &protocol.Hold{Epoch: 5, Shards: d.manifest.Shards})
	all := func(b protocol.Heartbeat) bool { return len(b.Holds) == len(d.manifest.Shards) }
	l.beat(w, "all shards", all)
	w.stop()
	w = c.start(Config{Dir: dir})
	if w.id != id {
		t.Errorf("the worker was %s and is %s", id, w.id)
	}
	l.beat(w, "all shards again", all)
	if n := counter(w.metrics.BlobsFetched); n != 0 {
		t.Errorf("%v shards were fetched again", n)
	}
}

// A corrupt or missing file is found before it is used, and fetched again.
func TestCorruptCache(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	dir := t.TempDir()
	w := c.start(Config{Dir: dir})
	l.to(w, &protocol.Hold{Epoch: 5, Shards: d.manifest.Shards})
	l.beat(w, "all shards", func(b protocol.Heartbeat) bool { return len(b.Holds) == len(d.manifest.Shards) })
	w.stop()

	victim := filepath.Join(dir, "shards", d.manifest.Shards[2].Digest)
	b := must[[]byte](t)(os.ReadFile(victim))
	b[len(b)/2] ^= 1
	if err := os.WriteFile(victim, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "shards", d.manifest.Shards[9].Digest)); err != nil {
		t.Fatal(err)
	}
	w = c.start(Config{Dir: dir})
	j := newTestJob(t, d, 7, param.Values{"scaling": "standard"})
	list, sums := rounds(t, d, j, 1)
	l.setup(w, 40, j, d.manifest)
	l.to(w, l.message(40, 0, list[0], allTasks(list[0].Tasks)))
	p := receive(t, "a part", l.parts)
	if err := samePartial(p.Partial, sums[0]); err != nil {
		t.Error(err)
	}
	corrupt, fetched := counter(w.metrics.BlobsCorrupt), counter(w.metrics.BlobsFetched)
	if corrupt != 1 || fetched != 2 {
		t.Errorf("%v corrupt, %v fetched", corrupt, fetched)
	}
	entries := must[[]os.DirEntry](t)(os.ReadDir(filepath.Join(dir, "shards")))
	if len(entries) != len(d.manifest.Shards) {
		t.Errorf("%d files in the cache of %d shards", len(entries), len(d.manifest.Shards))
	}
}

// When the cluster is elsewhere, the worker finds it again through HTTP, and goes
// on with its jobs.
func TestClusterMoves(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{})
	j := newTestJob(t, d, 7, param.Values{"scaling": "standard"})
	list, sums := rounds(t, d, j, 1)
	r := list[0]
	l.setup(w, 40, j, d.manifest)
	l.to(w, l.message(40, 0, r, allTasks(r.Tasks)))
	receive(t, "a part", l.parts)

	server := natstest.Server(t, serverOptions)
	c.server.Close()
	c.server = server
	c.set(func(i *protocol.Cluster) { i.NATS = []string{server.ClientURL()} })
	c.conn = c.dial()
	l = c.lead("a", 9)
	l.beat(w, "a beat at the new place", func(protocol.Heartbeat) bool { return true })
	l.to(w, l.message(40, 0, r, allTasks(r.Tasks)))
	p := receive(t, "a part at the new place", l.parts)
	if err := samePartial(p.Partial, sums[0]); err != nil {
		t.Error(err)
	}

	c.set(func(i *protocol.Cluster) { i.ID = "other" })
	c.subjects.Cluster = "other"
	l = c.lead("a", 2) // epochs of another cluster mean nothing
	l.beat(w, "a beat in the other cluster", func(protocol.Heartbeat) bool { return true })
	l.to(w, l.message(40, 0, r, allTasks(r.Tasks)))
	if need := receive(t, "a need", l.needs); !need.Setup {
		t.Errorf("got %+v: jobs of another cluster are not these", need)
	}
}

// When the coordinators begin anew, with an empty log behind the same addresses,
// the worker follows them, and a job of the new log is not taken for the one that
// had its number before.
func TestClusterBeginsAnew(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 50)
	w := c.start(Config{})
	old := newTestJob(t, d, 7, param.Values{"scaling": "standard"})
	list, _ := rounds(t, d, old, 1)
	l.setup(w, 40, old, d.manifest)
	l.to(w, l.message(40, 0, list[0], allTasks(list[0].Tasks)))
	receive(t, "a part", l.parts)

	c.set(func(i *protocol.Cluster) { i.Epoch, i.Leader = 3, "a" })
	l = c.lead("a", 3)
	j := newTestJob(t, d, 8, param.Values{"scaling": "minmax"})
	list, sums := rounds(t, d, j, 1)
	l.beat(w, "an answer to the new log's leader", func(protocol.Heartbeat) bool { // obeyed once the worker knows
		l.setup(w, 40, j, d.manifest)
		l.values(w, 40, list[0])
		l.to(w, l.message(40, 0, list[0], allTasks(list[0].Tasks)))
		return len(l.parts) > 0
	})
	p := receive(t, "a part under the new log", l.parts)
	if err := samePartial(p.Partial, sums[0]); err != nil {
		t.Error(err)
	}
}

// TestAnotherJobOfTheSameNumber takes the old one's place.
func TestAnotherJobOfTheSameNumber(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{})
	for _, scaling := range []string{"standard", "minmax"} {
		j := newTestJob(t, d, 7, param.Values{"scaling": scaling})
		list, sums := rounds(t, d, j, 1)
		l.setup(w, 40, j, d.manifest)
		l.values(w, 40, list[0])
		l.to(w, l.message(40, 0, list[0], allTasks(list[0].Tasks)))
		p := receive(t, "a part", l.parts)
		if err := samePartial(p.Partial, sums[0]); err != nil {
			t.Errorf("scaling %s: %v", scaling, err)
		}
	}
}

// A worker that finds a cluster of another version says both and ends.
func TestOtherVersion(t *testing.T) {
	for _, change := range []func(*protocol.Cluster){
		func(i *protocol.Cluster) { i.Protocol = 91 },
		func(i *protocol.Cluster) { i.Numerics = 91 },
	} {
		c := newCluster(t)
		c.set(change)
		err := Run(t.Context(), Config{Join: []string{c.http.URL}, Dir: t.TempDir()})
		want := fmt.Sprintf(") has %d and %d", protocol.Version, round.Numerics)
		if !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "91") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v", err)
		}
	}
}

// Run waits for coordinators for ever, and ends without an error when told to.
func TestNobodyAnswers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan string, 100)
	cfg := Config{Join: []string{"127.0.0.1:1"}, Dir: filepath.Join(t.TempDir(), "w"), Log: lineLog(seen)}
	done := make(chan error, 1)
	go func() { done <- Run(ctx, cfg) }()
	if line := receive(t, "a log line", seen); !strings.Contains(line, "no coordinator answers") ||
		!strings.Contains(line, "127.0.0.1:1") {
		t.Errorf("logged %q", line)
	}
	cancel()
	if err := receive(t, "the end", done); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestWrongConfig(t *testing.T) {
	good := Config{Join: []string{"x:1"}, Dir: t.TempDir()}
	ended, cancel := context.WithCancel(t.Context())
	cancel() // a worker that begins ends at once
	for _, spoil := range []func(*Config){
		func(c *Config) { c.Join = nil },
		func(c *Config) { c.Dir = "" },
		func(c *Config) { c.ID = "a.b" },
		func(c *Config) { c.Join = []string{"", " "} },
		func(c *Config) { c.Join = []string{"::1"} },
		func(c *Config) { c.Join = []string{"x:1", "h:port"} },
		func(c *Config) { c.Join = []string{"127.0.0.1:99999"} },
		func(c *Config) { c.Join = []string{"https://h:1"} },
		func(c *Config) { c.Slots = -1 },
		func(c *Config) { c.CacheBytes = -1 },
	} {
		c := good
		spoil(&c)
		if err := Run(ended, c); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
	if err := os.WriteFile(filepath.Join(good.Dir, "mine.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Run(ended, good); !errors.Is(err, ErrFolder) {
		t.Errorf("a folder of somebody else: got %v", err)
	}
}

// One process at a time uses a folder; a port that is taken is an error.
func TestTaken(t *testing.T) {
	c := newCluster(t)
	w := c.start(Config{Listen: "127.0.0.1:0"})
	cfg := w.cfg
	if err := Run(t.Context(), cfg); !errors.Is(err, ErrLocked) {
		t.Errorf("a second worker in the folder: got %v", err)
	}
	cfg.Dir, cfg.Listen = t.TempDir(), w.heartbeat.http
	if err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), w.heartbeat.http) {
		t.Errorf("a taken port: got %v", err)
	}
}

func TestHTTP(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	w := c.start(Config{Listen: "127.0.0.1:0"})
	get := func(path string) (int, string) {
		r := must[*http.Response](t)(http.Get("http://" + w.heartbeat.http + path))
		defer r.Body.Close()
		return r.StatusCode, string(must[[]byte](t)(io.ReadAll(r.Body)))
	}
	defer http.DefaultClient.CloseIdleConnections()
	if code, body := get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "leader") {
		t.Errorf("/readyz without a leader: %d %s", code, body)
	}
	l := c.lead("a", 5)
	eventually(t, "the worker is ready", func() bool { code, _ := get("/readyz"); return code == http.StatusOK })
	refuse := protocol.Lead{Epoch: 5, Coordinator: "a", Refused: map[string]string{w.id: "its numerics"}}
	l.publish(c.subjects.Lead(), refuse.Append(nil))
	eventually(t, "the worker knows that it is refused", func() bool {
		code, body := get("/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(body, "its numerics")
	})
	if code, _ := get("/healthz"); code != http.StatusOK {
		t.Errorf("/healthz: %d", code)
	}
	l.to(w, &protocol.Hold{Epoch: 5, Shards: []dataset.ShardRef{d.manifest.Shards[0]}})
	for _, line := range []string{
		"coppice_worker_slots 2", "coppice_worker_leader_epoch 5", "coppice_worker_connected 1",
		"coppice_worker_shards 1", fmt.Sprintf("coppice_worker_cache_bytes %d", d.manifest.Shards[0].Bytes),
	} {
		eventually(t, line, func() bool { _, body := get("/metrics"); return strings.Contains(body, "\n"+line+"\n") })
	}
}

// A file that is cut short while it is mapped faults: the tasks fail for now, and
// the next time the job is set up the file is read again, found wrong and
// fetched.
func TestShardCutShort(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{Slots: 1})
	j := newTestJob(t, d, 7, param.Values{"scaling": "standard"})
	list, sums := rounds(t, d, j, 1)
	run := l.message(40, 0, list[0], allTasks(list[0].Tasks))
	l.setup(w, 40, j, d.manifest)
	l.to(w, run)
	receive(t, "a part", l.parts)
	eventually(t, "the batch is given up", func() bool {
		return w.quiet(func(j *batch.Job) bool { return j.Live() == 0 })
	})
	path := must[string](t)(w.cache.folder.Path(d.manifest.Shards[0].Digest))
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	l.to(w, run)
	f := receive(t, "a failure", l.fails)
	if f.Task != 0 || f.Permanent || !strings.Contains(f.Reason, errFault.Error()) {
		t.Errorf("got %+v", f)
	}
	eventually(t, "the job is forgotten", func() bool { return w.job(40) == nil })
	l.setup(w, 40, j, d.manifest)
	l.to(w, run)
	for p := receive(t, "a part", l.parts); ; p = receive(t, "a part", l.parts) {
		if p.Level == 4 { // tasks after the fault may have been answered before
			if err := samePartial(p.Partial, sums[0]); err != nil {
				t.Error(err)
			}
			break
		}
	}
	if n := counter(w.metrics.BlobsCorrupt); n != 1 {
		t.Errorf("%v corrupt files", n)
	}
}

// When NATS comes back, the worker says at once what it holds, and works on.
func TestNATSRestarts(t *testing.T) {
	d := importData(t, dense())
	c := newCluster(t)
	c.add(d)
	l := c.lead("a", 5)
	w := c.start(Config{})
	l.to(w, &protocol.Hold{Epoch: 5, Shards: d.manifest.Shards})
	all := func(b protocol.Heartbeat) bool { return len(b.Holds) == len(d.manifest.Shards) }
	l.beat(w, "all shards", all)
	o := serverOptions
	o.ClientPort = c.server.ClientPort()
	c.server.Close()
	c.server = natstest.Server(t, o)
	c.conn = c.dial()
	l = c.lead("a", 5)
	l.beat(w, "all shards again", all)
	j := newTestJob(t, d, 7, nil)
	trainer := must[pipeline.Finisher](t)(pipeline.New(j, d.manifest, nil))
	e := l.executor(41, j, d, w)
	if err := engine.Drive(t.Context(), trainer, 0, e, func(uint64, round.Trainer) error { return nil }); err != nil {
		t.Fatal(err)
	}
	sameOutcome(t, trainer, j, d)
}
