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
	of map[string]*turn // by caller
}

// newPlaces returns places for n requests.
func newPlaces(n int) *places {
	return &places{all: make(chan struct{}, n), of: make(map[string]*turn)}
}

// turn is held by one request of a caller.
type turn struct {
	held  chan struct{}
	users int // requests that hold the turn or wait for it
}

// enter waits for the turn of the caller of ctx, and then for a place. The caller calls leave at the end.
func (p *places) enter(ctx context.Context) (leave func(), err error) {
	caller := access.Of(ctx)
	name := caller.Name
	if name == "" {
		name = caller.Host()
	}
	p.mu.Lock()
	own := p.of[name]
	if own == nil {
		own = &turn{held: make(chan struct{}, 1)}
		p.of[name] = own
	}
	own.users++
	p.mu.Unlock()
	leave = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(p.of, name)
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
