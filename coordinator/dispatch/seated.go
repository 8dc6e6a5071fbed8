package dispatch

import (
	"cmp"
	"slices"
)

// seated is the seats of a collected round that take a slot, by the worker whose slot it is. A
// worker has few more of them than slots, however many units the round has.
type seated map[*worker][]place

// place is a seat and the unit that it is of.
type place struct {
	unit int
	at   *seat
}

// add notes a seat that has got a slot.
func (s seated) add(u int, at *seat) { s[at.of] = append(s[at.of], place{u, at}) }

// remove notes that a seat, whose slot was w's, has it no more.
func (s seated) remove(w *worker, at *seat) {
	list := slices.DeleteFunc(s[w], func(p place) bool { return p.at == at })
	if len(list) == 0 {
		delete(s, w)
		return
	}
	s[w] = list
}

// all lists the seats by unit.
func (s seated) all() []place {
	var list []place
	for _, of := range s {
		list = append(list, of...)
	}
	return inOrder(list)
}

// of lists the seats of workers of one name, by unit: one that left and came back is another one.
func (s seated) of(id string) []place {
	var list []place
	for w, of := range s {
		if w.id == id {
			list = append(list, of...)
		}
	}
	return inOrder(list)
}

func inOrder(list []place) []place {
	slices.SortFunc(list, func(a, b place) int { return cmp.Or(cmp.Compare(a.unit, b.unit), cmp.Compare(a.at.order, b.at.order)) })
	return list
}

// before returns how many of its worker's units were given to it before a seat's.
func (s seated) before(at *seat) (n int) {
	for _, p := range s[at.of] {
		if p.at.order < at.order {
			n++
		}
	}
	return n
}
