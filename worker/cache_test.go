package worker

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/worker/batch"
)

// testCache is a cache that fetches from an imported dataset.
func testCache(t testing.TB, d *data, limit int64) *cache {
	t.Helper()
	return must[*cache](t)(openCache(cacheOptions{
		dir: t.TempDir(), limit: limit, changed: func() {}, log: testLog(t),
		metrics: metrics.NewWorker(prometheus.NewRegistry()),
		fetch: func(_ context.Context, digest string, _ int64, w io.Writer) error {
			b, err := os.ReadFile(filepath.Join(d.dir, digest))
			if err == nil {
				_, err = w.Write(b)
			}
			return err
		},
	}))
}

// Beyond the limit the shard that was unused for longest goes, never one in use;
// a standby never pushes out another, but work does.
func TestEviction(t *testing.T) {
	d := importData(t, dense())
	s := d.manifest.Shards
	size := s[0].Bytes
	for _, ref := range s {
		size = max(size, ref.Bytes)
	}
	c := testCache(t, d, 3*size)
	ctx := t.Context()
	holds := func(want ...int) {
		t.Helper()
		var digests []string
		for _, i := range want {
			digests = append(digests, s[i].Digest)
		}
		slices.Sort(digests)
		if got, _ := c.holdings(); !slices.Equal(got, digests) {
			t.Fatalf("the cache holds %.6s; %.6s were due", got, digests)
		}
	}
	used := must[*shard](t)(c.acquire(ctx, s[0]))
	for _, i := range []int{1, 2} {
		c.release(must[*shard](t)(c.acquire(ctx, s[i])))
	}
	holds(0, 1, 2)
	c.release(must[*shard](t)(c.acquire(ctx, s[1]))) // newer than 2
	if err := c.hold(ctx, s[3]); err != nil {
		t.Fatal(err)
	}
	holds(0, 1, 3)
	if err := c.hold(ctx, s[4]); err != nil {
		t.Fatal(err)
	}
	holds(0, 3, 4)
	if err := c.hold(ctx, s[5]); !errors.Is(err, errNoRoom) {
		t.Fatalf("a standby in a full cache: %v", err)
	}
	holds(0, 3, 4)
	also := must[*shard](t)(c.acquire(ctx, s[5]))
	holds(0, 4, 5)
	third := must[*shard](t)(c.acquire(ctx, s[6]))
	fourth := must[*shard](t)(c.acquire(ctx, s[7])) // all are in use: the limit gives way
	holds(0, 5, 6, 7)
	if used.rows.Row[0] != d.local.Shards[0].Row[0] || fourth.rows.N != s[7].Rows {
		t.Error("shards were mixed up")
	}
	for _, x := range []*shard{used, also, third, fourth} {
		c.release(x)
	}
	c.clearWanted()
	if err := c.hold(ctx, s[8]); err != nil {
		t.Fatal(err)
	}
	holds(6, 7, 8)
}

// Many who want the same shard get one mapping from one fetch, and the last one
// unmaps it.
func TestSharedShard(t *testing.T) {
	d := importData(t, dense())
	c := testCache(t, d, 1<<30)
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for n := range 40 {
				ref := d.manifest.Shards[(i+n)%3]
				x, err := c.acquire(t.Context(), ref)
				if err != nil {
					t.Error(err)
					return
				}
				if x.rows.N != ref.Rows {
					t.Errorf("%d rows where %d are due", x.rows.N, ref.Rows)
				}
				c.release(x)
			}
		})
	}
	wait.Wait()
	if n := counter(c.metrics.BlobsFetched); n != 3 {
		t.Errorf("%v fetches of three shards", n)
	}
	for _, e := range c.entries {
		if e.open != nil || e.busy != nil {
			t.Errorf("shard %s is open or busy", e.digest)
		}
	}
}

