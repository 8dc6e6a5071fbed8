package pipeline

import "github.com/coppice-ldl/coppice/algorithms"

// lent is the lanes of a unit as the algorithm's kernel sees them: each has the kernel's own
// scratch.
type lent struct {
	algorithms.Lanes
	parts algorithms.Parts
}

// lend has the algorithm's kernel see u's lanes with its own scratch.
func (s *scratch) lend(u *algorithms.Unit) {
	if u.Lanes != nil {
		s.lent.Lanes = u.Lanes
		u.Lanes = &s.lent
	}
}

// Do implements algorithms.Lanes.
func (l *lent) Do(n int, p algorithms.Parts) {
	l.parts = p
	l.Lanes.Do(n, l)
}

// Part implements algorithms.Parts.
func (l *lent) Part(i int, s any) { l.parts.Part(i, s.(*scratch).inner) }
