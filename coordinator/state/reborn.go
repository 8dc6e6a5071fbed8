package state

import "fmt"

// Reborn returns the state with which a new cluster begins that is restored from a
// backup: everything but who its coordinators were, as if at a later index. Log
// indices, job numbers and epochs of the new cluster are above index. The index
// must not be below the state's own: that is a programmer's error and panics.
func (s *State) Reborn(index uint64) *State {
	if index < s.index {
		panic(fmt.Sprintf("state: reborn at index %d, which is before %d", index, s.index))
	}
	next := s.at(index)
	next.members = nil
	next.dropPending()
	return next
}
