package dataset

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// Missing says what readers do with missing values: in text files empty fields and the words
// that FORMAT.md lists, in other files NaN. The zero value refuses them.
type Missing struct {
	// Drop leaves out each row with a missing feature or label; the others keep
	// their row numbers in the file.
	Drop bool
	// Fill puts Value in the place of missing features. Labels are not filled.
	Fill  bool
	Value float64
	// By is FillMean or FillMedian: the mean or the median of a feature in the training samples of
	// a job takes the place of its missing values, which rows keep as NaN until then.
	By string

	keep  bool    // pass missing values on, for Inspect
	model *Schema // of the model that the file is for; nil: none
}

// The values of Missing.By.
const (
	FillMean   = "mean"
	FillMedian = "median"
)

// ParseMissing reads "refuse" (or nothing), "drop", "mean", "median" or a number.
func ParseMissing(s string) (Missing, error) {
	switch s {
	case "", "refuse":
		return Missing{}, nil
	case "drop":
		return Missing{Drop: true}, nil
	case FillMean, FillMedian:
		return Missing{By: s}, nil
	}
	v, err := units.ParseFloat(s)
	given := v
	if v = float64(float32(v)); err != nil || v == 0 && given != 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return Missing{}, errtext.Errorf(errtext.WrongOption, "{missing=%s}: want {missing:refuse}, {missing:drop}, {missing:mean}, {missing:median} or a number that replaces missing values", s)
	}
	return Missing{Fill: true, Value: v}, nil
}

// String writes what ParseMissing reads; "" refuses.
func (m Missing) String() string {
	switch {
	case m.Drop:
		return "drop"
	case m.Fill:
		return strconv.FormatFloat(m.Value, 'g', -1, 32)
	}
	return m.By
}

// refuses tells whether missing values are refused.
func (m Missing) refuses() bool { return !m.Drop && !m.Fill && !m.keep && m.By == "" }

// Advice in errors about missing labels, and about missing features.
var (
	dropHint    = errtext.Sprintf("; {missing=drop} leaves such samples out")
	missingHint = errtext.Sprintf("%s, {missing=0} replaces missing features by 0 (or another number)", dropHint)
)

// fills reports whether the model keeps what takes the place of missing features.
func (s *Schema) fills() bool { return len(s.Fill) == s.Features && s.Features > 0 }

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

// lack is what a row that is left out has not.
type lack uint8

const (
	lacksNothing lack = iota
	lacksValue        // of features, labels, exact numbers, intervals, groups or names
	lacksImage        // the name of its image
	lacksDegrees      // all labels are 0
)

// valueOf says what a value in a file is.
type valueOf bool

const (
	ofFeature valueOf = true
	ofLabel   valueOf = false // or an exact number or an interval
)

// hint is advice in errors about a missing value. Of the mean and the median a model keeps one or none.
func (m Missing) hint(what valueOf) errtext.Text {
	switch {
	case what == ofLabel:
		return dropHint
	case m.model == nil:
		return missingHint + errtext.Sprintf(", {missing=mean} (or {missing:median}) by the mean of the training samples")
	case m.model.fills():
		return errtext.Sprintf("%s, {missing=%s} by the %[2]s of the training samples", missingHint, m.model.Reading.Missing)
	}
	return missingHint + "; the model does not have the mean or median of its training samples"
}

// wordCounts counts the rows with each word that was taken for a missing value.
type wordCounts struct{ rows map[string]*wordCount }

// add notes a word of a row; an empty field and NaN are no words.
func (c *wordCounts) add(field string, row int) {
	word := strings.TrimSpace(field)
	if word == "" || strings.EqualFold(word, "nan") {
		return
	}
	n := c.rows[word]
	if n == nil {
		if c.rows == nil {
			c.rows = map[string]*wordCount{}
		}
		n = &wordCount{last: -1}
		c.rows[strings.Clone(word)] = n
	}
	if n.last != row {
		n.rows, n.last = n.rows+1, row
	}
}

type wordCount struct{ rows, last int } // last: the last row that has it
