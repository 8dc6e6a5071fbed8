package api

import (
	"context"
	"sync"

	"github.com/coppice-ldl/coppice/protocol/access"
)

// places bounds the requests of a kind that are answered at a time, because each takes seconds and much
// memory: some of all callers, and one of each. So a caller does not keep others from their turn for longer
// than one of its requests takes.
type places struct {
	all chan struct{} // has an element for each request

	mu sync.Mutex
	by map[string]*turn // by caller
}

// newPlaces returns places for n requests.
func newPlaces(n int) *places {
	return &places{all: make(chan struct{}, n), by: make(map[string]*turn)}
}

// turn is held by one request of a caller.
type turn struct {
	held  chan struct{}
	users int // requests that hold the turn or wait for it
}

// enter waits for the turn of the caller of ctx, and then for a place. The caller calls leave at the end.
func (p *places) enter(ctx context.Context) (leave func(), err error) {
	name := nameOf(access.Of(ctx))
	p.mu.Lock()
	own := p.by[name]
	if own == nil {
		own = &turn{held: make(chan struct{}, 1)}
		p.by[name] = own
	}
	own.users++
	p.mu.Unlock()
	leave = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(p.by, name)
		}
	}
	for _, place := range []chan struct{}{own.held, p.all} {
		select {
		case place <- struct{}{}:
			before := leave
			leave = func() { <-place; before() }
		case <-ctx.Done():
			leave()
			return nil, context.Cause(ctx)
		}
	}
	return leave, nil
}

// nameOf returns the name by which the requests of a caller are counted: its role and name, or its host.
func nameOf(c *access.Caller) string {
	if c.Name != "" {
		return string(c.Role) + " " + c.Name
	}
	return c.Host()
}

// shares bounds what all callers together take of something, and what one of them takes: at most ownShare times
// what is free then. So one caller has at most three quarters, several callers have less each, and something is
// left for the next caller.
type shares struct {
	most int

	mu    sync.Mutex
	taken int
	by    map[string]int // by caller
}

const ownShare = 3

func newShares(most int) *shares { return &shares{most: most, by: make(map[string]int)} }

// take takes n for a request that has taken held before. It reports whether it could. One request of a
// caller may take all that is free.
func (s *shares) take(caller string, n, held int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	free, before := s.most-s.taken-n, s.by[caller]
	if free < 0 || before > held && before+n > ownShare*free {
		return false
	}
	s.taken += n
	s.by[caller] += n
	return true
}

// give gives back n that a caller has taken.
func (s *shares) give(caller string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken -= n
	if s.by[caller] -= n; s.by[caller] == 0 {
		delete(s.by, caller)
	}
}

// inUse returns what all callers together have taken.
func (s *shares) inUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}
