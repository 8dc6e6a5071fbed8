package dataset

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// csvSource streams rows from a CSV file.
type csvSource struct {
	path    string
	header  bool
	columns csvColumns
	names   []string // of all columns, from the header
	classes bool     // the label is text
	info    Info
}

func openCSV(path string, o *OpenOptions) (Source, error) {
	in, closer, err := openText(path)
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	s := &csvSource{path: path, classes: !o.NoLabels && o.Labels.Kind == Class}
	first, err := newCSVReader(in).Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: empty: %w", path, ErrFormat)
	}
	if err != nil {
		return nil, s.readError(err, 0)
	}
	first = slices.Clone(first)
	if o.Header == HeaderAuto && o.known.inNumbers(first) {
		return nil, fmt.Errorf("%s: the first line is numbers and has every feature name of the model: say with --header yes or no whether it is a header", path)
	}
	if s.header = hasHeader(first, o); s.header {
		s.names = first
		for i := range s.names {
			s.names[i] = strings.TrimSpace(s.names[i])
		}
	}
	if s.columns, err = chooseColumns(s.names, len(first), o); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.describe(o)
	return s, nil
}

// csvReader reads records of at most maxLine bytes, give or take what is read
// ahead: one quote that is never closed must not bring a whole file into memory.
type csvReader struct {
	*csv.Reader
	in    *bounded
	limit int // bytes of a record
}

func newCSVReader(in io.Reader) *csvReader {
	b := &bounded{in: in}
	r := csv.NewReader(b)
	r.ReuseRecord = true
	r.TrimLeadingSpace = true
	return &csvReader{r, b, maxLine}
}

// Read reads the next record.
func (r *csvReader) Read() ([]string, error) {
	r.in.left = r.limit
	return r.Reader.Read()
}

// bounded fails once left bytes were read.
type bounded struct {
	in   io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("a record is too long: %w", ErrFormat)
	}
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func (s *csvSource) describe(o *OpenOptions) {
	c := &s.columns
	s.info = Info{
		File: s.path, Rows: -1, Features: len(c.features), Labels: len(c.labels), HasRowNames: c.rowName >= 0,
	}
	if !s.header {
		s.info.LabelColumns.Positions = c.labels
		return
	}
	for _, i := range c.features {
		s.info.FeatureNames = append(s.info.FeatureNames, s.names[i])
	}
	for _, i := range c.labels {
		s.info.LabelNames = append(s.info.LabelNames, c.labelName(s.names[i]))
	}
	s.info.LabelColumns.Names = c.unusual(s.names)
	if o.schema != nil { // where default names stand in another order they count
		return
	}
	s.info.FeatureNames = withoutDefaults(s.info.FeatureNames, defaultFeatureName)
	s.info.LabelNames = withoutDefaults(s.info.LabelNames, strconv.Itoa)
}

// withoutDefaults returns no names where all are those that WriteCSV gives to
// columns without names (a label's without its prefix).
func withoutDefaults(names []string, byDefault func(int) string) []string {
	for i, name := range names {
		if name != byDefault(i) {
			return names
		}
	}
	return nil
}

// Info implements Source.
func (s *csvSource) Info() Info { return s.info }

// Scan implements Source.
func (s *csvSource) Scan(f func(*Row) error) error {
	in, closer, err := openText(s.path)
	if err != nil {
		return err
	}
	defer closer.Close()
	r := newCSVReader(in)
	if s.header {
		if _, err := r.Read(); err != nil {
			return s.readError(err, 0)
		}
	}
	var row Row
	for n := 0; ; n++ {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return s.readError(err, n)
		}
		if err := s.parse(&row, n, record); err != nil {
			return err
		}
		if err := f(&row); err != nil {
			return err
		}
	}
}

// readError describes what encoding/csv says about row n.
func (s *csvSource) readError(err error, n int) error {
	var parse *csv.ParseError
	switch {
	case errors.Is(err, csv.ErrFieldCount):
		return rowErrorf(s.path, n, "another number of columns than in the first line")
	case errors.As(err, &parse):
		return rowErrorf(s.path, n, "line %d, column %d: %v", parse.Line, parse.Column, parse.Err)
	}
	return fmt.Errorf("%s: row %d (counted from 0): %w", s.path, n, textError(err))
}

func (s *csvSource) parse(row *Row, n int, record []string) error {
	row.Number, row.Values, row.Labels = n, row.Values[:0], row.Labels[:0]
	for _, i := range s.columns.features {
		v, reason := parseNumber(record[i])
		if reason != "" {
			return s.fieldError(n, i, reason)
		}
		row.Values = append(row.Values, v)
	}
	if s.columns.rowName >= 0 {
		row.Name = record[s.columns.rowName]
	}
	for _, i := range s.columns.labels {
		if s.classes {
			row.text = strings.TrimSpace(record[i])
			continue
		}
		v, reason := parseNumber(record[i])
		if reason != "" {
			return s.fieldError(n, i, reason)
		}
		row.Labels = append(row.Labels, v)
	}
	return nil
}

func (s *csvSource) fieldError(n, column int, reason string) error {
	return &RowError{
		File: s.path, Row: n, Column: column, Kind: "column",
		Name: nameAt(s.names, column), Reason: reason,
	}
}
