package dataset

import (
	"errors"
	"fmt"
	"strings"
)

// Bounds of a dataset, which every reader enforces.
const (
	MaxRows     = 1<<32 - 1
	MaxFeatures = 1 << 24
	MaxLabels   = 1 << 16
)

// Errors that readers and importers wrap; compare with errors.Is.
var (
	// ErrFormat says that a file is damaged, or not of the kind that its name says.
	ErrFormat = errors.New("damaged or of another format")
	// ErrNoLabels says that a file has no labels where they are needed.
	ErrNoLabels = errors.New("no labels")
	// ErrOtherLabels says that the labels of a file are not those of a model.
	ErrOtherLabels = errors.New("other labels than the model's")
	// ErrAmbiguous says that a file can be read in two ways and that no option says which.
	ErrAmbiguous = errors.New("two ways to read it")
	// ErrRowCount says that two files, or two parts of one, have different
	// numbers of rows.
	ErrRowCount = errors.New("row counts differ")
	// ErrChanged says that a source gave other rows when it was read again.
	ErrChanged = errors.New("the data changed while it was read")
)

// RowError says which row, and which column of it, cannot be used, and why.
type RowError struct {
	File   string // as the user named it; empty for data that is in no file
	Row    int    // from 0, not counting a header
	Line   int    // from 1; 0 where the file has no lines, or it is not known
	Column int    // from 0; -1 where the row as a whole is at fault
	Kind   string // what Column counts: "feature", "label" or "column"
	Name   string // of the column; empty where it has none
	Reason string
	Err    error // what errors.Is finds; may be nil
}

// Unwrap returns Err.
func (e *RowError) Unwrap() error { return e.Err }

// Error names the file, the row and the column.
func (e *RowError) Error() string {
	var b strings.Builder
	if e.File != "" {
		fmt.Fprintf(&b, "%s: ", e.File)
	}
	fmt.Fprintf(&b, "row %d", e.Row)
	if e.Column >= 0 {
		fmt.Fprintf(&b, ", %s %d", e.Kind, e.Column)
		if e.Name != "" {
			fmt.Fprintf(&b, " %q", e.Name)
		}
	}
	b.WriteString(" (counted from 0")
	if e.Line > 0 {
		fmt.Fprintf(&b, "; line %d", e.Line)
	}
	fmt.Fprintf(&b, "): %s", e.Reason)
	return b.String()
}

// kindError is an error that errors.Is also finds as kind, which its text does not name.
type kindError struct{ err, kind error }

// Error says what the error says.
func (s *kindError) Error() string { return s.err.Error() }

// Unwrap returns the error and its kind.
func (s *kindError) Unwrap() []error { return []error{s.err, s.kind} }

// kindErrorf returns a formatted error that errors.Is also finds as kind.
func kindErrorf(kind error, format string, args ...any) error {
	return &kindError{fmt.Errorf(format, args...), kind}
}

func rowErrorf(file string, row int, format string, args ...any) error {
	return &RowError{File: file, Row: row, Column: -1, Reason: fmt.Sprintf(format, args...)}
}

func nameAt(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return ""
}

// OptionError says that the options by which a file is read contradict each other, or that one is
// missing: the file has no part in it.
type OptionError struct{ reason string }

// Error implements error.
func (e *OptionError) Error() string { return e.reason }

func optionErrorf(format string, args ...any) error {
	return &OptionError{fmt.Sprintf(format, args...)}
}
