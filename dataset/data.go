// Package dataset holds label-distribution data: rows, shards, manifests, splits, and what a source of rows says of
// them. It knows no format of data files (package read does), no networks and no coordinators.
package dataset

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coppice-ldl/coppice/internal/num"
)

// RowRef points at one row of a dataset: shard number and position in the shard.
type RowRef struct{ Shard, Pos uint32 }

// Data is a job's dataset as kernels see it: a manifest, the role of every row,
// and the shards in memory. It is safe for concurrent use.
type Data struct {
	Manifest *Manifest
	// Groups is the group of each row if the job's split names groups; otherwise nil.
	Groups []uint16
	roles  []Roles

	of     *Data             // the data that has these shards, or nil
	change func(*Rows) *Rows // makes a shard of the shard of of; nil: it is the same

	shards []atomic.Pointer[Rows] // nil: not added. Kernels ask for a shard for each row that they draw

	own bool // true if the dataset has validation rows: they are not trained on, in no round

	mu        sync.RWMutex
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
		Manifest: m, roles: roles, own: m.Validation != nil,
		shards:    make([]atomic.Pointer[Rows], len(m.Shards)),
		selection: make(map[selectionKey][]RowRef),
	}
}

// changed returns d with other shards, each with the same rows, which change makes when they are first needed.
func (d *Data) changed(change func(*Rows) *Rows) *Data {
	f := NewData(d.Manifest, d.roles)
	f.Groups, f.of, f.change = d.Groups, d, change
	return f
}

// Filled returns d with values in the place of missing features (NaN): one for each feature.
// It takes the memory of the shards that have such.
func (d *Data) Filled(values []float64) *Data {
	own := slices.Clone(values)
	return d.changed(func(r *Rows) *Rows { return r.filled(own) })
}

// Masked returns d as a training sees it, whose split has a mask and a seed: degrees of training and validation rows
// are missing. It takes the memory of the labels.
func (d *Data) Masked(k Mask, seed uint64) *Data {
	return d.changed(func(r *Rows) *Rows { return r.masked(k, seed, d.roles) })
}

// Relabelled returns d with other label distributions for the rows of some roles: one for each row, by original row
// number. Exact numbers and intervals stay. It takes the memory of the labels of all shards.
func (d *Data) Relabelled(roles Roles, labels []float32) *Data {
	own := slices.Clone(labels)
	place := make([]int, len(d.roles)) // of each original row among the rows with other labels
	for row := 1; row < len(place); row++ {
		if place[row] = place[row-1]; d.roles[row-1]&roles != 0 {
			place[row]++
		}
	}
	return d.changed(func(raw *Rows) *Rows {
		r := *raw
		r.D = slices.Clone(raw.D)
		for i, row := range r.Row {
			if d.roles[row]&roles != 0 {
				copy(r.Label(i), own[place[row]*r.Labels:(place[row]+1)*r.Labels])
			}
		}
		return &r
	})
}

// Scaled returns d with targets scaled to [0, 1] as labels. It takes the memory of the targets.
func (d *Data) Scaled(b *Bounds) *Data {
	return d.changed(func(r *Rows) *Rows { return scaledRows(r, b) })
}

// scaledRows returns r with scaled targets.
func scaledRows(r *Rows, b *Bounds) *Rows {
	s := *r
	s.D = make([]float32, len(r.D))
	for i := range r.N {
		b.Scale(s.Label(i), r.Label(i))
	}
	return &s
}

// Sample returns d with n of its training rows, or with all if there are fewer. The key draws
// them. All other rows are Outside.
func (d *Data) Sample(n int, key num.Key) *Data {
	var rows []int
	for row, role := range d.roles {
		if role == Train {
			rows = append(rows, row)
		}
	}
	s := NewData(d.Manifest, slices.Repeat([]Roles{Outside}, len(d.roles)))
	s.of = d
	p := num.NewPermutation(key, 0, 0, uint64(len(rows)))
	for i := range min(n, len(rows)) {
		s.roles[rows[p.At(uint64(i))]] = Train
	}
	return s
}

// made returns shard i of data whose shards are another's.
func (d *Data) made(i int) *Rows {
	raw := d.of.Shard(i)
	if d.change == nil {
		return raw
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.shards[i].Load()
	if r == nil {
		r = d.change(raw)
		d.shards[i].Store(r)
	}
	return r
}

// SetShard adds shard i. Rows of a shard never change.
func (d *Data) SetShard(i int, r *Rows) {
	d.shards[i].Store(r)
}

// HasShard reports whether shard i was added.
func (d *Data) HasShard(i int) bool {
	if d.of != nil {
		return d.of.HasShard(i)
	}
	return d.shards[i].Load() != nil
}

// Shard returns shard i, which must have been added: the shards of a unit are added before
// the kernel runs.
func (d *Data) Shard(i int) *Rows {
	switch r := d.shards[i].Load(); {
	case r != nil:
		return r
	case d.of != nil:
		return d.made(i)
	}
	panic(fmt.Sprintf("dataset: shard %d is not at hand", i))
}

// Role returns the role of an original row number.
func (d *Data) Role(row uint32) Roles { return d.roles[row] }

// WithWeight returns refs without rows of weight 0.
func (d *Data) WithWeight(refs []RowRef) []RowRef {
	if !d.Manifest.HasWeights {
		return refs
	}
	var some []RowRef
	for _, ref := range refs {
		if d.Shard(int(ref.Shard)).WeightOf(int(ref.Pos)) > 0 {
			some = append(some, ref)
		}
	}
	return some
}

// Learned reports whether a job may train on a row: it is a training row, or a validation row that the job drew.
func (d *Data) Learned(row uint32) bool {
	return d.roles[row] == Train || d.roles[row] == Validation && !d.own
}

// Select lists the rows of shards [lo, hi) whose role is in roles, in the order
// of shard and position. Train|Validation are the rows that a job may train on: validation rows of the dataset are
// none. The result is shared: do not write to it. It is computed once for each argument list.
func (d *Data) Select(lo, hi int, roles Roles) []RowRef {
	if d.own && roles == Train|Validation {
		roles = Train
	}
	if d.change != nil { // the rows are the same
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

// masked returns r with the hidden degrees of the training and validation rows missing.
func (r *Rows) masked(k Mask, seed uint64, roles []Roles) *Rows {
	m := *r
	m.Incomplete, m.D = true, slices.Clone(r.D)
	for i, row := range r.Row {
		if roles[row]&(Train|Validation) != 0 {
			k.Hide(m.Label(i), seed, int(row))
			Repair(m.Label(i))
		}
	}
	return &m
}
