package dataset

import (
	"math"

	"github.com/coppice-ldl/coppice/dataset/matfile"
)

// thin takes a dense matrix in, value by value, column after column. It keeps only
// the non-zeros while these are few, since a file of counts or of 0 and 1 may be a
// hundred times as large as what is in it.
type thin struct {
	rows, columns int
	done          int // values so far
	few           matfile.SparseMatrix
	all           []float32 // every value, once the non-zeros are not few
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
		t.add(piece[:k])
	}
	return t.table(), nil
}

func (t *thin) add(values []float64) {
	if t.all == nil && (t.many() || t.rows > math.MaxInt32 || len(t.few.Row) > math.MaxInt32-len(values)) {
		t.expand()
	}
	for _, v := range values {
		switch {
		case t.all != nil:
			t.all = append(t.all, float32(v))
		case v != 0:
			t.begin(t.done / t.rows)
			t.few.Row = append(t.few.Row, int32(t.done%t.rows))
			t.few.Values = append(t.few.Values, v)
		}
		t.done++
	}
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
func (t *thin) expand() {
	t.begin(t.columns)
	t.all = make([]float32, t.done, t.done+tablePiece)
	for c := range t.columns {
		for k := t.few.Start[c]; k < t.few.Start[c+1]; k++ {
			t.all[c*t.rows+int(t.few.Row[k])] = float32(t.few.Values[k])
		}
	}
	t.few = matfile.SparseMatrix{}
}

// table returns the whole matrix by rows, sparse if a dataset of it would be.
func (t *thin) table() *table {
	if t.all == nil && !SparseStorage(t.rows, t.columns, int64(len(t.few.Row))) {
		t.expand()
	}
	if t.all == nil {
		t.begin(t.columns)
		return byRows(t.rows, t.columns, &t.few)
	}
	dense := t.all
	if t.rows > 1 && t.columns > 1 {
		dense = transpose(dense, t.rows, t.columns)
	}
	return &table{rows: t.rows, columns: t.columns, dense: dense}
}
