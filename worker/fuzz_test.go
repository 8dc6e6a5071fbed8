package worker

import (
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coppice-ldl/coppice/worker/batch"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// orderSlack is what taking an order allocates beside what follows its size: the
// partials of a lawful round, and what other goroutines of the worker do.
const orderSlack = 256 << 20

// FuzzOrders hands a worker with a job what comes on its subjects, by this leader
// and for this job. It neither dies nor hangs: each time it comes to rest.
func FuzzOrders(f *testing.F) {
	d := importData(f, dense())
	c := newCluster(f)
	c.add(d)
	ready := make(chan Info, 1)
	w := runWorker(f, Config{
		Join: []string{c.http.Listener.Addr().String()}, Dir: f.TempDir(), Slots: 1,
		Log: slog.New(slog.DiscardHandler), Ready: func(i Info) { ready <- i },
	}, ready)
	j := newTestJob(f, d, 7, nil)
	for _, m := range honest(f, 5, 40, d, j) {
		f.Add(m, false)
	}
	f.Add((&protocol.Lead{Epoch: 5, Coordinator: "a", Refused: map[string]string{w.id: "why"}}).Append(nil), true)
	setup := &protocol.Setup{Epoch: 5, ID: 40, Job: j, Manifest: d.manifest}
	o := w.orders
	reply := c.subjects.Results("nobody", 5)
	f.Fuzz(func(t *testing.T, b []byte, lead bool) {
		if tooMuch(b) {
			return
		}
		w.jobs.step(&batch.Reset{}) // an earlier leader, whatever was said since
		w.jobs.step(&batch.Setup{Setup: setup})
		allocs.AtMost(t, 64*len(b)+orderSlack, "an order", func() {
			if lead {
				w.lead(bus.Message{Subject: "lead", Data: b})
			} else {
				o.handle(bus.Message{Subject: "work", Reply: reply, Data: b})
			}
		})
		w.stopFetching(t)
		w.rest(t, c)
	})
}

// tooMuch reports an order that is lawful and would take long: large partials, many
// tasks, long windows.
func tooMuch(b []byte) bool {
	var run protocol.Run
	var setup protocol.Setup
	switch {
	case run.Decode(b) == nil:
		return run.Shape.F64+run.Shape.F32 > 1<<16 || run.Of > 1<<10 || run.SubJob || run.Steps[1]-run.Steps[0] > 100 &&
			run.Steps[1]-run.Steps[0] < 1<<20
	case setup.Decode(b) == nil:
		return setup.Manifest != nil && setup.Manifest.Rows > 1<<20 || setup.ID == 40
	}
	return false
}

// stopFetching forgets jobs other than 40, whose shards nobody has.
func (r *running) stopFetching(t *testing.T) {
	t.Helper()
	r.jobs.mu.Lock()
	ids := slices.Collect(maps.Keys(r.jobs.machine.Jobs()))
	r.jobs.mu.Unlock()
	for _, id := range ids {
		if id != 40 {
			r.jobs.step(&batch.Forget{Forget: &protocol.Forget{Epoch: r.jobs.epoch(), Job: id}})
		}
	}
}

// FuzzClusterAnswer: what a coordinator says of its cluster is taken or refused; a
// worker only joins by an answer that names a cluster, NATS and a heartbeat.
func FuzzClusterAnswer(f *testing.F) {
	var body atomic.Pointer[[]byte]
	c := newCluster(f)
	c.http.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(*body.Load()) })
	j := newCoordinators(&Config{Join: []string{c.http.Listener.Addr().String()}, Log: slog.New(slog.DiscardHandler)})
	f.Cleanup(j.close)
	f.Add(
		[]byte(
			`{"id":"x","protocol":2,"numerics":1,"nats":["nats://h:1"],"heartbeat_ms":250,"coordinators":[{"http":"h:2"}]}`))
	f.Add([]byte(`{"id":"a b","protocol":2,"numerics":1,"nats":[""],"heartbeat_ms":-1}`))
	f.Add([]byte(`{"protocol":2}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, b []byte) {
		body.Store(&b)
		var answer *protocol.Cluster
		var err error
		allocs.AtMost(t, 128*len(b)+1<<20, "an answer", func() { answer, err = j.askOne(t.Context(), j.addresses[0], "") })
		if err == nil && (answer.ID == "" || len(answer.NATS) == 0 || answer.Heartbeat <= 0 ||
			answer.Protocol != protocol.Version) {
			t.Fatalf("joined by %s", b)
		}
	})
}

// FuzzFolder opens a folder whose small files say whatever: it is refused as not a
// worker's, or the worker has a lawful name.
func FuzzFolder(f *testing.F) {
	f.Add([]byte(format), []byte("w123\n"), true)
	f.Add([]byte("coppice worker 2\n"), []byte{}, true)
	f.Add([]byte(format), []byte("a b\n"), true)
	f.Add([]byte{}, []byte("w"), false)
	dir := filepath.Join(f.TempDir(), "w")
	f.Fuzz(func(t *testing.T, formatFile, id []byte, withID bool) {
		if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "FORMAT"), formatFile,
			0o600)); err != nil {
			t.Fatal(err)
		}
		if withID {
			if err := os.WriteFile(filepath.Join(dir, "ID"), id, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		allocs.AtMost(t, 16*(len(formatFile)+len(id))+256<<10, "a folder", func() {
			folder, err := openFolder(dir, slog.New(slog.DiscardHandler))
			if err != nil {
				if !errors.Is(err, ErrFolder) {
					t.Fatalf("error %v", err)
				}
				return
			}
			defer folder.close()
			name, err := folder.id("", "", everyName)
			if err != nil && !errors.Is(err, ErrFolder) || err == nil && protocol.CheckID(name) != nil {
				t.Fatalf("name %q, error %v", name, err)
			}
		})
	})
}

// FuzzCacheFile finds a file in the cache that has its digest and is no shard, or
// not the one that a manifest says: it is refused for good, and the cache goes on.
func FuzzCacheFile(f *testing.F) {
	d := importData(f, dense())
	good, err := os.ReadFile(filepath.Join(d.dir, d.manifest.Shards[0].Digest))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte("COPSHARD"))
	f.Add([]byte{})
	c := testCache(f, d, 1<<30)
	c.log = slog.New(slog.DiscardHandler)
	f.Fuzz(func(t *testing.T, b []byte) {
		digest, err := c.folder.Put(b)
		if err != nil {
			t.Fatal(err)
		}
		c.mu.Lock()
		c.entries[digest] = &entry{digest: digest, bytes: int64(len(b)), present: true}
		c.total += int64(len(b))
		c.mu.Unlock()
		allocs.AtMost(t, 32*len(b)+256<<10, "a file of the cache", func() {
			s, err := c.acquire(t.Context(), dataset.ShardRef{Digest: digest, Bytes: int64(len(b))})
			if err != nil {
				if f := batch.FailureOf(err); !f.Permanent || !strings.Contains(err.Error(), digest[:12]) {
					t.Fatalf("error %v", err)
				}
				return
			}
			if err := d.manifest.CheckShard(0, s.rows); err == nil && digest != d.manifest.Shards[0].Digest {
				s.rows.Label(s.rows.N - 1)
			}
			c.release(s)
		})
		e, err := c.claim(t.Context(), dataset.ShardRef{Digest: digest})
		if err != nil {
			t.Fatal(err)
		}
		c.forget(e)
		c.unclaim(e)
	})
}
