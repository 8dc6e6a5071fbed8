package replica

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// Fetcher fetches the blobs that a coordinator must have and lacks, and knows which these are.
type Fetcher struct {
	blobs  *Blobs
	state  func() Referrer
	remake func() error
	work   chan struct{} // has an element for each fetch that should look at the queue

	looking sync.Mutex // held by Look; guards the fields below
	refs    digests.Set
	refsOf  uint64 // index of the state of refs
	losses  uint64 // Losses of the folder before the last look
	whole   bool   // true if the last look found all blobs

	mu     sync.Mutex // guards the fields below
	queue  fetchQueue
	index  uint64               // of the state of the last look
	folder error                // why the last look could not list the folder
	quiet  map[string]time.Time // when a coordinator last did not answer, by subject
}

// Referrer refers to blobs, as *state.State does.
type Referrer interface {
	Index() uint64
	References() digests.Set
}

// Shortage is what is known of missing blobs.
type Shortage struct {
	Index  uint64        // of the state that was looked at
	Count  int           // missing blobs
	Lost   int           // missing blobs that each other coordinator says it lacks
	Oldest time.Duration // for how long the first of them has been missing
	Folder error         // why the folder of blobs cannot be read
}

const (
	fetchesAtOnce = 4
	// lookAgain is the least time between two looks. It is lookRest times what the last look took if that is more.
	lookAgain = 500 * time.Millisecond
	lookRest  = 50
	// quietFor is for how long a coordinator that did not answer is not asked again.
	quietFor = 2 * time.Second
	// unavailableAfter is the age at which a missing blob that could not be fetched counts as unavailable. A process
	// that has just started may not have reached the others yet.
	unavailableAfter = 2 * time.Second
)

