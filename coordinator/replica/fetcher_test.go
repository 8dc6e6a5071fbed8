package replica

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// What the state refers to and the folder lacks is fetched, also where the folder is removed meanwhile.
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
	if err := os.RemoveAll(members[0].Folder.Dir()); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the folder to be missed", func() bool { return !whole() })
	testkit.Until(t, "all blobs again", whole)
	if _, err := os.Stat(members[0].Folder.Dir()); errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A blob that each other coordinator says it lacks is lost. One that a silent coordinator may have is not; it is
// unavailable. Who asks any of the coordinators for it is told so at once, and when it is back it is fetched.
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
		if _, err := pull(t, members[1].Conn, subjects.Blobs(), digest); !errors.Is(err, bus.ErrNoBlob) {
			t.Errorf("a worker that asks: %v", err)
		}
		if took := time.Since(began); took > 5*time.Second { // five tries take 23 s
			t.Errorf("a worker was told after %v", took)
		}
	})
	members[2].down()
	testkit.Until(t, "the blob not to be lost: c may have it", func() bool { s := f.Shortage(); return s.Count == 1 && s.Lost == 0 })
	if !f.Unavailable(digest) {
		t.Error("it is available though nobody who answers has it")
	}
	if _, err := members[2].Folder.Put(data); err != nil {
		t.Fatal(err)
	}
	members[2].serve(t)
	testkit.Until(t, "the blob", func() bool { return f.Look().Count == 0 })
}

// A blob that another coordinator had this one fetch is not fetched a second time.
func TestFetcherLeavesABlobThatIsOnItsWay(t *testing.T) {
	members := cluster(t, 2)
	f := fetcherOf(t, members[0])
	digest, err := members[1].Folder.Put(bytesOf(100, 1))
	if err != nil {
		t.Fatal(err)
	}
	ended := members[0].arrive(digest)
	f.refer(digest)
	testkit.Until(t, "some tries", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		a := f.gap.of[mustParse(t, digest)]
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
