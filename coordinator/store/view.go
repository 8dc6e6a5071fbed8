package store

import (
	"errors"
	"sync"

	"github.com/coppice-ldl/coppice/coordinator/state"
)

// view holds the latest state for readers and wakes those who wait for another.
type view struct {
	mu      sync.Mutex
	current *state.State
	changed chan struct{} // closed by the next publish
}

func newView() *view { return &view{current: state.New(), changed: make(chan struct{})} }

func (v *view) watch() (*state.State, <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.current, v.changed
}

func (v *view) state() *state.State {
	s, _ := v.watch()
	return s
}

func (v *view) publish(s *state.State) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.current = s
	close(v.changed)
	v.changed = make(chan struct{})
}

func isUnknown(err error) bool { return errors.Is(err, state.ErrUnknownEntry) }
