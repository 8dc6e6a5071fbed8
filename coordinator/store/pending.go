package store

import (
	"sync"
	"time"
)

// pending is the proposals whose outcome is not known yet.
type pending struct {
	mu    sync.Mutex
	began map[*Future]time.Time
}

func (p *pending) add(f *Future, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.began == nil {
		p.began = make(map[*Future]time.Time)
	}
	p.began[f] = now
}

func (p *pending) remove(f *Future) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.began, f)
}

// oldest returns how long the oldest has been on its way; 0 where there is none.
func (p *pending) oldest(now time.Time) (age time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, began := range p.began {
		age = max(age, now.Sub(began))
	}
	return age
}

// Pending returns for how long the oldest proposal that has no outcome yet has been on
// its way; 0 where there is none. On a leader that is well this is some milliseconds.
func (s *Store) Pending() time.Duration { return s.pending.oldest(time.Now()) }
