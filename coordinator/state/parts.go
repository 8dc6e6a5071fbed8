package state

import (
	"cmp"
	"iter"
	"slices"

	"github.com/coppice-ldl/coppice/internal/digests"
)

// Part is the recorded result of one unit of a collected round. There are very many: it has no text.
type Part struct {
	Round   uint64 // the number of rounds folded once this one is
	Unit    uint32
	Of      uint32         // units in the round, for display
	Digest  digests.Digest // of its blob; zero: it is not run, since its budget is used up
	Bytes   uint64
	Compute uint64 // nanoseconds, as its worker says; 0: not known
}

// WasRun reports whether the unit has a result.
func (p *Part) WasRun() bool { return p.Digest != digests.Digest{} }

func comparePart(a, b Part) int {
	return cmp.Or(cmp.Compare(a.Round, b.Round), cmp.Compare(a.Unit, b.Unit))
}

// blockParts is the greatest length of a block of parts. To put one part copies its block and
// the list of blocks: of 100,000 parts some 40 KB rather than 6 MB.
const blockParts = 256

// partList is a list of parts by round and unit. It is immutable, as all that a state has. No
// block is empty.
type partList struct{ blocks [][]Part }

// find returns the block that p is in or belongs in, its place there, and whether it is there.
func (l partList) find(p Part) (block, at int, ok bool) {
	block, _ = slices.BinarySearchFunc(l.blocks, p, func(b []Part, p Part) int { return comparePart(b[len(b)-1], p) })
	if block == len(l.blocks) && block > 0 {
		block-- // behind all
	}
	if block < len(l.blocks) {
		at, ok = slices.BinarySearchFunc(l.blocks[block], p, comparePart)
	}
	return block, at, ok
}

// put returns the list with p; false: it has the unit, and is the same.
func (l partList) put(p Part) (partList, bool) {
	block, at, ok := l.find(p)
	switch {
	case ok:
		return l, false
	case len(l.blocks) == 0:
		return partList{[][]Part{{p}}}, true
	}
	b := l.blocks[block]
	switch {
	case len(b) < blockParts:
		return partList{replaced(l.blocks, block, inserted(b, at, p))}, true
	case at == len(b): // parts mostly come in order: full blocks stay full
		return partList{inserted(l.blocks, block+1, []Part{p})}, true
	}
	b = inserted(b, at, p)
	half := len(b) / 2
	return partList{inserted(replaced(l.blocks, block, slices.Clone(b[:half])), block+1, slices.Clone(b[half:]))}, true
}

// push adds a part behind all others to a list that nobody else has.
func (l *partList) push(p Part) {
	if n := len(l.blocks); n == 0 || len(l.blocks[n-1]) == blockParts {
		l.blocks = append(l.blocks, nil)
	}
	b := &l.blocks[len(l.blocks)-1]
	*b = append(*b, p)
}

// after returns the list without the parts of rounds up to one.
func (l partList) after(round uint64) partList {
	block, at, _ := l.find(Part{Round: round + 1})
	if block == len(l.blocks) {
		return l
	}
	rest := slices.Clone(l.blocks[block:])
	if rest[0] = rest[0][at:]; len(rest[0]) == 0 {
		rest = rest[1:]
	}
	return partList{rest}
}

// from calls yield for the parts of a round, by unit, from a unit on.
func (l partList) from(round uint64, unit uint32) iter.Seq[Part] {
	return func(yield func(Part) bool) {
		block, at, _ := l.find(Part{Round: round, Unit: unit})
		for ; block < len(l.blocks); block, at = block+1, 0 {
			for _, p := range l.blocks[block][at:] {
				if p.Round != round || !yield(p) {
					return
				}
			}
		}
	}
}

// all calls yield for each part, in order.
func (l partList) all(yield func(Part) bool) {
	for _, b := range l.blocks {
		for _, p := range b {
			if !yield(p) {
				return
			}
		}
	}
}

// count returns how many parts a round has, in a time that grows with the number of blocks.
func (l partList) count(round uint64) (n int) {
	for _, b := range l.blocks {
		lo, _ := slices.BinarySearchFunc(b, Part{Round: round}, comparePart)
		hi, _ := slices.BinarySearchFunc(b, Part{Round: round + 1}, comparePart)
		n += hi - lo
	}
	return n
}

// len returns the number of parts.
func (l partList) len() (n int) {
	for _, b := range l.blocks {
		n += len(b)
	}
	return n
}

// notRun returns how many of the parts are of units that are not run.
func (l partList) notRun() (n int) {
	for p := range l.all {
		if !p.WasRun() {
			n++
		}
	}
	return n
}

// last returns the last part; false: there is none.
func (l partList) last() (Part, bool) {
	if len(l.blocks) == 0 {
		return Part{}, false
	}
	b := l.blocks[len(l.blocks)-1]
	return b[len(b)-1], true
}

// Equal reports whether two lists have the same parts, however they are divided.
func (l partList) Equal(other partList) bool {
	return slices.Equal(slices.Collect(l.all), slices.Collect(other.all))
}

// Parts returns the recorded units of one round, by unit.
func (j *Job) Parts(round uint64) []Part { return slices.Collect(j.collected.from(round, 0)) }

// Collected calls yield for the recorded units of all rounds that are not folded yet.
func (j *Job) Collected(yield func(Part) bool) { j.collected.all(yield) }

// PartsFrom calls yield for the recorded units of one round, by unit, from a unit on.
func (j *Job) PartsFrom(round uint64, unit uint32) iter.Seq[Part] {
	return j.collected.from(round, unit)
}
