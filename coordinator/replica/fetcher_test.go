package replica

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// referred is a state that refers to blobs.
type referred struct {
	index uint64
	refs  digests.Set
}

func (r *referred) Index() uint64           { return r.index }
func (r *referred) References() digests.Set { return r.refs }

// fetching is a member's fetcher, which runs until the test ends.
type fetching struct {
	*Fetcher
	state atomic.Pointer[referred]
}

func fetcherOf(t *testing.T, m *member) *fetching {
	t.Helper()
	f := &fetching{}
	f.state.Store(&referred{index: 1, refs: make(digests.Set)})
	f.Fetcher = NewFetcher(m.Blobs, func() Referrer { return f.state.Load() }, m.Folder.Remake)
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { f.Run(ctx) })
	t.Cleanup(func() { cancel(); run.Wait() })
	return f
}

// refer makes the state refer to blobs, and looks.
func (f *fetching) refer(all ...string) Shortage {
	next := &referred{index: f.state.Load().index + 1, refs: make(digests.Set)}
	for _, d := range all {
		next.refs.Add(d)
	}
	f.state.Store(next)
	return f.Look()
}

// TestFetcher checks that the blobs that the state refers to and the folder lacks are fetched, even if the folder is
// removed meanwhile.
func TestFetcher(t *testing.T) {
	members := cluster(t, 3)
	f := fetcherOf(t, members[0])
	var all []string
	for i := range 20 {
		digest, err := members[1+i%2].Folder.Put(bytesOf(1000+i, byte(i)))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, digest)
	}
	if s := f.refer(all...); s.Count != len(all) || s.Index != 2 {
		t.Errorf("%+v after the state referred to %d blobs that are not here", s, len(all))
	}
	whole := func() bool {
		s := f.Look()
		return s.Count == 0 && s.Oldest == 0 && s.Folder == nil
	}
	testkit.Until(t, "all blobs", whole)
	for _, d := range all {
		if err := members[0].Folder.Verify(d); err != nil {
			t.Error(err)
		}
	}
	if err := testkit.RemoveInUse(members[0].Folder.Dir()); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the folder to be missed", func() bool { return !whole() })
	testkit.Until(t, "all blobs again", whole)
	if _, err := os.Stat(members[0].Folder.Dir()); errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestFetcherOfALostBlob checks that a blob is lost if each other coordinator says that it lacks it. If a silent
// coordinator may have it, it is unavailable. Each coordinator says so at once, and fetches the blob when it is back.
func TestFetcherOfALostBlob(t *testing.T) {
	members := cluster(t, 3)
	f := fetcherOf(t, members[0])
	data := bytesOf(1000, 1)
	digest := blobs.Sum(data)
	f.refer(digest)
	testkit.Until(t, "the blob to be lost", func() bool { return f.Shortage().Lost == 1 && f.Unavailable(digest) })
	if !f.Lost().Has(digest) || f.Unavailable(blobs.Sum(nil)) {
		t.Errorf("lost: %v; another is unavailable: %v", f.Lost(), f.Unavailable(blobs.Sum(nil)))
	}
	f2, f3 := fetcherOf(t, members[1]), fetcherOf(t, members[2])
	f2.refer(digest)
	f3.refer(digest)
	testkit.Until(t, "all to know", func() bool { return f2.Unavailable(digest) && f3.Unavailable(digest) })
	soon(t, "the answer to a worker", func() {
		began := time.Now()
		if _, err := pull(t, members[1].Conn, subjects.Fetch("w1"), digest); !errors.Is(err, bus.ErrNoBlob) {
			t.Errorf("a worker that asks: %v", err)
		}
		if took := time.Since(began); took > 20*time.Second { // five tries take 23 s
			t.Errorf("a worker was told after %v", took)
		}
	})
	members[2].down()
	testkit.Until(t, "the blob not to be lost: c may have it", func() bool {
		s := f.Shortage()
		return s.Count == 1 && s.Lost == 0
	})
	if !f.Unavailable(digest) {
		t.Error("it is available though nobody who answers has it")
	}
	if _, err := members[2].Folder.Put(data); err != nil {
		t.Fatal(err)
	}
	members[2].serve(t)
	testkit.Until(t, "the blob", func() bool { return f.Look().Count == 0 })
}

