package dataset

import (
	"encoding/binary"
	"fmt"
	"math"
)

// LeftOut lists the rows of a file that were left out, by their numbers in it,
// ascending: the distance of each from the one before (of the first from -1) as
// unsigned varints.
type LeftOut []byte

// maxLeftOut bounds the list of a manifest, in bytes.
const maxLeftOut = 4 << 20

// add appends row; last is the row that was appended before, or -1.
func (l *LeftOut) add(last, row int) { *l = binary.AppendUvarint(*l, uint64(row-last)) }

// Rows lists the row numbers; rows is how many there are in the file.
func (l LeftOut) Rows(rows int) (all []int, err error) {
	last := -1
	for rest := []byte(l); len(rest) > 0; {
		d, n := binary.Uvarint(rest)
		if n <= 0 || d == 0 || d > math.MaxUint32 || last+int(d) >= rows {
			return nil, fmt.Errorf("dataset: the list of omitted rows is damaged: %w", ErrFormat)
		}
		last += int(d)
		all, rest = append(all, last), rest[n:]
	}
	return all, nil
}

// count returns the number of rows in the list.
func (l LeftOut) count() (n int) {
	for _, b := range l {
		if b < 0x80 { // the last byte of a varint
			n++
		}
	}
	return n
}

// LeftOutRows lists the rows of the file that were left out for missing values, by
// their numbers in it.
func (m *Manifest) LeftOutRows() []int {
	rows, err := m.LeftOut.Rows(m.FileRows())
	if err != nil { // Check refuses such a manifest
		return nil
	}
	return rows
}

// FileRows is the number of rows of the file that the dataset was imported from.
func (m *Manifest) FileRows() int { return m.Rows + m.LeftOut.count() }

// FileRow returns the number that each row of the dataset has in the file that it
// was imported from; nil where it is the same.
func (m *Manifest) FileRow() []int {
	out := m.LeftOutRows()
	if len(out) == 0 {
		return nil
	}
	kept := make([]int, 0, m.Rows)
	for row := range m.FileRows() {
		if len(out) > 0 && out[0] == row {
			out = out[1:]
		} else {
			kept = append(kept, row)
		}
	}
	return kept
}

// ToFile replaces each row number of the dataset by the row's number in the file.
// A row that the dataset does not have is an error that wraps ErrFormat.
func (m *Manifest) ToFile(rows []uint32) error {
	kept := m.FileRow()
	for i, row := range rows {
		if int64(row) >= int64(m.Rows) {
			return fmt.Errorf("dataset: there is no row %d among the %d rows: %w", row, m.Rows, ErrFormat)
		}
		if kept != nil {
			rows[i] = uint32(kept[row])
		}
	}
	return nil
}