// NewFetcher returns a fetcher for the blobs that the state refers to. It fetches while Run runs. remake creates the
// folder of blobs again if somebody removed it.
func NewFetcher(b *Blobs, state func() Referrer, remake func() error) *Fetcher {
	f := &Fetcher{blobs: b, state: state, remake: remake, work: make(chan struct{}, fetchesAtOnce),
		quiet: make(map[string]time.Time)}
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

// Look finds out which blobs are missing now. It lists the folder only if the state changed, the folder lost a blob, or
// some were missing.
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
	f.mu.Lock()
	f.queue.update(missing, time.Now())
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

// Shortage returns what the last look found, without the blobs that were fetched since.
func (f *Fetcher) Shortage() Shortage {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, now := Shortage{Index: f.index, Count: len(f.queue.missing), Folder: f.folder}, time.Now()
	for _, m := range f.queue.missing {
		s.Oldest = max(s.Oldest, now.Sub(m.since))
		if m.lost {
			s.Lost++
		}
	}
	return s
}

// Missing returns the blobs that the last look found missing, without those fetched since.
func (f *Fetcher) Missing() digests.Set {
	return f.missing(func(*missingBlob) bool { return true })
}

// Has reports whether a blob is here.
func (f *Fetcher) Has(d digests.Digest) bool { return f.blobs.Folder.Has(d.String()) }

// Lost returns the missing blobs that each other coordinator says it lacks.
func (f *Fetcher) Lost() digests.Set {
	return f.missing(func(m *missingBlob) bool { return m.lost })
}

func (f *Fetcher) missing(which func(*missingBlob) bool) digests.Set {
	f.mu.Lock()
	defer f.mu.Unlock()
	set := make(digests.Set)
	for d, m := range f.queue.missing {
		if which(m) {
			set[d] = struct{}{}
		}
	}
	return set
}

// Unavailable reports whether a blob is missing here and no other coordinator gave it: each lacks it, or does not
// answer.
func (f *Fetcher) Unavailable(digest string) bool {
	d, ok := digests.Parse(digest)
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.queue.missing[d]
	return ok && m != nil && m.fails > 0 && time.Since(m.since) >= unavailableAfter
}

// fetchAll fetches missing blobs, one at a time, until ctx is done.
func (f *Fetcher) fetchAll(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		f.mu.Lock()
		d, wait, ok := f.queue.next(time.Now())
		f.mu.Unlock()
		if ok {
			f.fetch(ctx, d)
			if ctx.Err() == nil {
				continue
			}
		}
		if wait > 0 {
			timer.Reset(wait)
		} else {
			timer.Stop()
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
	if f.blobs.arriving.has(digest) {
		f.mu.Lock()
		f.queue.postpone(d, time.Now())
		f.mu.Unlock()
		return
	}
	err := f.blobs.fetchFrom(ctx, digest, f.fetchIfAnswers)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil:
		f.queue.done(d)
	case ctx.Err() == nil:
		f.queue.failed(d, errors.Is(err, blobs.ErrMissing), time.Now())
		f.blobs.Log.Debug("this coordinator lacks a blob and could not fetch it", "digest", digest, "error", err)
	}
}

// fetchIfAnswers is Blobs.fetch, but does not ask a coordinator that did not answer a moment ago.
func (f *Fetcher) fetchIfAnswers(ctx context.Context, subject, digest string, size int64) error {
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

// fetchQueue decides when to fetch each missing blob. It has no clock and no I/O.
//
// A blob is tried at once. If that fails, it is tried again with pauses that double. There may be very many blobs that
// nobody has, so only one of them is tried again in each retryPace. If a retry succeeds, a coordinator is back, so all
// blobs are tried at once again.
type fetchQueue struct {
	missing   map[digests.Digest]*missingBlob
	fresh     []digests.Digest // to be tried at once, in order; may have blobs that are not missing any more
	retries   []retry          // by time, the earliest first; may have retries that do not hold any more
	nextRetry time.Time        // no retry before
}

// missingBlob is what is known of a missing blob. It is fresh, has a time for its retry, or is being fetched.
type missingBlob struct {
	since time.Time // when it was found missing
	fails int       // tries that failed
	lost  bool      // true if each coordinator said at the last try that it lacks it
	fresh bool      // true if it is to be tried at once
	retry time.Time // when it is to be tried again; zero: it is fresh or being fetched
}

// retry holds if the blob is missing and its retry is at this time.
type retry struct {
	digest digests.Digest
	at     time.Time
}

const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 5 * time.Second
	retryPace  = 25 * time.Millisecond
)

// update replaces the missing blobs. Blobs that were missing before stay as they are.
func (q *fetchQueue) update(missing []digests.Digest, now time.Time) {
	before := q.missing
	q.missing = make(map[digests.Digest]*missingBlob, len(missing))
	for _, d := range missing {
		m := before[d]
		if m == nil {
			m = &missingBlob{since: now, fresh: true}
			q.fresh = append(q.fresh, d)
		}
		q.missing[d] = m
	}
	if len(q.missing) == 0 {
		q.fresh, q.retries = nil, nil
	}
}

// next takes the blob to fetch now. If there is none, wait is the time until the next retry, or 0 if every missing blob
// is being fetched.
func (q *fetchQueue) next(now time.Time) (d digests.Digest, wait time.Duration, ok bool) {
	for len(q.fresh) > 0 {
		d, q.fresh = q.fresh[0], q.fresh[1:]
		if m := q.missing[d]; m != nil && m.fresh {
			m.fresh = false
			return d, 0, true
		}
	}
	for len(q.retries) > 0 {
		first := q.retries[0]
		m := q.missing[first.digest]
		holds := m != nil && m.retry.Equal(first.at)
		if wait := max(first.at.Sub(now), q.nextRetry.Sub(now)); holds && wait > 0 {
			return d, wait, false
		}
		q.retries = q.retries[1:]
		if holds {
			m.retry = time.Time{}
			q.nextRetry = now.Add(retryPace)
			return first.digest, 0, true
		}
	}
	return d, 0, false
}

// postpone puts off a blob that another fetch is about to bring.
func (q *fetchQueue) postpone(d digests.Digest, now time.Time) {
	if m := q.missing[d]; m != nil {
		q.retryAt(d, m, now.Add(firstRetry))
	}
}

// failed notes that a fetch failed; lost is true if each coordinator said that it lacks the blob.
func (q *fetchQueue) failed(d digests.Digest, lost bool, now time.Time) {
	if m := q.missing[d]; m != nil {
		m.lost = lost
		q.retryAt(d, m, now.Add(min(lastRetry, firstRetry<<min(m.fails, 10))))
		m.fails++
	}
}

// retryAt puts a retry in its place by time, which is at or near the end.
func (q *fetchQueue) retryAt(d digests.Digest, m *missingBlob, at time.Time) {
	m.retry = at
	i, _ := slices.BinarySearchFunc(q.retries, at, func(r retry, at time.Time) int { return cmp.Or(r.at.Compare(at), -1) })
	q.retries = slices.Insert(q.retries, i, retry{d, at})
}

// done notes that a blob is here.
func (q *fetchQueue) done(d digests.Digest) {
	m := q.missing[d]
	delete(q.missing, d)
	if m == nil || m.fails == 0 {
		return
	}
	for _, r := range q.retries {
		if m := q.missing[r.digest]; m != nil && m.retry.Equal(r.at) {
			m.fresh, m.retry = true, time.Time{}
			q.fresh = append(q.fresh, r.digest)
		}
	}
	q.retries = nil
}
