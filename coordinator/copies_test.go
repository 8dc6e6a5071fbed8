package coordinator

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/protocol"
)

// keyed is the digest that stands for a name.
func keyed(name string) digests.Digest { return sha256.Sum256([]byte(name)) }

// Blobs that are missing for some time are told. Until a coordinator has been whole each counts at once.
func TestShortageText(t *testing.T) {
	for _, test := range []struct {
		short replica.Shortage
		whole bool
		want  string
	}{
		{replica.Shortage{}, false, ""},
		{replica.Shortage{Count: 1, Oldest: missingGrace / 2}, true, ""},
		{replica.Shortage{Count: 1, Oldest: missingGrace / 2}, false,
			"1 blob has been missing for 0 s; they are being fetched from other coordinators"},
		{replica.Shortage{Count: 12, Oldest: 3*time.Second + 900*time.Millisecond}, true,
			"12 blobs have been missing for 3 s; they are being fetched from other coordinators"},
		{replica.Shortage{Count: 12, Lost: 12, Oldest: time.Minute}, true,
			"12 blobs have been missing for 60 s; no coordinator has the missing blobs"},
		{replica.Shortage{Count: 12, Lost: 2, Oldest: time.Minute}, true,
			"12 blobs have been missing for 60 s; they are being fetched from other coordinators, but no coordinator has 2 of " +
				"them"},
		{replica.Shortage{Count: 12, Folder: errors.New("the folder does not exist")}, true,
			"the folder of blobs cannot be read: the folder does not exist"},
	} {
		if got := shortageText(&test.short, test.whole); got != test.want {
			t.Errorf("%+v, whole %v: %q, want %q", test.short, test.whole, got, test.want)
		}
	}
}

// What refers to lost blobs is named, with what helps.
func TestOwners(t *testing.T) {
	s := state.New()
	lost := make(digests.Set)
	for i, name := range []string{"one", "two", "three", "four", "five", "whole"} {
		shards := []dataset.ShardRef{{Digest: keyed(name + "a").String(), Rows: 2, Bytes: 8},
			{Digest: keyed(name + "b").String(), Rows: 2, Bytes: 8}}
		m := &dataset.Manifest{Format: dataset.ManifestFormat, Rows: 4, Features: 2, Labels: 2, Shards: shards}
		next, result := s.Apply(uint64(i+1), protocol.EncodeEntry(protocol.EntryDatasetPut,
			&protocol.DatasetPutEntry{Name: name, Manifest: m}))
		if result.Err != nil {
			t.Fatal(result.Err)
		}
		s = next
		if name != "whole" {
			lost.Add(shards[0].Digest)
		}
		if name == "one" {
			lost.Add(shards[1].Digest)
		}
	}
	got := owners(s, lost)
	for _, part := range []string{"dataset one (2 blobs, such as ", "dataset three (blob " + keyed("threea").
		String()[:12] + "; import it again)", " and 1 more"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q lacks %q", got, part)
		}
	}
	if strings.Contains(got, "whole") {
		t.Errorf("%q names a dataset that is whole", got)
	}
}

// grown is a state that refers to one blob.
type grown struct {
	index uint64
	refs  digests.Set
}

func (g *grown) Index() uint64           { return g.index }
func (g *grown) References() digests.Set { return g.refs }

