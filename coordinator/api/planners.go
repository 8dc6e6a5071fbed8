package api

import (
	"context"
	"sync"

	"github.com/coppice-ldl/coppice/protocol/access"
)

// maxPlans is how many submissions of experiments are decided at a time. A large one takes a core for
// seconds, and some hundred MiB of memory.
const maxPlans = 2

// planners bounds the submissions that are decided at a time: maxPlans of all callers, and one of each. So
// a caller does not keep others from their turn for longer than one of its submissions takes.
type planners struct {
	all chan struct{} // has an element for each submission

	mu sync.Mutex
	of map[string]*turn // by caller
}

func newPlanners() *planners {
	return &planners{all: make(chan struct{}, maxPlans), of: make(map[string]*turn)}
}

// turn is held by one submission of a caller.
type turn struct {
	held  chan struct{}
	users int // requests that hold the turn or wait for it
}

// enter waits for the turn of the caller of ctx. The caller calls leave at the end.
func (p *planners) enter(ctx context.Context) (leave func(), err error) {
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
