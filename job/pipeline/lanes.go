package pipeline

import "github.com/coppice-ldl/coppice/engine/round"

// lent is the lanes of a task as the algorithm's kernel sees them: each has the kernel's own
// scratch.
type lent struct {
	round.Lanes
	parts round.Parts
}

// lend has the algorithm's kernel see u's lanes with its own scratch.
func (s *scratch) lend(u *round.Task) {
	if u.Lanes != nil {
		s.lent.Lanes = u.Lanes
		u.Lanes = &s.lent
	}
}

// Do implements round.Lanes.
func (l *lent) Do(n int, p round.Parts) {
	l.parts = p
	l.Lanes.Do(n, l)
}

// Part implements round.Parts.
func (l *lent) Part(i int, s any) { l.parts.Part(i, s.(*scratch).inner) }