// A coordinator that has just begun is not ready before its state is as recent as the leader's and it has all blobs,
// however short they have been missing. Then a blob may be on its way.
func TestACoordinatorIsNotReadyBeforeItIsWhole(t *testing.T) {
	folder, err := blobs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	content := []byte("a blob")
	var now atomic.Pointer[grown]
	now.Store(&grown{index: 1})
	c := &copies{log: slog.New(slog.DiscardHandler)}
	c.Fetcher = replica.NewFetcher(&replica.Blobs{Folder: folder}, func() replica.Referrer { return now.Load() }, nil)
	var target atomic.Uint64 // 0: no leader can be asked
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked, told atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.becomeComplete(ctx, func(context.Context) (uint64, bool) {
			asked.Add(1)
			index := target.Load()
			if index > 0 {
				told.Add(1)
			}
			return index, index > 0
		})
	}()
	testkit.Until(t, "two questions to the leader", func() bool {
		if c.notReady() == nil {
			t.Fatal("ready though no leader could be asked")
		}
		return asked.Load() >= 2
	})
	target.Store(2)
	testkit.Until(t, "the leader's answer", func() bool { return told.Load() == 1 })
	if c.notReady() == nil {
		t.Fatal("ready with a state that is older than the leader's")
	}
	refs := make(digests.Set)
	refs.Add(blobs.Sum(content))
	now.Store(&grown{index: 2, refs: refs})
	testkit.Until(t, "the blob to be missed", func() bool {
		err := c.notReady()
		if err == nil {
			t.Fatal("ready without a blob")
		}
		return strings.Contains(err.Error(), "1 blob has been missing for 0 s")
	})
	if _, err := folder.Put(content); err != nil {
		t.Fatal(err)
	}
	<-done
	if err := c.notReady(); err != nil {
		t.Error(err)
	}
	refs = make(digests.Set)
	refs.Add(blobs.Sum([]byte("another")))
	now.Store(&grown{index: 3, refs: refs})
	if s := c.Look(); s.Count != 1 || s.Oldest < missingGrace && c.notReady() != nil {
		t.Errorf("%+v: not ready for a blob on its way: %v", s, c.notReady())
	}
	testkit.Until(t, "the blob to count as missing", func() bool { return c.notReady() != nil })
	if s := c.Shortage(); s.Oldest < missingGrace {
		t.Errorf("not ready after %v", s.Oldest)
	}
}

// A coordinator becomes complete while each state refers to a blob that is still on its way: such blobs come all the
// time while an experiment runs.
func TestBlobsOnTheirWayDoNotKeepACoordinatorFromBeingWhole(t *testing.T) {
	folder, err := blobs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	content := []byte("a blob")
	var index atomic.Uint64
	c := &copies{log: slog.New(slog.DiscardHandler)}
	c.Fetcher = replica.NewFetcher(&replica.Blobs{Folder: folder}, func() replica.Referrer {
		g := &grown{index: index.Add(1), refs: make(digests.Set)}
		g.refs.Add(blobs.Sum(content))
		for _, i := range []uint64{g.index - 1, g.index} {
			g.refs.Add(blobs.Sum(fmt.Append(nil, i)))
		}
		if _, err := folder.Put(fmt.Append(nil, g.index-1)); err != nil { // it arrives while the next one is recorded
			t.Error(err)
		}
		return g
	}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.becomeComplete(ctx, func(context.Context) (uint64, bool) { return 1, true })
	}()
	testkit.Until(t, "some looks", func() bool { return index.Load() > 5 })
	if c.complete.Load() {
		t.Fatal("complete without a blob of the first state")
	}
	if _, err := folder.Put(content); err != nil {
		t.Fatal(err)
	}
	<-done
	if !c.complete.Load() {
		t.Error("not complete, because of blobs of later states")
	}
}

// A coordinator that waits for blobs of a state waits for the blobs that take their place, if the state does not refer
// to them any longer: the results of a job that has ended take the place of the results of its runs.
func TestBlobsThatReplaceOthersAreWaitedFor(t *testing.T) {
	folder, err := blobs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	outcomes := []byte("the outcomes of all runs")
	var index atomic.Uint64
	c := &copies{log: slog.New(slog.DiscardHandler)}
	c.Fetcher = replica.NewFetcher(&replica.Blobs{Folder: folder}, func() replica.Referrer {
		g := &grown{index: index.Add(1), refs: make(digests.Set)}
		if g.index <= 3 {
			g.refs.Add(blobs.Sum([]byte("the outcome of a run")))
		} else {
			g.refs.Add(blobs.Sum(outcomes))
		}
		return g
	}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.becomeComplete(ctx, func(context.Context) (uint64, bool) { return 1, true })
	}()
	testkit.Until(t, "some looks", func() bool { return index.Load() > 6 || c.complete.Load() })
	if c.complete.Load() {
		t.Error("complete without the outcomes of the job")
	}
	if _, err := folder.Put(outcomes); err != nil {
		t.Fatal(err)
	}
	<-done
	if !c.complete.Load() {
		t.Error("not complete with all blobs")
	}
}
