package lbfgs

import "github.com/coppice-ldl/coppice/algorithms/kit/fields"

// State lists the fields of the minimiser. A state belongs to the number of variables; options
// are not part of it.
func (m *Minimiser) State(l *fields.List) {
	l.Byte((*byte)(&m.reason))
	l.Check(m.reason < reasons, "the saved state has the unknown reason %d for the end of the fit", m.reason)
	l.Bool(&m.begun, &m.restarted)
	l.Uint64(&m.iterations, &m.evaluations)
	l.Float64(&m.f)
	l.Float64s(m.x, m.g, m.direction)
	m.memory.state(l)
	m.search.state(l)
	if !l.Reading() {
		return
	}
	if m.begun {
		m.aim()
	} else {
		copy(m.point, m.x)
	}
}

func (h *memory) state(l *fields.List) {
	count, next := uint64(h.count), uint64(h.next)
	l.Uint64(&count, &next)
	l.Check(count <= pairs && next < pairs, "the saved state of L-BFGS is damaged: %d stored steps, with the next at position %d, are not possible", count, next)
	l.Float64(&h.scale)
	l.Float64s(h.rho, h.s, h.y)
	h.count, h.next = int(count%(pairs+1)), int(next%pairs)
}

func (s *search) state(l *fields.List) {
	for _, e := range []*end{&s.start, &s.best, &s.other} {
		l.Float64(&e.step, &e.f, &e.slope)
	}
	l.Float64(&s.step, &s.least, &s.most, &s.width, &s.widthBefore)
	l.Bool(&s.bracketed, &s.settled)
	l.Uint64(&s.trials)
}
