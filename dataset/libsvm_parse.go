package dataset

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// parse reads "d1,d2,... index:value index:value".
func (s *libsvmSource) parse(row *Row, text string) error {
	first := true
	for field := range strings.FieldsSeq(text) {
		index, value, isValue := strings.Cut(field, ":")
		var err error
		switch {
		case isValue:
			if first && s.labels {
				return &RowError{File: s.info.File, Row: row.Number, Line: row.line, Column: -1, Reason: "the line must begin with labels", Err: ErrNoLabels}
			}
			err = s.parseValue(row, index, value)
		case !first:
			return s.rowError(row, "found %.40q, want INDEX:VALUE", field)
		case s.labels:
			err = s.parseLabels(row, field)
		}
		if err != nil {
			return err
		}
		first = false
	}
	return nil
}

func (s *libsvmSource) parseLabels(row *Row, field string) error {
	if s.classes {
		if row.text = field; listsNumbers(field) {
			return s.rowError(row, "%.40q are several labels, but --labels class reads one class for each sample: write the probability of every class, such as 0.5,0,0.5 for two classes of three", field)
		}
		if err := notUTF8("the class of the sample", field); err != nil {
			return s.rowError(row, "%w", err)
		}
		return nil
	}
	for part := range strings.SplitSeq(field, ",") {
		v, reason := s.number(part, row.Number, ofLabel)
		if reason != "" {
			return &RowError{
				File: s.info.File, Row: row.Number, Line: row.line, Column: len(row.Labels), Kind: "label",
				Name: nameAt(s.info.LabelNames, len(row.Labels)), Reason: reason,
			}
		}
		if row.Labels = append(row.Labels, v); len(row.Labels) > MaxLabels {
			return s.rowError(row, "the sample has more than %d labels: %w", MaxLabels, ErrFormat)
		}
	}
	return nil
}

// listsNumbers reports whether a field is several numbers with commas between them.
func listsNumbers(field string) bool {
	if !strings.Contains(field, ",") {
		return false
	}
	for part := range strings.SplitSeq(field, ",") {
		if !isNumber(part) {
			return false
		}
	}
	return true
}

func (s *libsvmSource) parseValue(row *Row, index, value string) error {
	i, err := strconv.ParseUint(index, 10, 32)
	if index == "qid" {
		return s.rowError(row, "qid:%.40s is the query of a sample in a ranking dataset, which cannot be read: remove qid from each line; to read groups of samples, use a CSV file and --groups", value)
	} else if err != nil || i > MaxFeatures {
		return s.rowError(row, "index %.40q: want a number from 0 or 1 to %d", index, MaxFeatures)
	}
	column := uint32(i)
	if n := len(row.Columns); n > 0 && row.Columns[n-1] >= column {
		if slices.Contains(row.Columns, column) {
			return s.rowError(row, "index %d occurs twice in this line: remove one of the two, because a feature has one value in a sample", i)
		}
		return s.rowError(row, "index %d comes after %d, but indices must ascend: sort each line by index, for example in Python with sorted(pairs, key=lambda p: int(p.split(':')[0]))", i, row.Columns[n-1])
	}
	v, reason := s.number(value, row.Number, ofFeature)
	if reason != "" {
		return s.rowError(row, "index %d: %s", i, reason)
	}
	row.Columns, row.Values = append(row.Columns, column), append(row.Values, v)
	return nil
}

// number reads a value or degree; NaN is a missing value that is not refused.
func (s *libsvmSource) number(field string, row int, what valueOf) (v float64, reason string) {
	switch v, reason = parseNumber(field); {
	case reason == "" && v == v: // most values
		return v, ""
	case !isMissing(field):
		return v, reason + marks{}.spelling(field)
	case s.missing.refuses():
		return 0, fmt.Sprintf("%.40q is a missing value", field) + s.missing.hint(what)
	}
	s.info.missingWords.add(field, row)
	return nan, ""
}

func (s *libsvmSource) rowError(r *Row, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &RowError{File: s.info.File, Row: r.Number, Line: r.line, Column: -1, Reason: err.Error(), Err: errors.Unwrap(err)}
}
