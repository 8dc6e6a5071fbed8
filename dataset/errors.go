package dataset

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/internal/errtext"
)

// Bounds of a dataset, which every reader enforces.
const (
	MaxRows     = 1<<32 - 1
	MaxFeatures = 1 << 24
	MaxLabels   = 1 << 16
	// MaxColumns bounds the columns of a CSV file. Other files may have more features than that, or keep more values of
	// rows in memory, if they have a byte for each of them.
	MaxColumns = 1 << 20
)

// Errors that readers and importers wrap; compare with errors.Is.
var (
	// ErrFormat says that a file is damaged, or not of the kind that its name says.
	ErrFormat = errors.New("the file is damaged or has another format")
	// ErrNoLabels says that a file has no labels where they are needed.
	ErrNoLabels = errors.New("no labels")
	// ErrOtherLabels says that the labels of a file are not those of a model.
	ErrOtherLabels = errors.New("the labels differ from the labels of the model")
	// ErrAmbiguous says that a file can be read in two ways and that no option says which.
	ErrAmbiguous = errors.New("the file can be read in two ways")
	// ErrRowCount says that two files, or two parts of one, have different
	// numbers of rows.
	ErrRowCount = errors.New("the numbers of rows differ")
	// ErrChanged says that a source gave other rows when it was read again.
	ErrChanged = errors.New("the data changed while it was read")
)

// WaysError says in which ways a file can be read if a flag decides. errors.Is finds it as ErrAmbiguous unless there is
// only one.
type WaysError struct {
	Text errtext.Text
	// Ways lists the ways that flags choose.
	Ways []Way
}

// Way is a way to read a file.
type Way struct {
	What  string `json:"what"`
	Flags []Flag `json:"flags"` // that choose it
}

// Text returns What with places for the flags that it begins with.
func (w Way) Text() errtext.Text {
	flags := FlagsText(w.Flags)
	if rest, ok := strings.CutPrefix(w.What, flags.String()); ok {
		return errtext.Sprintf("%s%s", flags, rest)
	}
	return errtext.Sprintf("%s", w.What)
}

// FlagsText returns flags as places of a text.
func FlagsText(flags []Flag) errtext.Text {
	var places []errtext.Text
	for _, f := range flags {
		places = append(places, errtext.Option(strings.TrimPrefix(f.Name, "--"), f.Value))
	}
	return errtext.Join(places, " ")
}

// Flag is a flag of the command line, with its name as "--header".
type Flag struct {
	Name  string `json:"name"`
	Value string `json:"value"` // as on the command line: of a list, with commas

	list []string // of a flag that takes a list; nil: Value is the only item
}

// With returns the way with other flags as well. Of two values of a flag the later one counts, but columns to drop, and
// categories, add up.
func (w Way) With(what string, flags ...Flag) Way {
	all := slices.Clone(w.Flags)
	ofMarks := func(f Flag) bool { return f.Name == "--decimal" || f.Name == "--thousands" }
	if slices.ContainsFunc(flags, ofMarks) {
		all = slices.DeleteFunc(all, ofMarks)
	}
	for _, flag := range flags {
		at := slices.IndexFunc(all, func(f Flag) bool { return f.Name == flag.Name })
		switch {
		case at < 0:
			all = append(all, flag)
		case flag.Name == "--drop", flag.Name == "--categories":
			list := slices.Clone(all[at].Items())
			for _, item := range flag.Items() {
				if !slices.Contains(list, item) {
					list = append(list, item)
				}
			}
			all[at] = ListFlag(flag.Name, list...)
		default:
			all[at] = flag
		}
	}
	return Way{strings.Trim(w.What+"; "+what, "; "), all}
}

// Items returns the values of a flag that takes a list.
func (f *Flag) Items() []string {
	if f.list != nil {
		return f.list
	}
	return []string{f.Value}
}

// Error says why the file is refused.
func (e *WaysError) Error() string { return e.Text.String() }

// Formed implements errtext.Formed.
func (e *WaysError) Formed() (errtext.Code, errtext.Text) { return errtext.AmbiguousData, e.Text }

// Is implements what errors.Is asks.
func (e *WaysError) Is(target error) bool { return target == ErrAmbiguous && len(e.Ways) > 1 }

// RowError says which row, and which column of it, cannot be used, and why.
type RowError struct {
	File   string // as the user named it; empty for data that is in no file
	Row    int    // from 0, not counting a header; -1 if the column as a whole is at fault
	Line   int    // from 1; 0 where the file has no lines, or it is not known
	Column int    // from 0; -1 where the row as a whole is at fault
	Kind   string // what Column counts: "feature", "label" or "column"
	Name   string // of the column; empty where it has none
	Reason errtext.Text
	Err    error // what errors.Is finds; may be nil
}

// Unwrap returns Err.
func (e *RowError) Unwrap() error { return e.Err }

// Error names the file, the row and the column.
func (e *RowError) Error() string {
	_, text := e.Formed()
	return text.String()
}

// Formed implements errtext.Formed.
func (e *RowError) Formed() (errtext.Code, errtext.Text) {
	var b strings.Builder
	if e.File != "" {
		fmt.Fprintf(&b, "%s: ", e.File)
	}
	if e.Row >= 0 {
		fmt.Fprintf(&b, "row %d", e.Row)
	}
	if e.Row >= 0 && e.Column >= 0 {
		b.WriteString(", ")
	}
	if e.Column >= 0 {
		fmt.Fprintf(&b, "%s %d", e.Kind, e.Column)
		if e.Name != "" {
			fmt.Fprintf(&b, " %q", e.Name)
		}
	}
	b.WriteString(" (counted from 0")
	if e.Line > 0 {
		fmt.Fprintf(&b, "; line %d", e.Line)
	}
	b.WriteString(")")
	return errtext.WrongRow, errtext.Sprintf("%s: %s", b.String(), e.Reason)
}

// kindError is an error that errors.Is also finds as its kinds, which its text does not name.
type kindError struct {
	error
	kinds []error
}

// Unwrap returns the error and its kinds.
func (e *kindError) Unwrap() []error { return append([]error{e.error}, e.kinds...) }

// WithKind returns err as an error that errors.Is also finds as each of kinds.
func WithKind(err error, kinds ...error) error { return &kindError{err, kinds} }

// Errorf returns a formatted error that errors.Is also finds as kind.
func Errorf(kind error, format string, args ...any) error {
	return WithKind(errtext.Errorf(errtext.WrongData, format, args...), kind)
}

// RowErrorf returns a formatted RowError about a whole row.
func RowErrorf(file string, row int, format string, args ...any) error {
	return &RowError{File: file, Row: row, Column: -1, Reason: errtext.Sprintf(format, args...)}
}

// OptionError says that the options by which a file is read contradict each other, or that one is
// missing: the file has no part in it.
type OptionError struct{ reason errtext.Text }

// Error implements error.
func (e *OptionError) Error() string { return e.reason.String() }

// Formed implements errtext.Formed.
func (e *OptionError) Formed() (errtext.Code, errtext.Text) { return errtext.WrongOption, e.reason }

// OptionErrorf returns a formatted OptionError.
func OptionErrorf(format string, args ...any) error {
	return &OptionError{errtext.Sprintf(format, args...)}
}

// ListFlag is a flag with a list of values.
func ListFlag(name string, items ...string) Flag {
	escaped := make([]string, len(items))
	for i, item := range items {
		escaped[i] = strings.ReplaceAll(item, ",", `\,`)
	}
	return Flag{name, strings.Join(escaped, ","), items}
}
