package rows

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// ErrRows is wrapped by every error about rows that a worker, a state or a file has.
var ErrRows = errors.New("the samples do not match the dataset")

// Wanted says which training rows are kept, and what of them.
type Wanted struct {
	// Labels: with their label distributions.
	Labels bool
	// Most rows at most are kept: those of the least priority under Key, which is drawn for
	// each row number. 0: all rows are kept.
	Most int
	Key  num.Key
}

// priority orders rows: a random number by the original number of the row.
func (w *Wanted) priority(row uint32) uint64 {
	x := num.Philox(w.Key, [4]uint32{row})
	return uint64(x[0]) | uint64(x[1])<<32
}

// Least returns the positions, ascending, of the n rows of the least priority, or of all rows if
// there are not so many. The same rows are chosen however many others of greater priority there
// are.
func (w *Wanted) Least(r *dataset.Rows, n int) []int {
	all := make([]int, r.N)
	for i := range all {
		all[i] = i
	}
	return w.least(all, n, func(i int) uint32 { return r.Row[i] })
}

// least returns the n positions whose rows have the least priority, ascending.
func (w *Wanted) least(all []int, n int, row func(int) uint32) []int {
	if len(all) <= n {
		return all
	}
	type drawn struct {
		priority uint64
		row      uint32
		at       int
	}
	order := make([]drawn, len(all))
	for i, at := range all {
		order[i] = drawn{w.priority(row(at)), row(at), at}
	}
	slices.SortFunc(order, func(a, b drawn) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.row, b.row))
	})
	chosen := make([]int, n)
	for i := range chosen {
		chosen[i] = order[i].at
	}
	slices.Sort(chosen)
	return chosen
}

// keep is least where Most bounds the rows.
func (w *Wanted) keep(refs []dataset.RowRef, shard func(uint32) *dataset.Rows) []dataset.RowRef {
	if w.Most == 0 || len(refs) <= w.Most {
		return refs
	}
	all := make([]int, len(refs))
	for i := range all {
		all[i] = i
	}
	kept := make([]dataset.RowRef, 0, w.Most)
	for _, i := range w.least(all, w.Most, func(i int) uint32 { return shard(refs[i].Shard).Row[refs[i].Pos] }) {
		kept = append(kept, refs[i])
	}
	return kept
}

// Collect returns the rows of a unit of a collected round over the shards, as an encoded shard. Rows of weight 0 are no
// rows.
func Collect(u round.Task, d *dataset.Data, w *Wanted) []byte {
	shard := func(i uint32) *dataset.Rows { return d.Shard(int(i)) }
	return dataset.EncodeShard(gather(w.keep(d.WithWeight(u.Rows(d)), shard), shard, d.Manifest, w.Labels), nil)
}

// Gather returns the rows of a unit that sees all shards, by original row number, with their weights if they have any.
// Rows of weight 0 are no rows.
func Gather(u round.Task, d *dataset.Data, w *Wanted) *dataset.Rows {
	shard := func(i uint32) *dataset.Rows { return d.Shard(int(i)) }
	refs := slices.Clone(w.keep(d.WithWeight(u.Rows(d)), shard))
	sortByNumber(refs, shard)
	r := gather(refs, shard, d.Manifest, w.Labels)
	if d.Manifest.HasWeights {
		for _, ref := range refs {
			r.Weight = append(r.Weight, shard(ref.Shard).WeightOf(int(ref.Pos)))
		}
	}
	return r
}

func sortByNumber(refs []dataset.RowRef, shard func(uint32) *dataset.Rows) {
	slices.SortFunc(refs, func(a, b dataset.RowRef) int {
		return cmp.Compare(shard(a.Shard).Row[a.Pos], shard(b.Shard).Row[b.Pos])
	})
}

// gather copies rows.
func gather(refs []dataset.RowRef, shard func(uint32) *dataset.Rows, m *dataset.Manifest, labels bool) *dataset.Rows {
	r := &dataset.Rows{N: len(refs), Features: m.Features, Sparse: m.Sparse, Row: make([]uint32, 0, len(refs))}
	if labels {
		r.Labels, r.D = m.Labels, make([]float32, 0, len(refs)*m.Labels)
	}
	if m.Sparse {
		r.Start = append(make([]uint32, 0, len(refs)+1), 0)
	} else {
		r.X = make([]float32, 0, len(refs)*m.Features)
	}
	for _, ref := range refs {
		s, i := shard(ref.Shard), int(ref.Pos)
		r.Row = append(r.Row, s.Row[i])
		if labels {
			r.D = append(r.D, s.Label(i)...)
		}
		if !m.Sparse {
			r.X = append(r.X, s.Dense(i)...)
			continue
		}
		columns, values := s.NonZeros(i)
		r.Index, r.X = append(r.Index, columns...), append(r.X, values...)
		r.Start = append(r.Start, uint32(len(r.X)))
	}
	return r
}

