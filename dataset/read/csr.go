package read

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/units"
)

// csrMatrix is a sparse matrix in the arrays of SciPy's csr_matrix: the values of all rows, their columns, the
// positions at which rows begin and end, and the shape.
type csrMatrix struct {
	data, indices, indptr, shape *array
}

// csrParts are the ends of the names of the arrays, as of the attributes in SciPy.
var csrParts = [4]string{"_data", "_indices", "_indptr", "_shape"}

// csrOf returns the sparse matrix of a name, or nil if entries have none of it. Entries with the array of the name and
// all arrays of a sparse matrix are ambiguous.
func csrOf(entries map[string]*array, name string) (*csrMatrix, error) {
	var found [4]*array
	var lacks []string
	for i, part := range csrParts {
		if found[i] = entries[name+part]; found[i] == nil {
			lacks = append(lacks, fmt.Sprintf("%q", name+part))
		}
	}
	dense := entries[name] != nil
	switch {
	case len(lacks) == 4 || dense && len(lacks) > 0:
		return nil, nil
	case dense:
		return nil, dataset.Errorf(dataset.ErrAmbiguous,
			"%q is both an array and a sparse matrix (%q and others): write only one of them", name, name+csrParts[0])
	case len(lacks) > 0:
		return nil, dataset.Errorf(dataset.ErrFormat, "the sparse matrix %q lacks %s; it needs four arrays: for a "+
			"csr_matrix X of SciPy, %s", name, strings.Join(lacks, ", "), csrAdvice(name))
	}
	return &csrMatrix{data: found[0], indices: found[1], indptr: found[2], shape: found[3]}, nil
}

// csrAdvice says how NumPy writes a sparse matrix X of SciPy.
func csrAdvice(name string) string {
	return fmt.Sprintf("numpy.savez(FILE, %[1]s_data=X.data, %[1]s_indices=X.indices, %[1]s_indptr=X.indptr, "+
		"%[1]s_shape=X.shape, labels=D)", name)
}

// dimensions returns the shape of the matrix, and checks the lengths of the arrays.
func (m *csrMatrix) dimensions() (rows, columns int, err error) {
	var sides [2]float64
	if err := m.shape.readIntegers(sides[:]); err != nil {
		return 0, 0, err
	}
	for _, n := range sides {
		if n < 0 || n > dataset.MaxRows {
			return 0, 0, fmt.Errorf("%q is %s x %s, want positive numbers of at most %d: %w", m.shape.name,
				units.InFull(sides[0]), units.InFull(sides[1]), uint32(dataset.MaxRows), dataset.ErrFormat)
		}
	}
	rows, columns = int(sides[0]), int(sides[1])
	if err := checkSize(m.shape.name, rows, columns, dataset.MaxFeatures); err != nil {
		return 0, 0, err
	}
	values, err := m.data.elements(false)
	if err != nil {
		return 0, 0, err
	}
	indices, err := m.indices.elements(true)
	if err != nil {
		return 0, 0, err
	}
	ends, err := m.indptr.elements(true)
	switch {
	case err != nil:
	case indices != values:
		err = fmt.Errorf("%q has %s values and %q has %s, want as many: %w", m.data.name, units.Count(values), m.indices.name,
			units.Count(indices), dataset.ErrFormat)
	case ends != rows+1:
		err = fmt.Errorf("%q has %s values, want %s: one more than the rows in %q: %w", m.indptr.name, units.Count(ends),
			units.Count(rows+1), m.shape.name, dataset.ErrFormat)
	}
	return rows, columns, err
}

// csrReader reads the rows of a sparse matrix in order.
type csrReader struct {
	data, indices, indptr *openArray

	columns int
	at      int // the values that were read
	values  int // of all rows
	raw     []float64
	row     dataset.Row // with the columns and values of the last row
}

