package replica

import (
	"container/heap"
	"time"

	"github.com/coppice-ldl/coppice/internal/digests"
)

// gap is the blobs that a coordinator must have and lacks, and when each is to be fetched. It has no clock and no I/O.
//
// Each is tried once, at once. Where that fails it is tried again with pauses that double, and of all that are tried
// again one each retryPace: there may be very many that nobody has. A fetch that succeeds at another try says that
// somebody is back, so all are tried at once again.
type gap struct {
	of      map[digests.Digest]*absence
	fresh   []digests.Digest // to be tried at once, in order
	retries retries          // to be tried again
	retry   time.Time        // when the next of them may be
}

// absence is one blob that is missing.
type absence struct {
	since time.Time // when it was found missing
	fails int       // tries that failed
	lost  bool      // at the last try each coordinator said that it lacks it
	fresh bool      // it is to be tried at once
	retry time.Time // when it is to be tried again; zero: it is fresh, or being fetched
}

const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 5 * time.Second
	retryPace  = 25 * time.Millisecond
)

// update takes in what is missing now.
func (g *gap) update(missing []digests.Digest, now time.Time) {
	was := g.of
	g.of = make(map[digests.Digest]*absence, len(missing))
	for _, d := range missing {
		a := was[d]
		if a == nil {
			a = &absence{since: now, fresh: true}
			g.fresh = append(g.fresh, d)
		}
		g.of[d] = a
	}
	if len(g.of) == 0 {
		g.fresh, g.retries = nil, nil
	}
}

// next takes the blob that is to be fetched now. If there is none, wait is for how long, or 0 if none is missing that
// is not being fetched.
func (g *gap) next(now time.Time) (d digests.Digest, wait time.Duration, ok bool) {
	for len(g.fresh) > 0 {
		d, g.fresh = g.fresh[0], g.fresh[1:]
		if a := g.of[d]; a != nil && a.fresh {
			a.fresh = false
			return d, 0, true
		}
	}
	for len(g.retries) > 0 {
		first := g.retries[0]
		a := g.of[first.digest]
		if a == nil || !a.retry.Equal(first.at) { // it came, or is queued elsewhere
			heap.Pop(&g.retries)
			continue
		}
		if wait := max(first.at.Sub(now), g.retry.Sub(now)); wait > 0 {
			return d, wait, false
		}
		heap.Pop(&g.retries)
		a.retry = time.Time{}
		g.retry = now.Add(retryPace)
		return first.digest, 0, true
	}
	return d, 0, false
}

// later puts a blob off that another fetch is about to bring.
func (g *gap) later(d digests.Digest, now time.Time) {
	if a := g.of[d]; a != nil {
		g.queue(d, a, now.Add(firstRetry))
	}
}

// failed takes note of a fetch that failed; lost: each coordinator said that it lacks the blob.
func (g *gap) failed(d digests.Digest, lost bool, now time.Time) {
	if a := g.of[d]; a != nil {
		a.lost = lost
		g.queue(d, a, now.Add(min(lastRetry, firstRetry<<min(a.fails, 10))))
		a.fails++
	}
}

// came takes note of a blob that is here now.
func (g *gap) came(d digests.Digest) {
	a := g.of[d]
	delete(g.of, d)
	if a == nil || a.fails == 0 {
		return
	}
	for _, r := range g.retries {
		if a := g.of[r.digest]; a != nil && a.retry.Equal(r.at) {
			a.fresh, a.retry = true, time.Time{}
			g.fresh = append(g.fresh, r.digest)
		}
	}
	g.retries = nil
}

func (g *gap) queue(d digests.Digest, a *absence, at time.Time) {
	a.retry = at
	heap.Push(&g.retries, retry{d, at})
}

// retry is a blob that is tried again at some time.
type retry struct {
	digest digests.Digest
	at     time.Time
}

// retries implements heap.Interface: the earliest comes first.
type retries []retry

func (r retries) Len() int           { return len(r) }
func (r retries) Less(i, j int) bool { return r[i].at.Before(r[j].at) }
func (r retries) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *retries) Push(x any)        { *r = append(*r, x.(retry)) }
func (r *retries) Pop() any {
	last := len(*r) - 1
	x := (*r)[last]
	*r = (*r)[:last]
	return x
}
