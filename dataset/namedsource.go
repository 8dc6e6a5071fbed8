package dataset

import (
	"fmt"
	"strings"

	"github.com/coppice-ldl/coppice/internal/errtext"
)

// namedSource is a Source with other names.
type namedSource struct {
	Source
	file string
	info Info
	rows []string
	own  bool // rows have names in Source
}

// Info describes the rows with their new names.
func (s *namedSource) Info() Info { return s.info }

// Scan implements Source.
func (s *namedSource) Scan(f func(*Row) error) error {
	if len(s.rows) == 0 {
		return s.Source.Scan(f)
	}
	n, row := 0, Row{}
	err := s.Source.Scan(func(r *Row) error {
		if r.Number >= len(s.rows) {
			return fmt.Errorf("%s: the list has %d row names, fewer than there are rows: %w", s.file, len(s.rows), ErrRowCount)
		}
		if own := strings.TrimSpace(r.Name); s.own && own != "" && own != strings.TrimSpace(s.rows[r.Number]) {
			return &RowError{File: s.info.File, Row: r.Number, Line: r.line, Column: -1, Err: ErrAmbiguous,
				Reason: errtext.Sprintf("the name of this row is %.40q, but %.40q in %s: give the names of the file, or omit \"rows\"", own, s.rows[r.Number], s.file)}
		}
		n++
		row = *r
		row.Name = s.rows[r.Number]
		return f(&row)
	})
	if err == nil && n != len(s.rows) {
		return fmt.Errorf("%s: found %d row names, want %d, one for each row: %w", s.file, len(s.rows), n, ErrRowCount)
	}
	return err
}
