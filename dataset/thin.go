package dataset

import "github.com/coppice-ldl/coppice/dataset/matfile"

// thin takes a dense matrix in, value by value, column after column. It keeps only
// the non-zeros while these are few, since a file of counts or of 0 and 1 may be a
// hundred times as large as what is in it.
type thin struct {
	rows, columns int
	done          int // values so far
	few           matfile.SparseMatrix
	all           *columnSpool[float32] // every value, once the non-zeros are not few
}

// thinSlack is how many values are looked at before the non-zeros may be too many.
const thinSlack = 1 << 16

// readTable reads a matrix of features that comes column by column.
func readTable(rows, columns int, read func([]float64) error) (*table, error) {
	t := thin{rows: rows, columns: columns}
	var piece [tablePiece]float64
	for total := rows * columns; t.done < total; {
		k := min(total-t.done, tablePiece)
		if err := read(piece[:k]); err != nil {
			return nil, err
		}
		if err := t.add(piece[:k]); err != nil {
			return nil, err
		}
	}
	return t.table()
}

func (t *thin) add(values []float64) error {
	if t.all == nil && (t.many() || t.rows > 2*maxSparse || len(t.few.Row) > maxSparse) {
		if err := t.expand(); err != nil {
			return err
		}
	}
	if t.all != nil {
		t.done += len(values)
		return t.all.add(values)
	}
	for _, v := range values {
		if v != 0 {
			t.begin(t.done / t.rows)
			t.few.Row = append(t.few.Row, int32(t.done%t.rows))
			t.few.Values = append(t.few.Values, v)
		}
		t.done++
	}
	return nil
}

// many reports whether dense storage is smaller than the non-zeros.
func (t *thin) many() bool { return len(t.few.Row)*sparseDivisor > t.done+thinSlack }

// begin notes where the columns up to number c begin, if that is not known.
func (t *thin) begin(c int) {
	for len(t.few.Start) <= c {
		t.few.Start = append(t.few.Start, int32(len(t.few.Row)))
	}
}

// expand goes over to dense storage.
func (t *thin) expand() error {
	t.begin(t.columns)
	t.all = newColumnSpool[float32](t.rows, t.columns)
	at := 0 // values so far
	for c := range t.columns {
		for k := t.few.Start[c]; k < t.few.Start[c+1]; k++ {
			next := c*t.rows + int(t.few.Row[k])
			if err := t.all.zeros(next - at); err != nil {
				return err
			}
			if err := t.all.add(t.few.Values[k : k+1]); err != nil {
				return err
			}
			at = next + 1
		}
	}
	t.few = matfile.SparseMatrix{}
	return t.all.zeros(t.done - at)
}

// table returns the whole matrix by rows, sparse if a dataset of it would be.
func (t *thin) table() (*table, error) {
	if t.all == nil && !SparseStorage(t.rows, t.columns, int64(len(t.few.Row))) {
		if err := t.expand(); err != nil {
			return nil, err
		}
	}
	if t.all == nil {
		t.begin(t.columns)
		return byRows(t.rows, t.columns, &t.few), nil
	}
	dense, file, err := t.all.end()
	return &table{rows: t.rows, columns: t.columns, dense: dense, file: file}, err
}
