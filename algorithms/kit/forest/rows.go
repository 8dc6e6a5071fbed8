package forest

import (
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Rows are the training rows of a job, numbered from 0 in the order of the dataset's row
// numbers: no result depends on how rows are spread over shards.
type Rows struct {
	rows   []dataset.RowRef // by number
	shards []*dataset.Rows
}

// NewRows numbers the rows of d that refs lists in any order.
func NewRows(d *dataset.Data, refs []dataset.RowRef) Rows {
	var r Rows
	for i := range d.Manifest.Shards {
		r.shards = append(r.shards, d.Shard(i))
	}
	number := func(ref dataset.RowRef) int { return int(r.shards[ref.Shard].Row[ref.Pos]) }
	most := 0
	for _, ref := range refs {
		most = max(most, number(ref))
	}
	if most > 2*len(refs) {
		r.rows = slices.Clone(refs)
		slices.SortFunc(r.rows, func(a, b dataset.RowRef) int { return number(a) - number(b) })
		return r
	}
	absent := dataset.RowRef{Shard: uint32(len(r.shards))}
	r.rows = slices.Repeat([]dataset.RowRef{absent}, most+1)
	for _, ref := range refs {
		r.rows[number(ref)] = ref
	}
	r.rows = slices.DeleteFunc(r.rows, func(ref dataset.RowRef) bool { return ref == absent })
	return r
}

// Refs lists the rows in the order of their numbers. The list must not be changed.
func (r *Rows) Refs() []dataset.RowRef { return r.rows }

// Len returns the number of rows.
func (r *Rows) Len() int { return len(r.rows) }

// At returns the shard and position of a row.
func (r *Rows) At(i uint32) (*dataset.Rows, int) {
	ref := r.rows[i]
	return r.shards[ref.Shard], int(ref.Pos)
}

// Label returns the label distribution of a row.
func (r *Rows) Label(i uint32) []float32 {
	shard, pos := r.At(i)
	return shard.Label(pos)
}

// Draw draws the bootstrap sample of a tree, with replacement, and sets counts to how often each row was
// drawn.
func Draw(counts []uint32, key num.Key, tree uint32, draws int) {
	s := num.NewStream(key, 0, tree)
	clear(counts)
	for range draws {
		counts[s.Uint64n(uint64(len(counts)))]++
	}
}
