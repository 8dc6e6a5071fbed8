package replica

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// Fetcher fetches the blobs that a coordinator must have and lacks, and knows which those are.
type Fetcher struct {
	blobs  *Blobs
	state  func() Referrer
	remake func() error
	work   chan struct{} // has an element for each fetch that should look for work

	looking sync.Mutex // one look at a time
	refs    digests.Set
	refsOf  uint64 // index of the state that refs are of
	losses  uint64 // Losses of the folder before the last look
	whole   bool   // true if nothing was missing then

	mu     sync.Mutex
	gap    gap
	index  uint64               // of the state of the last look
	folder error                // why the folder could not be listed at the last look
	quiet  map[string]time.Time // when a coordinator did not answer last
}

// Referrer refers to blobs; *state.State does.
type Referrer interface {
	Index() uint64
	References() digests.Set
}

// Shortage is what is known of missing blobs.
type Shortage struct {
	Index  uint64        // of the state that was looked at
	Count  int           // missing blobs
	Lost   int           // those of them that each other coordinator says it lacks
	Oldest time.Duration // for how long the first of them has been missing
	Folder error         // why the folder of blobs cannot be read
}

const (
	fetchesAtOnce = 4
	// lookAgain is the time between two looks, and lookRest how many times what the last look took it is at least.
	lookAgain = 500 * time.Millisecond
	lookRest  = 50
	// quietFor is for how long a coordinator that did not answer is not asked again.
	quietFor = 2 * time.Second
	// unavailableAfter is the age from which a missing blob that could not be fetched counts as unavailable: a process that
	// has just begun may not have reached the others yet.
	unavailableAfter = 2 * time.Second
)

// NewFetcher returns a fetcher for the blobs that the state refers to; Run makes it work. remake makes the folder of
// blobs again where somebody removed it.
func NewFetcher(b *Blobs, state func() Referrer, remake func() error) *Fetcher {
	f := &Fetcher{blobs: b, state: state, remake: remake, work: make(chan struct{}, fetchesAtOnce), quiet: make(map[string]time.Time)}
	b.fetcher.Store(f)
	return f
}

// Run looks for missing blobs and fetches them until ctx is done.
func (f *Fetcher) Run(ctx context.Context) {
	var fetching sync.WaitGroup
	defer fetching.Wait()
	for range fetchesAtOnce {
		fetching.Go(func() { f.fetchAll(ctx) })
	}
	for ctx.Err() == nil {
		began := time.Now()
		short := f.Look()
		if errors.Is(short.Folder, fs.ErrNotExist) {
			if err := f.remake(); err != nil {
				f.blobs.Log.Debug("the folder of blobs could not be created", "error", err)
			}
		}
		wait.For(ctx, max(lookAgain, lookRest*time.Since(began)))
	}
}

// Look finds out which blobs are missing now.
func (f *Fetcher) Look() Shortage {
	f.looking.Lock()
	defer f.looking.Unlock()
	s, losses := f.state(), f.blobs.Folder.Losses()
	same := f.refs != nil && s.Index() == f.refsOf
	if same && f.whole && losses == f.losses {
		return f.Shortage()
	}
	if !same {
		f.refs, f.refsOf = s.References(), s.Index()
	}
	missing, err := f.blobs.Folder.Lacking(f.refs)
	f.losses, f.whole = losses, len(missing) == 0 && err == nil
	now := time.Now()
	f.mu.Lock()
	f.gap.update(missing, now)
	f.index, f.folder = f.refsOf, err
	f.mu.Unlock()
	for range min(len(missing), fetchesAtOnce) {
		select {
		case f.work <- struct{}{}:
		default:
		}
	}
	return f.Shortage()
}

// Shortage returns what the last look found, without what came since.
func (f *Fetcher) Shortage() Shortage {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, now := Shortage{Index: f.index, Count: len(f.gap.of), Folder: f.folder}, time.Now()
	for _, a := range f.gap.of {
		s.Oldest = max(s.Oldest, now.Sub(a.since))
		if a.lost {
			s.Lost++
		}
	}
	return s
}

// Lost returns the missing blobs that each other coordinator says it lacks.
func (f *Fetcher) Lost() digests.Set {
	f.mu.Lock()
	defer f.mu.Unlock()
	lost := make(digests.Set)
	for d, a := range f.gap.of {
		if a.lost {
			lost[d] = struct{}{}
		}
	}
	return lost
}

// Unavailable reports whether a blob is missing here and could be fetched from no other coordinator: they lack it, or do
// not answer.
func (f *Fetcher) Unavailable(digest string) bool {
	d, ok := digests.Parse(digest)
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.gap.of[d]
	return ok && a != nil && a.fails > 0 && time.Since(a.since) >= unavailableAfter
}

// fetchAll fetches what is missing, one blob at a time, until ctx is done.
func (f *Fetcher) fetchAll(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		f.mu.Lock()
		d, wait, ok := f.gap.next(time.Now())
		f.mu.Unlock()
		switch {
		case ok:
			f.fetch(ctx, d)
			wait = 0
		case wait > 0:
			timer.Reset(wait)
		default:
			timer.Stop()
		}
		if ok && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-f.work:
		case <-timer.C:
		}
	}
}

// fetch fetches a blob from the first of the other coordinators that has it.
func (f *Fetcher) fetch(ctx context.Context, d digests.Digest) {
	digest := d.String()
	if f.blobs.arriving(digest) {
		f.mu.Lock()
		f.gap.later(d, time.Now())
		f.mu.Unlock()
		return
	}
	err := f.blobs.fetchFrom(ctx, digest, f.pull)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil:
		f.gap.came(d)
	case ctx.Err() == nil:
		f.gap.failed(d, errors.Is(err, blobs.ErrMissing), time.Now())
		f.blobs.Log.Debug("this coordinator lacks a blob and could not fetch it", "digest", digest, "error", err)
	}
}

// pull is Blobs.fetch, but for a coordinator that did not answer a moment ago.
func (f *Fetcher) pull(ctx context.Context, subject, digest string, size int64) error {
	f.mu.Lock()
	at, known := f.quiet[subject]
	f.mu.Unlock()
	if known && time.Since(at) < quietFor {
		return bus.ErrNoAnswer
	}
	err := f.blobs.fetch(ctx, subject, digest, size)
	f.mu.Lock()
	defer f.mu.Unlock()
	if errors.Is(err, bus.ErrNoAnswer) {
		f.quiet[subject] = time.Now()
	} else {
		delete(f.quiet, subject)
	}
	return err
}
