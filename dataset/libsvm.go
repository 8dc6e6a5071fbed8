package dataset

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxLine bounds a line of a libsvm file and a record of a CSV file, in bytes.
const maxLine = 1 << 28

// libsvmSource streams sparse rows from a text file (FORMAT.md).
type libsvmSource struct {
	path    string
	labels  bool // wanted
	classes bool // the label is text
	info    Info
}

// openLibsvm scans the file once for its numbers of rows, features and labels.
func openLibsvm(path string, o *OpenOptions) (Source, error) {
	s := &libsvmSource{
		path: path, labels: !o.NoLabels, classes: !o.NoLabels && o.Labels.Kind == Class,
		info: Info{File: path, Sparse: true},
	}
	rows := 0
	err := s.scan(s.directive, func(r *Row) error {
		if rows == 0 {
			s.info.Labels = s.labelCount(r)
		}
		rows++
		if n := len(r.Columns); n > 0 {
			s.info.Features = max(s.info.Features, int(r.Columns[n-1])+1)
		}
		s.info.HasRowNames = s.info.HasRowNames || r.Name != ""
		return nil
	})
	if err != nil {
		return nil, err
	}
	if rows == 0 {
		return nil, fmt.Errorf("%s: no rows: %w", path, ErrFormat)
	}
	s.info.Rows = rows
	if o.schema != nil { // what is missing is filled up
		s.info.Features = max(s.info.Features, 1)
	} else if len(s.info.FeatureNames) == 0 {
		s.info.Features = max(s.info.Features, o.Features)
	}
	if s.info.Labels == 0 {
		s.info.LabelNames = nil
	}
	if s.labels {
		if err := oneColumn(o, "label", s.info.Labels); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return s, nil
}

func (s *libsvmSource) labelCount(r *Row) int {
	if s.classes {
		return 1
	}
	return len(r.Labels)
}

// directive takes over a comment that describes the file.
func (s *libsvmSource) directive(comment string) error {
	key, value, _ := strings.Cut(comment, ":")
	value = strings.TrimSpace(value)
	switch strings.TrimSpace(key) {
	case "features":
		s.info.FeatureNames = splitNames(value)
		s.info.Features = max(s.info.Features, len(s.info.FeatureNames))
	case "labels":
		if s.labels {
			s.info.LabelNames = splitNames(value)
		}
	case "columns":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > MaxFeatures {
			return fmt.Errorf("%s: columns: %q: want a number from 1 to %d: %w", s.path, value, MaxFeatures, ErrFormat)
		}
		s.info.Features = max(s.info.Features, n)
	}
	return nil
}

func splitNames(list string) []string {
	names := strings.Split(list, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names
}

// Info implements Source.
func (s *libsvmSource) Info() Info { return s.info }

// Scan implements Source.
func (s *libsvmSource) Scan(f func(*Row) error) error {
	return s.scan(func(string) error { return nil }, func(r *Row) error {
		if n := s.labelCount(r); s.labels && n != s.info.Labels {
			return rowErrorf(s.path, r.Number, "%d labels where %d are due", n, s.info.Labels)
		}
		return f(r)
	})
}

// scan parses each line and hands on comments and rows.
func (s *libsvmSource) scan(comment func(string) error, f func(*Row) error) error {
	in, closer, err := openText(s.path)
	if err != nil {
		return err
	}
	defer closer.Close()
	return s.scanLines(in, comment, f)
}

func (s *libsvmSource) scanLines(in io.Reader, comment func(string) error, f func(*Row) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	var row Row
	for n := 0; lines.Scan(); {
		text, note, noted := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			if err := comment(note); noted && err != nil {
				return err
			}
			continue
		}
		row = Row{Number: n, Sparse: true, Columns: row.Columns[:0], Values: row.Values[:0], Labels: row.Labels[:0], Name: strings.TrimSpace(note)}
		if err := s.parse(&row, text); err != nil {
			return err
		}
		n++
		if err := f(&row); err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("%s: a line of more than %d bytes: %w", s.path, maxLine, ErrFormat)
	} else if err != nil {
		return fmt.Errorf("%s: %w", s.path, textError(err))
	}
	return nil
}

// parse reads "d1,d2,... index:value index:value".
func (s *libsvmSource) parse(row *Row, text string) error {
	first := true
	for field := range strings.FieldsSeq(text) {
		index, value, isValue := strings.Cut(field, ":")
		var err error
		switch {
		case isValue:
			if first && s.labels {
				return &RowError{File: s.path, Row: row.Number, Column: -1, Reason: "begins without labels", Err: ErrNoLabels}
			}
			err = s.parseValue(row, index, value)
		case !first:
			return rowErrorf(s.path, row.Number, "%.40q is not index:value", field)
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
		row.text = field
		return nil
	}
	for part := range strings.SplitSeq(field, ",") {
		v, reason := parseNumber(part)
		if reason != "" {
			return &RowError{
				File: s.path, Row: row.Number, Column: len(row.Labels), Kind: "label",
				Name: nameAt(s.info.LabelNames, len(row.Labels)), Reason: reason,
			}
		}
		row.Labels = append(row.Labels, v)
	}
	return nil
}

func (s *libsvmSource) parseValue(row *Row, index, value string) error {
	i, err := strconv.ParseUint(index, 10, 32)
	if err != nil || i < 1 || i > MaxFeatures {
		return rowErrorf(s.path, row.Number, "index %.40q: want a number from 1 to %d", index, MaxFeatures)
	}
	column := uint32(i - 1)
	if n := len(row.Columns); n > 0 && row.Columns[n-1] >= column {
		return rowErrorf(s.path, row.Number, "index %d after %d: they have to ascend", i, row.Columns[n-1]+1)
	}
	v, reason := parseNumber(value)
	if reason != "" {
		return &RowError{
			File: s.path, Row: row.Number, Column: int(column), Kind: "feature",
			Name: nameAt(s.info.FeatureNames, int(column)), Reason: reason,
		}
	}
	row.Columns, row.Values = append(row.Columns, column), append(row.Values, v)
	return nil
}
