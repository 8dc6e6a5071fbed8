package read

import (
	"fmt"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// namedSource is a Source with other names.
type namedSource struct {
	dataset.Source
	file string
	info dataset.Info
	rows []string
	own  bool // rows have names in Source
}

// Info describes the rows with their new names.
func (s *namedSource) Info() dataset.Info { return s.info }

// Scan implements Source.
func (s *namedSource) Scan(f func(*dataset.Row) error) error {
	if len(s.rows) == 0 {
		return s.Source.Scan(f)
	}
	n, row := 0, dataset.Row{}
	err := s.Source.Scan(func(r *dataset.Row) error {
		if r.Number >= len(s.rows) {
			return fmt.Errorf("%s: the list has %d row names, fewer than there are rows: %w", s.file, len(s.rows), dataset.ErrRowCount)
		}
		if own := strings.TrimSpace(r.Name); s.own && own != "" && own != strings.TrimSpace(s.rows[r.Number]) {
			return &dataset.RowError{File: s.info.File, Row: r.Number, Line: r.Line, Column: -1, Err: dataset.ErrAmbiguous,
				Reason: errtext.Sprintf("the name of this row is %.40q, but %.40q in %s: give the names of the file, or omit \"rows\"", own, s.rows[r.Number], s.file)}
		}
		n++
		row = *r
		row.Name = s.rows[r.Number]
		return f(&row)
	})
	if err == nil && n != len(s.rows) {
		return fmt.Errorf("%s: found %d row names, want %d, one for each row: %w", s.file, len(s.rows), n, dataset.ErrRowCount)
	}
	return err
}