// begin begins to read the rows of a matrix with so many columns. The caller closes the reader, also after an error.
func (m *csrMatrix) begin(columns int) (r *csrReader, err error) {
	r = &csrReader{columns: columns}
	if r.data, err = m.data.begin(); err != nil {
		return r, err
	}
	r.values = r.data.Shape[0]
	if r.indices, err = m.indices.begin(); err != nil {
		return r, err
	}
	if r.indptr, err = m.indptr.begin(); err != nil {
		return r, err
	}
	first := [1]float64{}
	if err = r.indptr.read(first[:]); err == nil && first[0] != 0 {
		err = fmt.Errorf("%q begins with %s, want 0: %w", m.indptr.name, units.InFull(first[0]), dataset.ErrFormat)
	}
	return r, err
}

// next reads the columns and values of the next row, which are valid until the next call. Memory grows with the values
// that were read.
func (r *csrReader) next() (columns []uint32, values []float64, err error) {
	end := [1]float64{}
	if err := r.indptr.read(end[:]); err != nil {
		return nil, nil, err
	}
	n := end[0] - float64(r.at)
	switch {
	case n < 0:
		return nil, nil, fmt.Errorf("%q descends from %s to %s, but the ends of rows must not descend: %w", r.indptr.name,
			units.Count(r.at), units.InFull(end[0]), dataset.ErrFormat)
	case end[0] > float64(r.values):
		return nil, nil, fmt.Errorf("%q has %s, but %q has only %s values: %w", r.indptr.name, units.InFull(end[0]),
			r.data.name, units.Count(r.values), dataset.ErrFormat)
	case n > float64(r.columns):
		return nil, nil, fmt.Errorf("the row has %s values for %s columns; in SciPy, X.sum_duplicates() adds the values of "+
			"a column: %w", units.InFull(n), units.Count(r.columns), dataset.ErrFormat)
	}
	r.row.Columns, r.row.Values = r.row.Columns[:0], r.row.Values[:0]
	for left := int(n); left > 0; {
		k := min(left, tablePiece)
		if err := r.readPiece(k); err != nil {
			return nil, nil, err
		}
		left -= k
	}
	r.at += int(n)
	return r.row.Columns, r.row.Values, nil
}

// readPiece reads the next k values of the row.
func (r *csrReader) readPiece(k int) error {
	r.raw = slices.Grow(r.raw[:0], k)[:k]
	if err := r.indices.read(r.raw); err != nil {
		return err
	}
	for _, c := range r.raw {
		if c < 0 || c >= float64(r.columns) {
			return fmt.Errorf("%q has the column %s, want 0 to %d: %w", r.indices.name, units.InFull(c), r.columns-1,
				dataset.ErrFormat)
		}
		column := uint32(c)
		if n := len(r.row.Columns); n > 0 && r.row.Columns[n-1] >= column {
			before := r.row.Columns[n-1]
			if before == column {
				return fmt.Errorf("%q has the column %d twice in this row; in SciPy, X.sum_duplicates() adds the values of a "+
					"column: %w", r.indices.name, column, dataset.ErrFormat)
			}
			return fmt.Errorf("%q has the column %d after %d, but columns must ascend in a row; in SciPy, X.sort_indices() "+
				"sorts them: %w", r.indices.name, column, before, dataset.ErrFormat)
		}
		r.row.Columns = append(r.row.Columns, column)
	}
	from := len(r.row.Values)
	r.row.Values = append(r.row.Values, r.raw...)
	return r.data.read(r.row.Values[from:])
}

// end reports values after the last row.
func (r *csrReader) end() error {
	if r.at != r.values {
		return fmt.Errorf(
			"%q ends at %s, but %q has %s values; in SciPy, X.prune() removes the values after the last row: %w", r.indptr.name,
			units.Count(r.at), r.data.name, units.Count(r.values), dataset.ErrFormat)
	}
	for _, a := range []*openArray{r.data, r.indices, r.indptr} {
		if err := arrayError(a.name, a.End()); err != nil {
			return err
		}
	}
	return nil
}
