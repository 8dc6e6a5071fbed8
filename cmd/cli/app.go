package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/mattn/go-isatty"

	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/printable"
	"github.com/coppice-ldl/coppice/internal/units"
)

// The output formats of -o.
const (
	Text  = "text"
	JSON  = "json"
	CSV   = "csv"
	JSONL = "jsonl"
)

// App is what the method Run of a command gets: the streams, the output format and the flags of its command line.
type App struct {
	Ctx    context.Context
	Stdin  io.Reader
	Stdout io.Writer       // for text; escape sequences in it are shown, see package printable
	Stderr io.Writer       // the same
	Data   io.Writer       // stdout without that change, for data
	Output string          // Text, JSON, CSV or JSONL
	JSON   bool            // true if Output is JSON
	given  map[string]bool // names of the flags on the command line

	again Program // runs a command line of a library

	Cluster AskedCluster // the cluster that the command asks; nil without one
	Reach   []string     // the flags on the command line that say which cluster, as words for a shell
	Notes   []string     // notes and warnings about data, for JSON
	atEnd   []func()     // functions to call after the command
}

// AskedCluster is a cluster that a command asks, which may not answer.
type AskedCluster interface {
	// Patient makes requests wait for the cluster, and say why on stderr.
	Patient(wait time.Duration)
	// IsSilent reports whether a line has said that the cluster does not answer, and nothing has changed since.
	IsSilent() bool
	// Explained adds what each coordinator says to the error that no coordinator answered.
	Explained(err error) error
}

// Given reports whether a flag is on the command line. Variables and the file of --config do not count.
func (a *App) Given(flag string) bool { return a.given[flag] }

