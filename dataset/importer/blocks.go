package importer

import (
	"github.com/coppice-ldl/coppice/dataset"
)

// Blocks reads src in the order of the file and hands it to f in blocks of at
// most size rows, for prediction and evaluation without an import. f may keep the block and
// the names (nil if rows have none). Each block is stored sparse or dense by its own
// density.
func Blocks(src dataset.Source, size int, o Options, f func(*dataset.Rows, []string) error) error {
	info := src.Info()
	if err := info.Check(); err != nil {
		return err
	}
	b := newBlock(info, size)
	err := Scan(src, &o, "read", info.Rows, func(r *dataset.Row, c *Checker) error {
		b.add(r, c)
		if b.rows.N < size {
			return nil
		}
		rows, names := b.finish()
		b = newBlock(info, size)
		return f(rows, names)
	})
	if err != nil || b.rows.N == 0 {
		return err
	}
	return f(b.finish())
}

// block collects rows as compressed sparse rows.
type block struct {
	info  dataset.Info
	rows  *dataset.Rows
	names []string
}

func newBlock(info dataset.Info, size int) *block {
	return &block{info: info, rows: &dataset.Rows{
		Features: info.Features, Labels: info.Labels, Incomplete: info.LabelType.Incomplete, Sparse: true,
		Start: make([]uint32, 1, size+1), Row: make([]uint32, 0, size),
	}}
}

func (b *block) add(r *dataset.Row, c *Checker) {
	columns, values := c.Stored(true)
	b.rows.N++
	b.rows.X = append(b.rows.X, values...)
	b.rows.Index = append(b.rows.Index, columns...)
	b.rows.Start = append(b.rows.Start, uint32(len(b.rows.X)))
	b.rows.D = append(b.rows.D, c.Labels...)
	b.rows.Row = append(b.rows.Row, uint32(r.Number))
	if b.info.HasValues {
		b.rows.Value = append(b.rows.Value, r.Value)
	}
	if b.info.HasIntervals {
		b.rows.Interval = append(b.rows.Interval, r.Interval[:]...)
	}
	if b.info.HasWeights {
		b.rows.Weight = append(b.rows.Weight, r.Weight)
	}
	if b.info.HasRowNames {
		b.names = append(b.names, r.Name)
	}
}

func (b *block) finish() (*dataset.Rows, []string) {
	r := b.rows
	if dataset.SparseStorage(r.N, r.Features, int64(len(r.X))) {
		return r, b.names
	}
	dense := make([]float32, r.N*r.Features)
	for i := range r.N {
		columns, values := r.NonZeros(i)
		for j, column := range columns {
			dense[i*r.Features+int(column)] = values[j]
		}
	}
	r.Sparse, r.X, r.Index, r.Start = false, dense, nil, nil
	return r, b.names
}
