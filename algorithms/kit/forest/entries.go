package forest

import (
	"math"
	"slices"
)

// An entry is a row number with two flags. A column lists its entries in the order of their
// values. Rows are numbered within the training rows (in a table) or within a sample.
const (
	// NewValue marks an entry whose value is above the one before it.
	NewValue = 1 << 31
	// Positive marks an entry whose value is above 0.
	Positive = 1 << 30
	// RowMask has the bits of an entry's row.
	RowMask = Positive - 1
)

// maxEntries bounds the entries of all columns.
const maxEntries = math.MaxUint32 - 1

// NoEntry stands for the implicit zeros of a sparse column.
const NoEntry = 1<<32 - 1

// columns are the features of some rows, each sorted by value and then by row:
// column c is entries[start[c]:start[c+1]]. A sparse column has no entries for zeros; a
// dense column has an entry for each row.
type columns struct {
	start   []int
	entries []uint32
}

func (c *columns) column(i int) []uint32 { return c.entries[c.start[i]:c.start[i+1]] }

// Varies reports whether a column has at least two values in a node. entries are the
// node's entries of the column, and rows is the number of its rows. A row without an entry has the value 0.
func Varies(entries []uint32, rows int) bool {
	if len(entries) != rows {
		return len(entries) > 0
	}
	for _, e := range entries[1:] {
		if e&NewValue != 0 {
			return true
		}
	}
	return false
}

// Neighbours returns the entries on both sides of a threshold before entry index of a column,
// NoEntry for an implicit zero. The column's entries in the node, which has so many rows, are
// entries[from:to].
func Neighbours(entries []uint32, from, to, index uint32, zeroLeft bool, rows int) (lower, upper uint32) {
	lower, upper = index-1, index
	if int(to-from) == rows {
		return lower, upper
	}
	switch {
	case zeroLeft && (index == from || entries[index-1]&Positive == 0):
		lower = NoEntry
	case !zeroLeft && (index == to || entries[index]&Positive != 0):
		upper = NoEntry
	}
	return lower, upper
}

// CountNegative returns how many entries of a column, the first ones, are not positive. There
// is at least one entry.
func CountNegative(entries []uint32) int {
	if entries[0]&Positive != 0 {
		return 0
	}
	n, _ := slices.BinarySearchFunc(entries, Positive, func(e uint32, _ int) int { return int(e&Positive) - Positive })
	return n
}

// writeEntries turns sorted keys into entries.
func writeEntries(dst []uint32, sorted []uint64) {
	last := uint32(0) // below the bits of any finite value
	for i, k := range sorted {
		e, bits := uint32(k), uint32(k>>32)
		if bits != last {
			e |= NewValue
		}
		if bits > zeroBits {
			e |= Positive
		}
		dst[i], last = e, bits
	}
}