// A shard whose bytes are what the digest says and yet no shard fails for good;
// one that cannot be fetched, for now.
func TestBadShards(t *testing.T) {
	d := importData(t, dense())
	c := testCache(t, d, 1<<30)
	junk := []byte("no shard at all, but with a digest of its own")
	digest := must[string](t)(c.folder.Put(junk))
	c.entries[digest] = &entry{digest: digest, bytes: int64(len(junk)), present: true}
	for _, x := range []struct {
		ref       dataset.ShardRef
		permanent bool
	}{
		{dataset.ShardRef{Digest: digest, Bytes: int64(len(junk))}, true},
		{dataset.ShardRef{Digest: "../../etc/passwd"}, true},
		{dataset.ShardRef{Digest: fmt.Sprintf("%064d", 1), Bytes: 5}, false},
	} {
		_, err := c.acquire(t.Context(), x.ref)
		if f := batch.FailureOf(err); err == nil || f.Permanent != x.permanent {
			t.Errorf("%s: got %v", x.ref.Digest, err)
		}
	}
}

// A connection that comes back makes the next heartbeat a full one, at once, and has the session checked: it may be at
// another server.
func TestReconnectBeats(t *testing.T) {
	m := metrics.NewWorker(prometheus.NewRegistry())
	x := &sessions{Traffic: &m.Traffic, heartbeat: &heartbeat{kick: make(chan struct{}, 1)}, news: make(chan struct{}, 1)}
	x.Reconnected()
	x.Reconnected()
	if len(x.heartbeat.kick) != 1 || len(x.news) != 1 || counter(m.NATSReconnects) != 2 {
		t.Errorf("%d kicks, %v reconnects counted", len(x.heartbeat.kick), counter(m.NATSReconnects))
	}
}

// A file that changes after it was found right, while nobody has it open, and shows
// it, is read again when the next job opens it, found wrong and fetched: no job
// fails for it.
func TestShardChanged(t *testing.T) {
	for name, change := range map[string]func(file []byte, rows []uint32) []byte{
		"cut short":               func(b []byte, _ []uint32) []byte { return b[:len(b)/2] },
		"rows beyond the dataset": beyond,
		"another value":           func(b []byte, _ []uint32) []byte { b[len(b)-9] ^= 1; return b },
	} {
		t.Run(name, func(t *testing.T) {
			d := importData(t, dense())
			c := newCluster(t)
			c.add(d)
			l := c.lead("a", 5)
			w := c.start(Config{Slots: 1})
			j := newTestJob(t, d, 7, param.Values{"scaling": "standard"})
			list, sums := rounds(t, d, j, 1)
			l.setup(w, 40, j, d.manifest)
			l.to(w, l.message(40, 0, list[0], allTasks(list[0].Tasks)))
			receive(t, "a part", l.parts)
			l.to(w, &protocol.Forget{Epoch: 5, Job: 40})
			ref := d.manifest.Shards[0]
			eventually(t, "a closed file", func() bool {
				w.cache.mu.Lock()
				defer w.cache.mu.Unlock()
				return w.cache.entries[ref.Digest].open == nil
			})
			path := must[string](t)(w.cache.folder.Path(ref.Digest))
			b := must[[]byte](t)(os.ReadFile(path))
			if err := os.WriteFile(path, change(b, d.local.Shards[0].Row), 0o644); err != nil {
				t.Fatal(err)
			}
			l.setup(w, 41, j, d.manifest)
			l.to(w, l.message(41, 0, list[0], allTasks(list[0].Tasks)))
			select {
			case p := <-l.parts:
				if err := samePartial(p.Partial, sums[0]); err != nil {
					t.Error(err)
				}
			case f := <-l.fails:
				t.Errorf("failed: %+v", f)
			case <-time.After(timeout):
				t.Fatal("no answer")
			}
			if n := counter(w.metrics.BlobsCorrupt); n != 1 {
				t.Errorf("%v corrupt files", n)
			}
		})
	}
}

// beyond makes the first row number of an encoded shard a great one.
func beyond(b []byte, rows []uint32) []byte {
	var first []byte
	for _, row := range rows[:4] {
		first = binary.LittleEndian.AppendUint32(first, row)
	}
	b[bytes.Index(b, first)+3] = 0x7f
	return b
}
