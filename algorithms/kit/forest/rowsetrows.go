package forest

import (
	"github.com/coppice-ldl/coppice/dataset"
)

// setScratch is the working memory of a setForest for one block of rows.
type setScratch struct {
	answers [][blockHalves]rowSet // by question: the rows whose value is far
	space   setSpace
}

func (f *setForest) newScratch() *setScratch {
	s := &setScratch{answers: make([][blockHalves]rowSet, len(f.limits))}
	for h := range s.space.slot {
		for w := range setWords {
			s.space.slot[h][allRows][w] = ^uint64(0)
		}
	}
	return s
}

// complete makes the answers complete: a value that has passed a limit has passed those before it.
func (s *setScratch) complete(f *setForest) {
	for _, q := range f.several {
		answers := s.answers[q.from:q.to]
		for i := len(answers) - 1; i > 0; i-- {
			later, earlier := &answers[i], &answers[i-1]
			for h := range later {
				for w := range later[h] {
					earlier[h][w] |= later[h][w]
				}
			}
		}
	}
}

// Sets of rows are for blocks of at least leastRows rows; a tree has at most splitsPerRow splits
// for each of them, since each split is worked on, whether or not a row comes there. The form is
// made when rowsPerSplit rows could have gone down a tree as sets for each of its splits: making
// it for fewer takes longer than the rows' walks. A forest has at most mostSplits splits: a lane keeps
// 64 bytes of answers for each question, 16 MiB then.
const (
	leastRows    = 64
	splitsPerRow = 8
	rowsPerSplit = 4
	mostSplits   = 1 << 18
)

// divides tells whether a block of rows goes down the trees as sets of rows. Noting a row's values
// takes longer than for its walks, so rows have at most as many values as there are trees.
func (m *Ensemble) divides(refs []dataset.RowRef, shard func(uint32) *dataset.Rows) bool {
	w, work := m.walker(), len(refs)*len(m.trees)
	if len(refs) < leastRows || !w.fitsSets || w.splits > min(mostSplits, splitsPerRow*work) || storedValues(refs, shard, work) > work {
		return false
	}
	return m.couldDivide.Load() >= rowsPerSplit*int64(w.splits) || m.couldDivide.Add(int64(work)) >= rowsPerSplit*int64(w.splits)
}

// shards gets the shards of rows: again only where the next row is in another.
type shards struct {
	get    func(uint32) *dataset.Rows
	number uint32
	rows   *dataset.Rows
}

// of returns the shard of a row.
func (s *shards) of(ref dataset.RowRef) *dataset.Rows {
	if s.rows == nil || ref.Shard != s.number {
		s.number, s.rows = ref.Shard, s.get(ref.Shard)
	}
	return s.rows
}

// storedValues counts the values that rows have, up to a limit; dense rows have too many.
func storedValues(refs []dataset.RowRef, shard func(uint32) *dataset.Rows, limit int) (n int) {
	from := shards{get: shard}
	for _, ref := range refs {
		r := from.of(ref)
		if !r.Sparse {
			return limit + 1
		}
		if n += int(r.Start[ref.Pos+1] - r.Start[ref.Pos]); n > limit {
			return n
		}
	}
	return n
}

// note notes the values of rows.
func (s *setScratch) note(f *setForest, refs []dataset.RowRef, shard func(uint32) *dataset.Rows) {
	from := shards{get: shard}
	for i, ref := range refs {
		columns, values := from.of(ref).NonZeros(int(ref.Pos))
		f.noteRow(s.answers, i, columns, values)
	}
	s.complete(f)
}