// TestFetcherLeavesABlobThatIsOnItsWay checks that a blob is not fetched twice if another coordinator had this one
// fetch it.
func TestFetcherLeavesABlobThatIsOnItsWay(t *testing.T) {
	members := cluster(t, 2)
	f := fetcherOf(t, members[0])
	digest, err := members[1].Folder.Put(bytesOf(100, 1))
	if err != nil {
		t.Fatal(err)
	}
	ended := members[0].arriving.begin(digest)
	f.refer(digest)
	testkit.Until(t, "some tries", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		a := f.queue.missing[mustParse(t, digest)]
		return a != nil && time.Since(a.since) > 3*firstRetry
	})
	if members[0].Folder.Has(digest) {
		t.Error("it was fetched though it is on its way")
	}
	ended()
	testkit.Until(t, "the blob", func() bool { return f.Look().Count == 0 })
}

func mustParse(t *testing.T, text string) digests.Digest {
	t.Helper()
	d, ok := digests.Parse(text)
	if !ok {
		t.Fatalf("%q is no digest", text)
	}
	return d
}

func numbered(i int) (d digests.Digest) {
	d[0], d[1] = byte(i), byte(i>>8)
	return d
}

const modelBlobs = 6

// queueModel is a queue and what it should do.
type queueModel struct {
	q        fetchQueue
	now      time.Time
	missing  map[int]bool
	fails    map[int]int
	failed   map[int]time.Time
	fetching map[digests.Digest]int
	back     bool // one came at another try: pauses are over
}

// look has a blob come by itself, or be missing.
func (m *queueModel) look(t *rapid.T) {
	i := rapid.IntRange(0, modelBlobs-1).Draw(t, "blob")
	if _, busy := m.fetching[numbered(i)]; !busy {
		if m.missing[i] = !m.missing[i]; !m.missing[i] {
			delete(m.missing, i)
		}
		delete(m.fails, i)
		delete(m.failed, i)
	}
	var all []digests.Digest
	for i := range modelBlobs {
		if m.missing[i] {
			all = append(all, numbered(i))
		}
	}
	m.q.update(all, m.now)
}

// fetch begins a fetch.
func (m *queueModel) fetch(t *rapid.T) {
	d, wait, ok := m.q.next(m.now)
	if !ok {
		untried := 0
		for i := range m.missing {
			if _, busy := m.fetching[numbered(i)]; !busy && m.fails[i] == 0 {
				untried++
			}
		}
		if untried > 0 || wait < 0 || wait > lastRetry || wait == 0 && len(m.missing) > len(m.fetching) {
			t.Fatalf("nothing to fetch for %v, %d untried, %d missing, %d being fetched", wait, untried, len(m.missing),
				len(m.fetching))
		}
		return
	}
	i := int(d[0])
	if _, busy := m.fetching[d]; busy || !m.missing[i] {
		t.Fatalf("%d is fetched; missing: %v, being fetched: %v", i, m.missing[i], busy)
	}
	if n := m.fails[i]; n > 0 && !m.back && m.now.Sub(m.failed[i]) < min(lastRetry, firstRetry<<(n-1)) {
		t.Fatalf("%d is tried again %v after try %d", i, m.now.Sub(m.failed[i]), n)
	}
	m.fetching[d] = i
}

// end ends the first fetch, if there is one.
func (m *queueModel) end(t *rapid.T) {
	if len(m.fetching) == 0 {
		return
	}
	i := slices.Min(slices.Collect(maps.Values(m.fetching)))
	d := numbered(i)
	delete(m.fetching, d)
	if rapid.Bool().Draw(t, "it comes") {
		m.back = m.back || m.fails[i] > 0
		m.q.done(d)
		delete(m.missing, i)
		delete(m.fails, i)
		delete(m.failed, i)
		return
	}
	lost := rapid.Bool().Draw(t, "lost")
	m.q.failed(d, lost, m.now)
	m.fails[i], m.failed[i] = m.fails[i]+1, m.now
	if m.q.missing[d].lost != lost {
		t.Fatal("that it is lost is forgotten")
	}
}

// TestQueue checks that each missing blob is tried at once and again with pauses, but never twice at a time, and is
// forgotten when it is here. A retry that succeeds has all others tried at once.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &queueModel{
			now: time.Unix(1e9, 0), missing: make(map[int]bool), fails: make(map[int]int), failed: make(map[int]time.Time),
			fetching: make(map[digests.Digest]int),
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if len(m.q.missing) != len(m.missing) {
					t.Fatalf("%d are missing, want %d", len(m.q.missing), len(m.missing))
				}
			},
			"look": m.look, "fetch": m.fetch, "end": m.end,
			"time passes": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.Int64Range(1, int64(lastRetry)).Draw(t, "for")))
			},
		})
	})
}