// Join puts together what Collect returned for the units of a round, by original row number. It
// checks the bytes as a decoder does, and sets the elements of parts to nil to free their memory.
// Errors wrap ErrRows, or come from algorithms.Nothing.
func Join(parts [][]byte, m *dataset.Manifest, w *Wanted) (*dataset.Rows, error) {
	var units []*dataset.Rows
	var refs []dataset.RowRef
	values := 0
	for u, b := range parts {
		r, err := decode(b, m, w)
		if err != nil {
			return nil, fmt.Errorf("task %d: %w", u, err)
		}
		units, values = append(units, r), values+len(r.Index)
		for i := range r.N {
			refs = append(refs, dataset.RowRef{Shard: uint32(u), Pos: uint32(i)})
		}
		parts[u] = nil
	}
	if len(refs) == 0 {
		return nil, algorithms.Nothing(m)
	}
	if values > dataset.MaxRows {
		return nil, fmt.Errorf("%w: %d non-zero values, at most %d are possible", ErrRows, values, uint32(dataset.MaxRows))
	}
	shard := func(i uint32) *dataset.Rows { return units[i] }
	refs = w.keep(refs, shard)
	sortByNumber(refs, shard)
	r := gather(refs, shard, m, w.Labels)
	return r, check(r, m.Rows)
}

// Select returns some rows of r, whose positions ascend.
func Select(r *dataset.Rows, at []int) *dataset.Rows {
	refs := make([]dataset.RowRef, len(at))
	for i, pos := range at {
		refs[i].Pos = uint32(pos)
	}
	m := &dataset.Manifest{Features: r.Features, Labels: r.Labels, Sparse: r.Sparse}
	return gather(refs, func(uint32) *dataset.Rows { return r }, m, r.Labels > 0)
}

// Decode reads rows that Join returned, or some of them, and that dataset.EncodeShard encoded. They
// may share the memory of b. Errors wrap ErrRows.
func Decode(b []byte, m *dataset.Manifest, w *Wanted) (*dataset.Rows, error) {
	r, err := decode(b, m, w)
	if err != nil {
		return nil, err
	}
	if r.N == 0 {
		return nil, fmt.Errorf("%w: there are no samples", ErrRows)
	}
	return r, check(r, m.Rows)
}

// decode reads an encoded shard of kept rows, which may share the memory of b.
func decode(b []byte, m *dataset.Manifest, w *Wanted) (*dataset.Rows, error) {
	r, err := dataset.DecodeShard(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRows, err)
	}
	labels := 0
	if w.Labels {
		labels = m.Labels
	}
	if r.Features != m.Features || r.Labels != labels || r.Sparse != m.Sparse || r.Named() || r.Value != nil ||
		r.Interval != nil {
		return nil, fmt.Errorf("%w: the samples have %d features and %d labels, or are not stored as the dataset is", ErrRows,
			r.Features, r.Labels)
	}
	if w.Most > 0 && r.N > w.Most {
		return nil, fmt.Errorf("%w: got %d samples, want at most %d", ErrRows, r.N, w.Most)
	}
	return r, checkValues(r)
}

// check refuses rows that do not ascend within so many, or whose values no dataset has.
func check(r *dataset.Rows, most int) error {
	for i, row := range r.Row {
		if int64(row) >= int64(most) || i > 0 && row <= r.Row[i-1] {
			return fmt.Errorf("%w: sample %d of %d is at position %d, so the samples are not sorted", ErrRows, row, most, i)
		}
	}
	return checkValues(r)
}

func checkValues(r *dataset.Rows) error {
	if !num.Finite32(r.X) {
		return fmt.Errorf("%w: a feature is not finite", ErrRows)
	}
	for _, d := range r.D {
		if !(d >= 0 && d <= math.MaxFloat32) {
			return fmt.Errorf("%w: a probability of a label is %v", ErrRows, d)
		}
	}
	return nil
}
