package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/coppice-ldl/coppice/dataset"
)

// prefetchers is how many shards are fetched ahead of need at the same time.
const prefetchers = 2

// prefetch fetches the shards that the leader wants here, in the background and
// in the order of asking.
type prefetch struct {
	cache *cache
	procs *processors
	log   *slog.Logger

	mu     sync.Mutex
	wake   *sync.Cond
	queue  []dataset.ShardRef
	queued map[string]bool
	closed bool
}

func newPrefetch(c *cache, procs *processors, log *slog.Logger) *prefetch {
	p := &prefetch{cache: c, procs: procs, log: log, queued: make(map[string]bool)}
	p.wake = sync.NewCond(&p.mu)
	return p
}

// want queues the shards that are not queued yet.
func (p *prefetch) want(shards []dataset.ShardRef) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, ref := range shards {
		if !p.queued[ref.Digest] {
			p.queued[ref.Digest] = true
			p.queue = append(p.queue, ref)
		}
	}
	p.wake.Broadcast()
}

// run fetches until close; ctx ends what is under way.
func (p *prefetch) run(ctx context.Context) {
	for {
		ref, ok := p.next()
		if !ok {
			return
		}
		p.procs.begin()
		err := p.cache.hold(ctx, ref)
		p.procs.end()
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, errNoRoom):
			p.log.Debug("a shard is not in the cache", "digest", ref.Digest, "reason", err)
		default:
			p.log.Warn("a shard could not be prefetched", "digest", ref.Digest, "error", err)
		}
	}
}

func (p *prefetch) next() (ref dataset.ShardRef, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) == 0 && !p.closed {
		p.wake.Wait()
	}
	if p.closed {
		return ref, false
	}
	ref = p.queue[0]
	p.queue = p.queue[1:]
	delete(p.queued, ref.Digest)
	return ref, true
}

func (p *prefetch) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.wake.Broadcast()
}
