package engine

import (
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/coppice-ldl/coppice/engine/round"
)

// Share is the parts of one task while lanes compute them together: those of the lane that
// has the task, which calls Begin, Work and End, and of each helper between its Join,
// which comes before End, and the end of its Help. Its memory serves one set of parts
// after the other.
type Share struct {
	parts   round.Parts
	n       int64
	next    atomic.Int64 // the first part that nobody has begun
	helpers sync.WaitGroup

	mu       sync.Mutex
	panicked any // what a helper's part panicked with
}

// Begin makes n parts ready.
func (s *Share) Begin(n int, p round.Parts) {
	s.parts, s.n = p, int64(n)
	s.next.Store(0)
}

// Open reports whether there are parts that nobody has begun.
func (s *Share) Open() bool { return s.next.Load() < s.n }

// Work computes parts until none is left to begin. Where one panics, no further one
// begins anywhere.
func (s *Share) Work(scratch any) {
	defer s.next.Store(s.n)
	for i := s.next.Add(1) - 1; i < s.n; i = s.next.Add(1) - 1 {
		s.parts.Part(int(i), scratch)
	}
}

// Join announces a helper.
func (s *Share) Join() { s.helpers.Add(1) }

// Help is Work of a helper. If a part panics, End panics with the same value, and Help
// returns the stack of the part; else nil.
func (s *Share) Help(scratch any) (stack []byte) {
	defer func() {
		if r := recover(); r != nil {
			stack = debug.Stack()
			s.mu.Lock()
			s.panicked = r
			s.mu.Unlock()
		}
	}()
	s.Work(scratch)
	return nil
}

// Leave is the end of a helper's part in it.
func (s *Share) Leave() { s.helpers.Done() }

// End waits for the helpers. Nobody joins any more.
func (s *Share) End() {
	s.helpers.Wait()
	s.parts, s.n = nil, 0
	if r := s.panicked; r != nil {
		s.panicked = nil
		panic(r)
	}
}