// TestQueueWithVeryManyBlobs checks that very many blobs that nobody has are each tried at once, and that only one is
// tried again in each retryPace.
func TestQueueWithVeryManyBlobs(t *testing.T) {
	const blobs = 20_000
	var q fetchQueue
	var all []digests.Digest
	for i := range blobs {
		all = append(all, numbered(i))
	}
	now := time.Unix(1e9, 0)
	q.update(all, now)
	for range blobs {
		d, _, ok := q.next(now)
		if !ok {
			t.Fatal("one is not tried at once")
		}
		q.failed(d, true, now)
	}
	tries := 0
	for end := now.Add(10 * time.Second); now.Before(end); {
		d, wait, ok := q.next(now)
		if ok {
			tries++
			q.failed(d, true, now)
			continue
		}
		now = now.Add(max(wait, time.Millisecond))
	}
	if most := int(10*time.Second/retryPace) + 1; tries > most || tries < most/2 {
		t.Errorf("%d tries in 10 s, want about %d", tries, most)
	}
	d, _, ok := q.next(now.Add(time.Minute))
	if !ok {
		t.Fatal("none is tried again")
	}
	q.done(d)
	for range blobs - 1 {
		if _, _, ok := q.next(now); !ok {
			t.Fatal("somebody is back, and not all are tried at once")
		}
	}
}

// TestALostBlobIsToldFromAnAbsentHolder checks that a blob is lost only if all coordinators say that they lack it,
// since an absent coordinator may have it. Either is said at once.
func TestALostBlobIsToldFromAnAbsentHolder(t *testing.T) {
	members := cluster(t, 3)
	digest := blobs.Sum([]byte("nowhere"))
	if _, err := members[0].Get(testkit.Context(t), digest); !errors.Is(err, blobs.ErrMissing) ||
		errors.Is(err, bus.ErrNoBlob) {
		t.Errorf("a blob that nobody has: %v", err)
	}
	members[2].stop()
	soon(t, "the answer", func() {
		if _, err := members[0].Get(testkit.Context(t), digest); !errors.Is(err, bus.ErrNoBlob) ||
			errors.Is(err, blobs.ErrMissing) {
			t.Errorf("a blob that one who is away may have: %v", err)
		}
	})
}

// unreadable makes reading a blob's file here an error of the disk.
func unreadable(t *testing.T, m *member, digest string) {
	t.Helper()
	const memory = "/proc/self/mem" // its first page is nobody's
	if _, err := os.ReadFile(memory); !errors.Is(err, syscall.EIO) {
		t.Skip("no file here has an error of the disk")
	}
	path, err := m.Folder.Path(digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), os.Symlink(memory, path)); err != nil {
		t.Fatal(err)
	}
}

// TestAnUnreadableBlobIsNotLost checks that a blob that cannot be read now is not lost: it comes from another
// coordinator. If no other has it, the error is the error of the disk.
func TestAnUnreadableBlobIsNotLost(t *testing.T) {
	members := cluster(t, 3)
	data := bytesOf(1000, 7)
	digest, err := members[0].Folder.Put(data)
	if err != nil {
		t.Fatal(err)
	}
	unreadable(t, members[0], digest)
	if _, err := members[0].Get(testkit.Context(t), digest); !errors.Is(err, syscall.EIO) ||
		errors.Is(err, blobs.ErrMissing) {
		t.Errorf("only here, and unreadable: %v", err)
	}
	path, _ := members[0].Folder.Path(digest)
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil { // a file with a size that cannot be read
		t.Fatal(err)
	}
	if _, err := members[1].Get(testkit.Context(t), digest); errors.Is(err, blobs.ErrMissing) ||
		!errors.Is(err, bus.ErrUnreadable) {
		t.Errorf("asked by another, which has none: %v", err)
	}
	if err := errors.Join(os.Remove(path), os.WriteFile(path, data, 0o600)); err != nil {
		t.Fatal(err)
	}
	unreadable(t, members[0], digest)
	if _, err := members[2].Folder.Put(data); err != nil {
		t.Fatal(err)
	}
	if got, err := members[0].Get(testkit.Context(t), digest); err != nil || string(got) != string(data) {
		t.Errorf("another has it: %d bytes, %v", len(got), err)
	}
	if got, err := members[0].Folder.Get(digest); err != nil || len(got) != len(data) {
		t.Errorf("the copy here is whole again: %d bytes, %v", len(got), err)
	}
}
