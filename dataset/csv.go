package dataset

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// csvSource streams rows from a CSV file.
type csvSource struct {
	path    string
	dialect dialect
	header  bool
	columns csvColumns
	names   []string // of all columns, from the header
	classes bool     // the label is text
	missing Missing
	info    Info
}

func openCSV(path string, o *OpenOptions) (Source, error) {
	s := &csvSource{
		path: path, classes: !o.NoLabels && o.Labels.Kind == Class, missing: o.Missing, info: Info{File: o.shown(path)},
	}
	in, closer, err := openText(path)
	if err != nil {
		return nil, pathError(s.info.File, err)
	}
	defer closer.Close()
	first, err := s.begin(in, o)
	if err != nil {
		return nil, err
	}
	if s.columns, err = chooseColumns(s.names, len(first), o); err != nil {
		return nil, pathError(s.info.File, err)
	}
	s.describe(o)
	return s, nil
}

// begin finds the dialect and reads the first line.
func (s *csvSource) begin(in io.Reader, o *OpenOptions) (first []string, err error) {
	b := bufio.NewReaderSize(in, sniffBytes)
	head, err := b.Peek(sniffBytes)
	if s.dialect, err = sniffDialect(head, errors.Is(err, io.EOF), o); err != nil {
		return nil, pathError(s.info.File, err)
	}
	r, err := newCSVRecords(s.info.File, b, &s.dialect)
	if err != nil {
		return nil, err
	}
	if first, err = r.First(); err != nil {
		return nil, err
	}
	if o.Header == HeaderAuto && o.known.inNumbers(first, s.dialect.marks) {
		return nil, kindErrorf(ErrFormat, "%s: the first line is numbers and has every feature name of the model: --header yes or no says whether it is a header", s.info.File)
	}
	if s.header, err = hasHeader(first, s.dialect.marks, o); err != nil {
		return nil, pathError(s.info.File, err)
	}
	if !s.header {
		s.info.unsure = o.Header == HeaderAuto
		return first, nil
	}
	s.names = first
	for i := range s.names {
		s.names[i] = strings.TrimSpace(s.names[i])
		if err := notUTF8(fmt.Sprintf("line %d: the name of column %d (counted from 0)", r.line(i), i), s.names[i]); err != nil {
			return nil, pathError(s.info.File, err)
		}
		if err := checkName(s.names[i]); err != nil {
			return nil, fmt.Errorf("%s: line %d: the name of column %d (counted from 0) %w", s.info.File, r.line(i), i, err)
		}
	}
	return first, nil
}

func (s *csvSource) describe(o *OpenOptions) {
	c := &s.columns
	s.info.Rows, s.info.Features, s.info.Labels, s.info.HasRowNames = -1, len(c.features), len(c.labels), c.rowName >= 0
	o.Beside.describe(&s.info)
	if note := s.dialect.String(); note != "" {
		s.info.Notes = append(s.info.Notes, "read with "+note)
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
	s.info.LabelColumns.Names, s.info.LabelColumns.Beside = c.unusual(s.names), c.besideNames(s.names)
	if o.schema != nil { // where default names stand in another order they count
		return
	}
	s.info.FeatureNames = withoutDefaults(s.info.FeatureNames, defaultFeatureName)
	s.info.LabelNames = withoutDefaults(s.info.LabelNames, strconv.Itoa)
}

// withoutDefaults returns names, or nil if all of them are those that WriteCSV gives to
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
	in, file, err := openText(s.path)
	if err != nil {
		return pathError(s.info.File, err)
	}
	defer file.Close()
	r, err := newCSVRecords(s.info.File, in, &s.dialect)
	if err != nil {
		return err
	}
	if r.header, r.width, r.blank = s.header, s.columns.width, make([]string, s.columns.width); s.header {
		if _, err := r.First(); err != nil {
			return err
		}
	}
	var row Row
	for n := 0; ; n++ {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.parse(&row, n, record, r); err != nil {
			return err
		}
		row.file = file
		if err := f(&row); err != nil {
			return err
		}
	}
}
