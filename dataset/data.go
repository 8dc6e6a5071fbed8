package dataset

import (
	"fmt"
	"slices"
	"sync"
)

// RowRef points at one row of a dataset: shard number and position in the shard.
type RowRef struct{ Shard, Pos uint32 }

// Data is a job's dataset as kernels see it: a manifest, the role of every row,
// and the shards in memory. It is safe for concurrent use.
type Data struct {
	Manifest *Manifest
	roles    []Roles

	of   *Data     // whose missing features are filled here; nil: of none
	fill []float64 // what takes their place, by feature

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

// Filled returns d with values in the place of missing features (NaN): one for each feature.
// It takes the memory of the shards that have such.
func (d *Data) Filled(values []float64) *Data {
	f := NewData(d.Manifest, d.roles)
	f.of, f.fill = d, append([]float64{}, values...)
	return f
}

// filled returns shard i with its missing features filled.
func (d *Data) filled(i int) *Rows {
	d.mu.RLock()
	r := d.shards[i]
	d.mu.RUnlock()
	if r != nil {
		return r
	}
	raw := d.of.Shard(i)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shards[i] == nil {
		d.shards[i] = raw.filled(d.fill)
	}
	return d.shards[i]
}

// filled returns r with values in the place of missing features. Sparse rows do not list those
// that become 0.
func (r *Rows) filled(values []float64) *Rows {
	if !slices.ContainsFunc(r.X, func(x float32) bool { return x != x }) {
		return r
	}
	f := *r
	if !r.Sparse {
		f.X = slices.Clone(r.X)
		for i, x := range f.X {
			if x != x {
				f.X[i] = positiveZero(values[i%r.Features])
			}
		}
		return &f
	}
	f.X, f.Index, f.Start = make([]float32, 0, len(r.X)), make([]uint32, 0, len(r.Index)), make([]uint32, 1, len(r.Start))
	for i := range r.N {
		columns, list := r.NonZeros(i)
		for k, x := range list {
			if x != x {
				x = positiveZero(values[columns[k]])
			}
			if x != 0 {
				f.X, f.Index = append(f.X, x), append(f.Index, columns[k])
			}
		}
		f.Start = append(f.Start, uint32(len(f.X)))
	}
	return &f
}

// SetShard adds shard i. Rows of a shard never change.
func (d *Data) SetShard(i int, r *Rows) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shards[i] = r
}

// HasShard reports whether shard i was added.
func (d *Data) HasShard(i int) bool {
	if d.of != nil {
		return d.of.HasShard(i)
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.shards[i] != nil
}

// Shard returns shard i, which must have been added: the shards of a unit are added before
// the kernel runs.
func (d *Data) Shard(i int) *Rows {
	if d.of != nil {
		return d.filled(i)
	}
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
	if d.of != nil {
		return d.of.Select(lo, hi, roles)
	}
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
	// The rounds of a job need far fewer lists than this. A list that is dropped is computed again.
	if len(d.selection) >= 8*len(d.shards)+64 {
		clear(d.selection)
	}
	d.selection[key] = refs
	d.mu.Unlock()
	return refs
}
