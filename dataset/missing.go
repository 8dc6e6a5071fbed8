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

	Keep  bool    // pass missing values on, for package inspect
	Model *Schema // of the model that the file is for; nil: none
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
		return Missing{}, errtext.Errorf(errtext.WrongOption,
			"{missing=%s}: want {missing:refuse}, {missing:drop}, {missing:mean}, {missing:median} or a number that replaces "+
				"missing values", s)
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

// Refuses reports whether missing values are refused.
func (m Missing) Refuses() bool { return !m.Drop && !m.Fill && !m.Keep && m.By == "" }

// Advice in errors about missing labels, and about missing features.
var (
	DropHint = errtext.Sprintf("; {missing=drop} leaves such samples out")
	// IncompleteHint follows DropHint if the label is the degree of a distribution.
	IncompleteHint = errtext.Sprintf(", {labels=incomplete} keeps them and learns from their other labels")
	missingHint    = errtext.Sprintf("%s, {missing=0} replaces missing features by 0 (or another number)", DropHint)
)

// Fills reports whether the model keeps what takes the place of missing features.
func (s *Schema) Fills() bool { return len(s.Fill) == s.Features && s.Features > 0 }

// LeftOut lists the rows of a file that were left out, by their numbers in it,
// ascending: the distance of each from the one before (of the first from -1) as
// unsigned varints.
type LeftOut []byte

// MaxLeftOut bounds the list of a manifest, in bytes.
const MaxLeftOut = 4 << 20

// Add appends row; last is the row that was appended before, or -1.
func (l *LeftOut) Add(last, row int) { *l = binary.AppendUvarint(*l, uint64(row-last)) }

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

// Count returns the number of rows in the list.
func (l LeftOut) Count() (n int) {
	for _, b := range l {
		if b < 0x80 { // the last byte of a varint
			n++
		}
	}
	return n
}

// Lack is what a row that is left out has not.
type Lack uint8

const (
	LacksNothing Lack = iota
	LacksValue        // of features, labels, exact numbers, intervals, groups or names
	LacksImage        // the name of its image
	LacksDegrees      // all labels are 0
)

// ValueOf says what a value in a file is.
type ValueOf uint8

const (
	OfFeature ValueOf = iota
	OfLabel           // a number, a class or a count, or an exact number or an interval
	OfDegree          // of a label distribution
)

// Hint is advice in errors about a missing value. Of the mean and the median a model keeps one or none.
func (m Missing) Hint(what ValueOf) errtext.Text {
	switch {
	case what == OfLabel:
		return DropHint
	case what == OfDegree && m.Model == nil:
		return DropHint + IncompleteHint
	case what == OfDegree:
		return DropHint
	case m.Model == nil:
		return missingHint + errtext.Sprintf(", {missing=mean} (or {missing:median}) by the mean of the training samples")
	case m.Model.Fills():
		return errtext.Sprintf("%s, {missing=%s} by the %[2]s of the training samples", missingHint, m.Model.Reading.Missing)
	}
	return missingHint + "; the model does not have the mean or median of its training samples"
}

// WordCounts counts the rows with each word that was taken for a missing value.
type WordCounts struct{ Rows map[string]*wordCount }

// Add notes a word of a row; an empty field and NaN are no words.
func (c *WordCounts) Add(field string, row int) {
	word := strings.TrimSpace(field)
	if word == "" || strings.EqualFold(word, "nan") {
		return
	}
	n := c.Rows[word]
	if n == nil {
		if c.Rows == nil {
			c.Rows = map[string]*wordCount{}
		}
		n = &wordCount{last: -1}
		c.Rows[strings.Clone(word)] = n
	}
	if n.last != row {
		n.rows, n.last = n.rows+1, row
	}
}

type wordCount struct{ rows, last int } // last: the last row that has it