// IsTerminal reports whether the stdin, stdout or stderr of a command is a terminal.
func IsTerminal(stream any) bool {
	if w, ok := stream.(io.Writer); ok {
		stream = printable.Unwrap(w)
	}
	if out, ok := stream.(*checkedWriter); ok {
		stream = out.w
	}
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// ForLibrary reports whether the command runs for a library of another language, which gets what it writes to stderr.
func (a *App) ForLibrary() bool {
	_, ok := printable.Unwrap(a.Stderr).(*lines)
	return ok
}

// AtEnd has f called after the command.
func (a *App) AtEnd(f func()) { a.atEnd = append(a.atEnd, f) }

// Program runs a command line, without the name of the program, and returns its exit code.
type Program func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int

// Command returns a command line about the same cluster. It has the flags of this command that name the cluster, but
// not the values of variables, which the next command has too.
func (a *App) Command(text string) string {
	return strings.Join(append([]string{"coppice " + text}, a.Reach...), " ")
}

// cannotWrite is an error with the name that the user gave, instead of the name of the temporary file.
func cannotWrite(path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("%s: cannot be written: %w", path, err)
}

// checkedWriter is stdout. It keeps the first error, which makes the command fail.
type checkedWriter struct {
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (c *checkedWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	if err == nil {
		return n, nil
	}
	if err = cannotWrite("stdout", err); c.err == nil {
		c.err = err
	}
	return n, err
}

// Print writes v as one JSON value with -o json, and the text otherwise.
func (a *App) Print(v any, text func(w io.Writer)) error {
	if !a.JSON {
		text(a.Stdout)
		return nil
	}
	e := a.Encoder()
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// PrintResult is Print for a command with -o jsonl, which writes v as the result in the last line.
func (a *App) PrintResult(v any, text func(w io.Writer)) error {
	if a.Output != JSONL {
		return a.Print(v, text)
	}
	return a.Encoder().Encode(struct {
		Result any `json:"result"`
	}{v})
}

// Encoder returns an encoder of JSON to stdout.
func (a *App) Encoder() *json.Encoder {
	e := json.NewEncoder(printable.NewJSONWriter(a.Data))
	e.SetEscapeHTML(false)
	return e
}

// Note writes a line to stderr, over the progress on a terminal. A library gets an object in JSON. Its key is the word
// before the first colon if that is note or warning, and otherwise info.
func (a *App) Note(format string, args ...any) {
	text := errtext.Sprintf(format, args...)
	key, rest, _ := strings.Cut(string(text), ": ")
	if key != "note" && key != "warning" {
		key, rest = "info", string(text)
	}
	if ToLibrary(a.Stderr, key, errtext.Text(rest)) {
		return
	}
	if IsTerminal(a.Stderr) {
		fmt.Fprint(printable.Unwrap(a.Stderr), "\r\x1b[K")
	}
	fmt.Fprintln(a.Stderr, text)
}

// WriteTable writes a table with a row for each of the things. The columns in right, counted from 1, are aligned to the
// right.
func WriteTable[T any](w io.Writer, header []string, things []T, row func(T) []string, right ...int) {
	t := NewTable(w, header, right...)
	for _, one := range things {
		t.AppendRow(Row(row(one)...))
	}
	t.Render()
}

// WriteOwned is WriteTable with a column of owners, if one of the things has an owner. owner returns the owner of a
// thing, or an empty text.
func WriteOwned[T any](w io.Writer, header []string, things []T, owner func(T) string, row func(T) []string,
	right ...int) {
	if !slices.ContainsFunc(things, func(one T) bool { return owner(one) != "" }) {
		WriteTable(w, header, things, row, right...)
		return
	}
	WriteTable(w, append(header, "owner"), things, func(one T) []string {
		return append(row(one), cmp.Or(owner(one), "-"))
	}, right...)
}

// Owner names the owner of something, and says if it is private.
func Owner(owner string, private bool) string {
	if private {
		return owner + " (private)"
	}
	return owner
}

// NewTable returns a table without frames. The columns in right, counted from 1, are aligned to the right.
func NewTable(w io.Writer, header []string, right ...int) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	t.AppendHeader(Row(header...))
	var columns []table.ColumnConfig
	for _, n := range right {
		columns = append(columns, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	return t
}

// Row returns a row of a table. Each field stays on one line.
func Row(cells ...string) table.Row {
	var r table.Row
	for _, c := range cells {
		r = append(r, printable.Line(c))
	}
	return r
}

// WritePairs writes lines, each with a name and a value.
func WritePairs(w io.Writer, lines [][2]string) {
	width := 0
	for _, l := range lines {
		width = max(width, len(l[0]))
	}
	for _, l := range lines {
		fmt.Fprintf(w, "%-*s  %s\n", width, l[0], l[1])
	}
}

// Measure writes a measure with five decimals, below 0.001 with seven decimals, and below 10⁻⁶ with an exponent.
func Measure(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case v != 0 && math.Abs(v) < 1e-6:
		return strconv.FormatFloat(v, 'e', 1, 64)
	case v != 0 && math.Abs(v) < 0.001:
		return strconv.FormatFloat(v, 'f', 7, 64)
	}
	return strconv.FormatFloat(v, 'f', 5, 64)
}

// Time writes a time that a cluster recorded, in Unix seconds.
func Time(seconds int64) string {
	if seconds == 0 {
		return "-"
	}
	return time.Unix(seconds, 0).Format(time.DateTime)
}

// ShortDigest shortens a digest for tables.
func ShortDigest(digest string) string {
	if len(digest) > 12 {
		return digest[:12]
	}
	return digest
}

// NameList writes at most 20 names. A name that is hard to read in a list is quoted.
func NameList(names []string) string {
	const shown = 20
	if len(names) == 0 {
		return "none"
	}
	var list []string
	for _, name := range names[:min(shown, len(names))] {
		hard := func(r rune) bool { return r == ',' || r == '"' || !strconv.IsPrint(r) }
		if name == "" || strings.ContainsFunc(name, hard) {
			name = strconv.Quote(name)
		}
		list = append(list, name)
	}
	s := strings.Join(list, ", ")
	if n := len(names); n > shown {
		s += fmt.Sprintf(", ... (%s in all; -o json has them)", units.Count(n))
	}
	return s
}

// ToLibrary writes a text with its places as a line of JSON, if w passes on what a command writes to a library.
func ToLibrary(w io.Writer, key string, text errtext.Text) bool {
	l, ok := printable.Unwrap(w).(*lines)
	if !ok {
		return false
	}
	e := json.NewEncoder(printable.NewJSONWriter(l))
	e.SetEscapeHTML(false)
	_ = e.Encode(map[string][]errtext.Part{key: text.Parts()})
	return true
}

// lines is a writer that passes on whole lines, or pieces of maxPiece bytes.
type lines struct {
	pass func(text string)

	mu   sync.Mutex
	rest []byte
}

// Write implements io.Writer.
func (w *lines) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, b...)
	end := strings.LastIndexByte(string(w.rest), '\n') + 1
	if end == 0 && len(w.rest) >= maxPiece {
		end = len(w.rest)
	}
	if end > 0 {
		w.pass(string(w.rest[:end]))
		w.rest = append(w.rest[:0], w.rest[end:]...)
	}
	return len(b), nil
}

func (w *lines) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) > 0 {
		w.pass(string(w.rest))
		w.rest = nil
	}
}

// maxPiece is the number of bytes that lines keeps of a line.
const maxPiece = 1 << 20
