package dataset

import (
	"fmt"
	"sync"
)

// RowRef points at one row of a dataset: shard number and position in the shard.
type RowRef struct{ Shard, Pos uint32 }

// Data is a job's dataset as kernels see it: a manifest, the role of every row,
// and the shards in memory. It is safe for concurrent use.
type Data struct {
	Manifest *Manifest
	roles    []Roles

	mu        sync.RWMutex
	shards    []*Rows
	selection map[selectionKey][]RowRef
}

type selectionKey struct {
	lo, hi int
	roles  Roles
}

// NewData makes the Data of a job; roles comes from Split.Assign. Shards are
// added with SetShard.
func NewData(m *Manifest, roles []Roles) *Data {
	return &Data{
		Manifest: m, roles: roles,
		shards:    make([]*Rows, len(m.Shards)),
		selection: make(map[selectionKey][]RowRef),
	}
}

// SetShard adds shard i. Rows of a shard never change.
func (d *Data) SetShard(i int, r *Rows) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shards[i] = r
}

// HasShard reports whether shard i was added.
func (d *Data) HasShard(i int) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.shards[i] != nil
}

// Shard returns shard i, which must have been added: the shards of a unit are added before
// the kernel runs.
func (d *Data) Shard(i int) *Rows {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.shards[i] == nil {
		panic(fmt.Sprintf("dataset: shard %d is not at hand", i))
	}
	return d.shards[i]
}

// Role returns the role of an original row number.
func (d *Data) Role(row uint32) Roles { return d.roles[row] }

// Select lists the rows of shards [lo, hi) whose role is in roles, in the order
// of shard and position. The result is shared: do not write to it. It is
// computed once for each argument list.
func (d *Data) Select(lo, hi int, roles Roles) []RowRef {
	key := selectionKey{lo, hi, roles}
	d.mu.RLock()
	refs, ok := d.selection[key]
	d.mu.RUnlock()
	if ok {
		return refs
	}
	for s := lo; s < hi; s++ {
		for i, row := range d.Shard(s).Row {
			if d.roles[row]&roles != 0 {
				refs = append(refs, RowRef{uint32(s), uint32(i)})
			}
		}
	}
	d.mu.Lock()
	if len(d.selection) >= maxSelections(len(d.shards)) {
		clear(d.selection)
	}
	d.selection[key] = refs
	d.mu.Unlock()
	return refs
}

// maxSelections bounds the cached lists, for a dataset of s shards. The rounds of a job need
// far fewer. A list that is dropped is computed again.
func maxSelections(s int) int { return 8*s + 64 }
