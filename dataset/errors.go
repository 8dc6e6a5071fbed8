package dataset

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// Bounds of a dataset, which every reader enforces.
const (
	MaxRows     = 1<<32 - 1
	MaxFeatures = 1 << 24
	MaxLabels   = 1 << 16
)

// suspectRows is the least number of rows that show what a column seems to be, other than constant.
const suspectRows = 10

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

// errFound ends a scan.
var errFound = errors.New("found")

// WaysError says in which ways a file can be read if a flag decides. errors.Is finds it as ErrAmbiguous unless there is
// only one.
type WaysError struct {
	text errtext.Text
	// Ways lists the ways that flags choose.
	Ways []Way
}

// Way is a way to read a file.
type Way struct {
	What  string `json:"what"`
	Flags []Flag `json:"flags"` // that choose it
}

// text returns What with places for the flags that it begins with.
func (w Way) text() errtext.Text {
	flags := flagsText(w.Flags)
	if rest, ok := strings.CutPrefix(w.What, flags.String()); ok {
		return errtext.Sprintf("%s%s", flags, rest)
	}
	return errtext.Sprintf("%s", w.What)
}

// flagsText returns flags as places of a text.
func flagsText(flags []Flag) errtext.Text {
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

// Error says why the file is refused.
func (e *WaysError) Error() string { return e.text.String() }

// Formed implements errtext.Formed.
func (e *WaysError) Formed() (errtext.Code, errtext.Text) { return errtext.AmbiguousData, e.text }

// Is implements what errors.Is asks.
func (e *WaysError) Is(target error) bool { return target == ErrAmbiguous && len(e.Ways) > 1 }

// oneWay is a way that one flag chooses.
func oneWay(flag, value, format string, args ...any) Way {
	f := Flag{Name: flag, Value: value}
	if strings.HasPrefix(flag, "--label-") || flag == "--drop" { // they take lists
		f = listFlag(flag, value)
	}
	return Way{fmt.Sprintf(format, args...), []Flag{f}}
}

// headerWays are the ways to read a first line.
var headerWays = []Way{oneWay("--header", "yes", "the first line is a header"), oneWay("--header", "no", "the first line is a row")}

// commentWays are the ways to read lines that begin as comments do.
var commentWays = []Way{oneWay("--header", "no", "lines that begin like comments are rows"), oneWay("--header", "yes", "lines that begin like comments are skipped, and the next line is the header")}

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

// kindError is an error that errors.Is also finds as kind, which its text does not name.
type kindError struct{ err, kind error }

// Error says what the error says.
func (s *kindError) Error() string { return s.err.Error() }

// Unwrap returns the error and its kind.
func (s *kindError) Unwrap() []error { return []error{s.err, s.kind} }

// kindErrorf returns a formatted error that errors.Is also finds as kind.
func kindErrorf(kind error, format string, args ...any) error {
	return &kindError{errtext.Errorf(errtext.WrongData, format, args...), kind}
}

func rowErrorf(file string, row int, format string, args ...any) error {
	return &RowError{File: file, Row: row, Column: -1, Reason: errtext.Sprintf(format, args...)}
}

// OptionError says that the options by which a file is read contradict each other, or that one is
// missing: the file has no part in it.
type OptionError struct{ reason errtext.Text }

// Error implements error.
func (e *OptionError) Error() string { return e.reason.String() }

// Formed implements errtext.Formed.
func (e *OptionError) Formed() (errtext.Code, errtext.Text) { return errtext.WrongOption, e.reason }

func optionErrorf(format string, args ...any) error {
	return &OptionError{errtext.Sprintf(format, args...)}
}

// Bounds of data files. They keep the memory that a file takes, and the time, in proportion to its
// size: a packed file may hold a thousand times as much as it has bytes.
const (
	// maxColumns bounds the columns of a CSV file. Other files may have more features than that, or
	// keep more values of rows in memory, if they have a byte for each of them.
	maxColumns = 1 << 20
	// maxLine bounds a line of a libsvm file and a record of a CSV file, in bytes.
	maxLine = 32 * maxColumns
	// maxArrays bounds the arrays of a .npz file.
	maxArrays = 1 << 12
	// maxName bounds the name of a column, a class or a row, in bytes.
	maxName = 1 << 12
	// A packed file may unpack to freeUnpacked bytes, or to maxRatio times its size if that is more.
	freeUnpacked = 64 << 20
	maxRatio     = 200
)

// fileSize is the size of a data file in bytes, packed if it is packed.
type fileSize int64

// unpacked returns how many bytes the file, or an array of it, may unpack to.
func (n fileSize) unpacked() int64 { return max(freeUnpacked, maxRatio*int64(n)) }

// items returns how many features the file may have, and how many values of rows may be in memory.
func (n fileSize) items() int { return max(maxColumns, int(n)) }

// expansionError says that what, a file or an array of one, unpacks to too many bytes; advice says
// what to do.
func expansionError(what, advice string) error {
	return kindErrorf(ErrFormat, "%s decompresses to more than %d times the size of the file and to more than %s; %s",
		what, maxRatio, units.Format(freeUnpacked), advice)
}

// checkFeatures returns an error if a file has n features, and neither bytes for so many nor a model that
// reads them.
func (o *OpenOptions) checkFeatures(n int, advice string) error {
	if most := max(o.size.items(), o.modelFeatures); n > most {
		return kindErrorf(ErrFormat, "%s features are too many for a file of %s bytes: a file may have %s features, or one for each byte if the file has more bytes; %s",
			units.Count(n), units.Count(int(o.size)), units.Count(maxColumns), advice)
	}
	return nil
}

// checkItems returns an error if the values of n rows, or n names, are too many to be kept in memory.
func (o *OpenOptions) checkItems(name string, n int, advice string) error {
	if n > o.size.items() {
		return kindErrorf(ErrFormat, "%q has %s values, too many for a file of %s bytes: a file may have %s values that are kept in memory, or one for each byte if the file has more bytes; %s",
			name, units.Count(n), units.Count(int(o.size)), units.Count(maxColumns), advice)
	}
	return nil
}

// unpacking reads what a packed file unpacks to, up to left bytes.
type unpacking struct {
	in   io.Reader
	left int64
}

// Read implements io.Reader.
func (u *unpacking) Read(p []byte) (int, error) {
	n, err := u.in.Read(p)
	if u.left -= int64(n); u.left < 0 {
		return 0, expansionError("the file", "decompress the file with gunzip first")
	}
	return n, err
}
