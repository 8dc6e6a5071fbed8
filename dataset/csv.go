package dataset

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// csvSource streams rows from a CSV file.
type csvSource struct {
	path     string
	encoding string
	dialect  dialect
	header   bool
	columns  csvColumns
	names    []string // of all columns, from the header
	classes  bool     // the label is text
	mark     string   // of a comment, before the first name of the header
	cut      bool     // empty columns after the last one are left out
	proof    decimalsProof
	head     [][]string // the first records behind the first, until the columns are known
	missing  Missing
	unseen   func(row int, category, level string) // nil: such a level is refused
	info     Info
}

func openCSV(path string, o *OpenOptions) (Source, error) {
	s := &csvSource{
		path: path, classes: !o.NoLabels && o.Labels.Kind == Class, missing: o.Missing, unseen: o.Unseen, encoding: o.Encoding, info: Info{File: o.shown(path), missingWords: &wordCounts{}},
	}
	in, closer, err := openTextIn(path, o.Encoding)
	if err != nil {
		return nil, pathError(s.info.File, err)
	}
	defer closer.Close()
	first, err := s.begin(in, o)
	if err != nil {
		return nil, err
	}
	if o.header != nil {
		*o.header = firstLine{read: true, names: s.names}
	}
	o = o.columnsLikeTraining(s.names, len(first))
	records := s.head
	if !s.header {
		records = append([][]string{first}, records...)
	}
	if o, err = o.columnOfImages(s.names, records, len(first)); err != nil {
		return nil, pathError(s.info.File, err)
	}
	if s.columns, err = chooseColumns(s.names, len(first), o); err != nil {
		return nil, pathError(s.info.File, err)
	}
	if y := s.columns.coordinate; y >= 0 && len(s.head) > 0 && !aboveNumbers(s.head, y, s.dialect.marks) {
		return nil, pathError(s.info.File, s.columns.targetError(s.names, append([]int{y}, s.columns.labels...), o))
	}
	note, err := s.columns.rowNameNote(s.names, records, s.dialect.marks, o)
	if err != nil {
		return nil, pathError(s.info.File, err)
	}
	if err := s.findLevels(o); err != nil {
		return nil, err
	}
	s.proof.lookAt(s.head, s.columns.numeric(s.classes), s.dialect.marks)
	s.head = nil
	s.describe(o)
	s.info.Notes = slices.Concat(s.info.Notes, lineOrNone(note), o.numberNotes(s.names))
	return s, nil
}

// lineOrNone is a list of one line, or of none if that is empty.
func lineOrNone(line string) []string {
	if line == "" {
		return nil
	}
	return []string{line}
}

// begin finds the dialect, the header and the columns, and returns the first record.
func (s *csvSource) begin(in io.Reader, o *OpenOptions) (first []string, err error) {
	b := bufio.NewReaderSize(in, sniffBytes)
	head, err := b.Peek(sniffBytes)
	head, all := bytes.Clone(head), errors.Is(err, io.EOF)
	if s.dialect, err = sniffDialect(head, all, o); err != nil {
		return nil, pathError(s.info.File, err)
	}
	r, err := newCSVRecords(s.info.File, b, &s.dialect)
	if err != nil {
		return nil, err
	}
	if first, err = r.First(); err != nil {
		return nil, err
	}
	var rest [][]string
	if records := s.dialect.records(head, all); len(records) > 1 {
		rest = records[1:]
	}
	s.proof, s.head = decimalsProof{needed: o.Decimal == "" && o.Thousands == 0}, rest
	if first, err = s.findHeader(head, first, rest, o); err != nil {
		return nil, pathError(s.info.File, err)
	}
	var width int
	if width, s.cut = realColumns(append(rest, first)); s.cut {
		first = first[:min(width, len(first))]
	}
	if !s.header {
		s.info.unsure = o.Header == HeaderAuto
		return first, nil
	}
	s.names = first
	return first, s.checkHeader(r.line(0))
}

// findHeader decides whether the first record is a header, or the last comment before it, and returns
// the header or the first row.
func (s *csvSource) findHeader(head []byte, first []string, rest [][]string, o *OpenOptions) ([]string, error) {
	d := &s.dialect
	if o.Header == HeaderAuto && o.known.inNumbers(first, d.marks) {
		return nil, &WaysError{"the first line has only numbers, among them every feature name of the model: give --header yes if it is a header, --header no if it is a row", headerWays}
	}
	auto := *o
	auto.Header = HeaderAuto
	header, err := hasHeader(first, rest, d.marks, &auto)
	if d.comments > 0 && o.Header != HeaderNo && !(header && err == nil) {
		behind := d.withHeaderBehindMark()
		names := behind.records(head[:d.skip], true)
		width, _ := realColumns(append(rest, first))
		if len(names) == 1 && filled(names[0]) == width {
			if named, err := hasHeader(names[0], append([][]string{first}, rest...), d.marks, o); named && err == nil {
				*d, s.header, s.mark = behind, true, d.mark
				return names[0], nil
			}
		}
	}
	if o.Header != HeaderAuto {
		header, err = o.Header == HeaderYes, nil
	}
	if d.comments > 0 && !header && err == nil {
		if like, row, ok := d.atRowLike(head, append([][]string{first}, rest...)); ok && o.Header == HeaderNo {
			*d, first = like, row
		} else if ok {
			return nil, &WaysError{fmt.Sprintf("line %d begins with %s like a comment, but has fields and numbers like the lines below: "+
				"--header no reads the line as a row, --header yes skips it and reads the first line without %s as the header. If it is a comment and the file has no header, remove the line",
				like.before+1, d.mark, d.mark), commentWays}
		}
	}
	if s.header = header; header {
		if name := strings.TrimLeft(first[0], " "); commentMark(name) != "" && len(name) > 1 {
			s.mark = commentMark(name)
			first[0] = strings.TrimLeft(name, s.mark+" ")
		}
	}
	return first, err
}

