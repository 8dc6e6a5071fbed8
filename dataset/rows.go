// Package dataset holds label-distribution data: rows, shards, manifests, the
// readers and generators that make them, and the views that choose among them.
// It knows nothing of networks or coordinators.
package dataset

// Rows is a block of N rows: features (float32, dense or sparse) and label
// distributions. The slices may alias a memory-mapped file: never write to them.
type Rows struct {
	N        int // rows
	Features int // columns of X
	Labels   int // columns of D; 0 where the rows carry no labels

	// Sparse rows use compressed sparse row storage; explicit zeros are not kept.
	Sparse bool
	// X holds N×Features values, row-major, or, when Sparse, only the non-zeros.
	X []float32
	// Index holds the column of each value of a sparse block, ascending in a row.
	Index []uint32
	// Start holds N+1 offsets into X and Index of a sparse block.
	Start []uint32

	// D holds N×Labels label degrees, row-major; each row sums to one.
	D []float32
	// Row holds the original number of each row (from 0): in the dataset, see
	// Manifest.FileRow, or, in what Blocks gives, in the file.
	Row []uint32

	// Value holds the exact number of each row on the scale of the labels, and Interval
	// two for each row: the least and the greatest number that it may have. Both are nil
	// where rows have none. See Scale.Number and Scale.Interval.
	Value    []float64
	Interval []float64

	// NameText holds the names of rows, one after the other, and NameEnds where each
	// ends; both are nil where rows have none.
	NameEnds []uint32
	NameText []byte
}

// Named tells whether rows have names.
func (r *Rows) Named() bool { return r.NameEnds != nil }

// Name returns a copy of the name of row i of a block whose rows have names.
func (r *Rows) Name(i int) string {
	from := uint32(0)
	if i > 0 {
		from = r.NameEnds[i-1]
	}
	return string(r.NameText[from:r.NameEnds[i]])
}

// setNames gives rows their names; nil: none.
func (r *Rows) setNames(names []string) {
	for _, name := range names {
		r.NameText = append(r.NameText, name...)
		r.NameEnds = append(r.NameEnds, uint32(len(r.NameText)))
	}
}

// Dense returns the features of row i of a dense block.
func (r *Rows) Dense(i int) []float32 {
	return r.X[i*r.Features : (i+1)*r.Features : (i+1)*r.Features]
}

// NonZeros returns the columns and values of row i of a sparse block.
func (r *Rows) NonZeros(i int) (columns []uint32, values []float32) {
	from, to := r.Start[i], r.Start[i+1]
	return r.Index[from:to:to], r.X[from:to:to]
}

// Label returns the label distribution of row i.
func (r *Rows) Label(i int) []float32 {
	return r.D[i*r.Labels : (i+1)*r.Labels : (i+1)*r.Labels]
}
