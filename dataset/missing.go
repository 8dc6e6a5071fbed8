package dataset

import (
	"fmt"
	"math"
	"slices"
	"strconv"

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

	keep bool // pass missing values on, for Inspect
}

// ParseMissing reads "refuse" (or nothing), "drop" or a number.
func ParseMissing(s string) (Missing, error) {
	switch s {
	case "", "refuse":
		return Missing{}, nil
	case "drop":
		return Missing{Drop: true}, nil
	}
	v, err := units.ParseFloat(s)
	if v = float64(float32(v)); err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return Missing{}, fmt.Errorf("missing %q: want refuse, drop or a number to put there", s)
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
	return ""
}

// refuses tells whether missing values are refused.
func (m Missing) refuses() bool { return !m.Drop && !m.Fill && !m.keep }

// Advice in errors about missing labels, and about missing features.
const (
	dropHint    = "; --missing drop leaves such rows out"
	missingHint = dropHint + ", --missing 0 puts 0 (or another number) there"
)

// filledSource is a Source that fills, drops or refuses the missing values (NaN) of another.
type filledSource struct {
	Source
	info    Info
	missing Missing
	classes bool // labels are Row.text
}

// withMissing applies o.Missing to the rows of src.
func withMissing(src Source, o *OpenOptions) Source {
	if o.Missing.refuses() {
		return src
	}
	s := &filledSource{Source: src, info: src.Info(), missing: o.Missing, classes: !o.NoLabels && o.Labels.Kind == Class}
	if s.info.Missing = o.Missing; o.Missing.Drop {
		s.info.Rows = -1
	}
	return s
}

// Info describes the rows.
func (s *filledSource) Info() Info { return s.info }

// Scan implements Source.
func (s *filledSource) Scan(f func(*Row) error) error {
	var row Row
	var values []float64
	return s.Source.Scan(func(r *Row) error {
		row = *r
		label := slices.IndexFunc(r.Labels, math.IsNaN)
		feature := slices.IndexFunc(r.Values, math.IsNaN)
		unlabelled := label >= 0 || s.classes && isMissing(r.text) || s.info.lacksBeside(r)
		switch {
		case s.missing.keep:
			row.LeftOut = unlabelled
		case s.missing.Drop:
			row.LeftOut = feature >= 0 || unlabelled
		case label >= 0:
			return &RowError{
				File: s.info.File, Row: r.Number, Column: label, Kind: "label", Name: nameAt(s.info.LabelNames, label),
				Reason: "is missing, and only features are filled" + dropHint,
			}
		case feature >= 0:
			values = append(values[:0], r.Values...)
			fill(values, s.missing.Value)
			row.Values = values
		}
		return f(&row)
	})
}

func fill(values []float64, by float64) {
	for i, v := range values {
		if math.IsNaN(v) {
			values[i] = by
		}
	}
}