// checkHeader takes blanks off the names, and refuses names that are no text; line is the header's.
func (s *csvSource) checkHeader(line int) error {
	for i := range s.names {
		s.names[i] = strings.TrimSpace(s.names[i])
		if err := notUTF8(fmt.Sprintf("line %d: the name of column %d (counted from 0)", line, i), s.names[i]); err != nil {
			return pathError(s.info.File, err)
		}
		if err := checkName(s.names[i]); err != nil {
			return fmt.Errorf("%s: line %d: the name of column %d (counted from 0) %w", s.info.File, line, i, err)
		}
	}
	return nil
}

// notes says how the file is read. It knows nothing of the columns yet.
func (s *csvSource) notes() []string {
	notes := append(s.info.Notes, s.dialect.String())
	switch {
	case s.header && s.mark != "":
		notes = append(notes, fmt.Sprintf("line %d is the header, read without its mark %s", s.dialect.before+1, s.mark))
	case s.header:
		notes = append(notes, fmt.Sprintf("line %d is the header", s.dialect.before+1))
	default:
		notes = append(notes, fmt.Sprintf("no header: line %d is the first row", s.dialect.before+1))
	}
	switch n := s.dialect.comments; {
	case n == 1:
		notes = append(notes, "1 line of comments before it is skipped")
	case n > 1:
		notes = append(notes, fmt.Sprintf("%d lines of comments before it are skipped", n))
	}
	if s.cut {
		notes = append(notes, "empty columns at the ends of lines are ignored")
	}
	return notes
}

func (s *csvSource) describe(o *OpenOptions) {
	c := &s.columns
	s.info.Rows, s.info.Labels, s.info.HasRowNames = -1, len(c.labels), c.rowName >= 0
	s.info.FeatureNames, s.info.Features, s.info.Reading.Categories = c.featureNames(s.names)
	o.Beside.describe(&s.info)
	s.info.Notes = append(s.notes(), s.columns.targetNote(s.names, &o.Labels))
	if o.Images != "" && c.rowName >= 0 {
		s.info.Notes = append(s.info.Notes, c.imagesNote(s.names))
		if o.schema == nil {
			s.info.Notes = slices.Concat(s.info.Notes, lineOrNone(c.unreadNote(s.names)))
		}
	}
	s.info.Reading.passing(s.names, c, o)
	for _, i := range c.labels {
		s.info.labelFlags = append(s.info.labelFlags, flagColumn(s.names, i))
	}
	s.info.labelsListed = len(o.Labels.Columns) > 0
	if !s.header {
		s.info.LabelColumns.Positions = c.labels
		return
	}
	for _, i := range c.labels {
		s.info.LabelNames = append(s.info.LabelNames, c.labelName(s.names[i]))
	}
	s.info.LabelColumns.Names, s.info.LabelColumns.Beside = c.unusual(s.names), c.besideNames(s.names)
	if o.schema != nil { // where default names stand in another order they count
		return
	}
	s.info.FeatureNames = withoutDefaults(s.info.FeatureNames, defaultFeatureName)
	named := len(s.info.LabelNames) > 0
	s.info.LabelNames = withoutDefaults(s.info.LabelNames, strconv.Itoa)
	s.info.defaultLabels = named && s.info.LabelNames == nil
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

// Scan implements Source. A row of totals at the end is refused, unless a missing value leaves it out.
func (s *csvSource) Scan(f func(*Row) error) error {
	var row Row
	total, texts := false, s.totalTexts() // total: the last row has a word of totals
	err := s.eachRecord(func(n int, record []string, r *csvRecords) error {
		err := s.parse(&row, n, record, r)
		if err == nil {
			total = totalWordAt(record, texts) >= 0 && !(s.missing.Drop && s.lacks(&row))
			row.file = r.from
			err = f(&row)
		}
		if at := (*RowError)(nil); errors.As(err, &at) && slices.ContainsFunc(record, isTotalWord) {
			if total, ok := s.totalError().(*RowError); ok && total.Row <= n {
				return total
			}
		}
		return err
	})
	if err == nil && total {
		err = s.totalError()
	}
	if err != nil || !s.proof.needed || !s.proof.doubt {
		return err
	}
	if err := s.checkMarks(); err != nil {
		return err
	}
	s.proof.needed = false
	return nil
}

// lacks reports whether a row has a missing value that is read.
func (s *csvSource) lacks(r *Row) bool {
	return slices.ContainsFunc(r.Values, math.IsNaN) || slices.ContainsFunc(r.Labels, math.IsNaN) || s.classes && isMissing(r.text)
}

// eachRecord calls f with each row's number and record.
func (s *csvSource) eachRecord(f func(n int, record []string, r *csvRecords) error) error {
	in, file, err := openTextIn(s.path, s.encoding)
	if err != nil {
		return pathError(s.info.File, err)
	}
	defer file.Close()
	r, err := newCSVRecords(s.info.File, in, &s.dialect)
	if err != nil {
		return err
	}
	if r.from, r.header, r.width, r.cut, r.blank = file, s.header, s.columns.width, s.cut, make([]string, s.columns.width); s.header {
		if _, err := r.First(); err != nil {
			return err
		}
		r.width, r.blank = s.columns.width, make([]string, s.columns.width)
	}
	for n := 0; ; n++ {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f(n, record, r); err != nil {
			return err
		}
	}
}
