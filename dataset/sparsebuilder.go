package dataset

import "github.com/coppice-ldl/coppice/dataset/matfile"

// sparseBuilder builds a table from the values of a dense matrix, column after column. It
// stores the non-zeros only, as long as they are few: a matrix of counts may be a hundred
// times as large as its non-zeros.
type sparseBuilder struct {
	rows, columns int
	done          int // values so far
	nonZeros      matfile.SparseMatrix
	dense         *columnSpool[float32] // every value, once the non-zeros are not few
}

// denseSlack is how many values come in before the builder considers dense storage.
const denseSlack = 1 << 16

// readTable reads a matrix of features that comes column by column.
func readTable(rows, columns int, read func([]float64) error) (*table, error) {
	t := sparseBuilder{rows: rows, columns: columns}
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

func (t *sparseBuilder) add(values []float64) error {
	if t.dense == nil && (t.denseIsSmaller() || t.rows > 2*maxSparse || len(t.nonZeros.Row) > maxSparse) {
		if err := t.makeDense(); err != nil {
			return err
		}
	}
	if t.dense != nil {
		t.done += len(values)
		return t.dense.add(values)
	}
	for _, v := range values {
		if v != 0 {
			t.startColumns(t.done / t.rows)
			t.nonZeros.Row = append(t.nonZeros.Row, int32(t.done%t.rows))
			t.nonZeros.Values = append(t.nonZeros.Values, v)
		}
		t.done++
	}
	return nil
}

// denseIsSmaller reports whether dense storage needs less memory than the non-zeros.
func (t *sparseBuilder) denseIsSmaller() bool {
	return len(t.nonZeros.Row)*sparseDivisor > t.done+denseSlack
}

// startColumns records where the columns up to number c begin.
func (t *sparseBuilder) startColumns(c int) {
	for len(t.nonZeros.Start) <= c {
		t.nonZeros.Start = append(t.nonZeros.Start, int32(len(t.nonZeros.Row)))
	}
}

// makeDense changes to dense storage.
func (t *sparseBuilder) makeDense() error {
	t.startColumns(t.columns)
	t.dense = newColumnSpool[float32](t.rows, t.columns)
	at := 0 // values so far
	for c := range t.columns {
		for k := t.nonZeros.Start[c]; k < t.nonZeros.Start[c+1]; k++ {
			next := c*t.rows + int(t.nonZeros.Row[k])
			if err := t.dense.zeros(next - at); err != nil {
				return err
			}
			if err := t.dense.add(t.nonZeros.Values[k : k+1]); err != nil {
				return err
			}
			at = next + 1
		}
	}
	t.nonZeros = matfile.SparseMatrix{}
	return t.dense.zeros(t.done - at)
}

// table returns the matrix by rows: sparse if SparseStorage says so.
func (t *sparseBuilder) table() (*table, error) {
	if t.dense == nil && !SparseStorage(t.rows, t.columns, int64(len(t.nonZeros.Row))) {
		if err := t.makeDense(); err != nil {
			return nil, err
		}
	}
	if t.dense == nil {
		t.startColumns(t.columns)
		return byRows(t.rows, t.columns, &t.nonZeros), nil
	}
	dense, file, err := t.dense.end()
	return &table{rows: t.rows, columns: t.columns, dense: dense, file: file}, err
}
