package commands

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
	outputText  = "text"
	outputJSON  = "json"
	outputCSV   = "csv"
	outputJSONL = "jsonl"
)

// app is what every command works with.
type app struct {
	ctx    context.Context
	stdin  io.Reader
	stdout io.Writer       // for text; escape sequences in it are shown, see package printable
	stderr io.Writer       // the same
	data   io.Writer       // stdout without that change, for data
	output string          // output format, see outputsOf
	json   bool            // true if output is outputJSON
	given  map[string]bool // names of the flags on the command line, see givenIn

	again command // runs a command line of a library

	cluster askedCluster // the cluster that the command asks; nil without one
	reach   []string     // the flags on the command line that say which cluster, as words for a shell
	said    []string     // notes and warnings about data, for JSON
	atEnd   []func()     // functions to call after the command
}

// askedCluster is a cluster that a command asks, which may not answer.
type askedCluster interface {
	// patient makes requests wait for the cluster, and say why on stderr.
	patient(wait time.Duration)
	// isSilent reports whether a line has said that the cluster does not answer, and nothing has changed since.
	isSilent() bool
	// explained adds what each coordinator says to the error that no coordinator answered.
	explained(err error) error
}

// isGiven reports whether a flag is on the command line. Variables and the file of --config do not count.
func (a *app) isGiven(flag string) bool { return a.given[flag] }

// isTerminal reports whether the stdin, stdout or stderr of a command is a terminal.
func isTerminal(stream any) bool {
	if w, ok := stream.(io.Writer); ok {
		stream = printable.Unwrap(w)
	}
	if out, ok := stream.(*checkedWriter); ok {
		stream = out.w
	}
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// forLibrary reports whether the command runs for a library of another language, which gets what it writes to stderr.
func (a *app) forLibrary() bool {
	_, ok := printable.Unwrap(a.stderr).(*lines)
	return ok
}

// atEnding has f called after the command.
func (a *app) atEnding(f func()) { a.atEnd = append(a.atEnd, f) }

// command runs a command line and returns its exit code.
type command func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int

// command is a command line about the same cluster: with the flags of this command about the cluster, but without
// variables, which the next command has too.
func (a *app) command(text string) string {
	return strings.Join(append([]string{"coppice " + text}, a.reach...), " ")
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

// print writes v as one JSON value with -o json, and the text otherwise.
func (a *app) print(v any, text func(w io.Writer)) error {
	if !a.json {
		text(a.stdout)
		return nil
	}
	e := a.encoder()
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// encoder returns an encoder of JSON to stdout.
func (a *app) encoder() *json.Encoder {
	e := json.NewEncoder(printable.NewJSONWriter(a.data))
	e.SetEscapeHTML(false)
	return e
}

// note writes a line to stderr, over the progress on a terminal. A library gets an object in JSON. Its key is the word
// before the first colon if that is note or warning, and otherwise info.
func (a *app) note(format string, args ...any) {
	text := errtext.Sprintf(format, args...)
	key, rest, _ := strings.Cut(string(text), ": ")
	if key != "note" && key != "warning" {
		key, rest = "info", string(text)
	}
	if toLibrary(a.stderr, key, errtext.Text(rest)) {
		return
	}
	if isTerminal(a.stderr) {
		fmt.Fprint(printable.Unwrap(a.stderr), "\r\x1b[K")
	}
	fmt.Fprintln(a.stderr, text)
}

// lines is a writer that passes on whole lines, or pieces of maxPiece bytes.
type lines struct {
	pass func(text string)

	mu   sync.Mutex
	rest []byte
}

// toLibrary writes a text with its places as a line of JSON, if w passes on what a command writes to a library.
func toLibrary(w io.Writer, key string, text errtext.Text) bool {
	l, ok := printable.Unwrap(w).(*lines)
	if !ok {
		return false
	}
	e := json.NewEncoder(printable.NewJSONWriter(l))
	e.SetEscapeHTML(false)
	_ = e.Encode(map[string][]errtext.Part{key: text.Parts()})
	return true
}

// maxPiece is the number of bytes that lines keeps of a line.
const maxPiece = 1 << 20

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

// ownerColumn adds the owners to the rows of a table, if one of the things in it has an owner. owner returns the owner of
// thing i, or an empty text.
func ownerColumn(header []string, things int, owner func(i int) string) (all []string, add func(i int, row []any) []any) {
	for i := range things {
		if owner(i) != "" {
			return append(header, "owner"), func(i int, row []any) []any { return append(row, cmp.Or(owner(i), "-")) }
		}
	}
	return header, func(_ int, row []any) []any { return row }
}

// ownerOf names the owner of something, and says if it is private.
func ownerOf(owner string, private bool) string {
	if private {
		return owner + " (private)"
	}
	return owner
}

// newTable returns a table without frames. The columns in right, counted from 1, are aligned to the right.
func newTable(w io.Writer, header []string, right ...int) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	t.AppendHeader(rowOf(header...))
	var columns []table.ColumnConfig
	for _, n := range right {
		columns = append(columns, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	return t
}

// rowOf returns a row of a table. Each field stays on one line.
func rowOf(cells ...string) table.Row {
	var r table.Row
	for _, c := range cells {
		r = append(r, printable.Line(c))
	}
	return r
}

// pairs writes lines, each with a name and a value.
func pairs(w io.Writer, lines [][2]string) {
	width := 0
	for _, l := range lines {
		width = max(width, len(l[0]))
	}
	for _, l := range lines {
		fmt.Fprintf(w, "%-*s  %s\n", width, l[0], l[1])
	}
}

// figure writes a measure with five decimals, below 0.001 with seven decimals, and below 10⁻⁶ with an exponent.
func figure(v float64) string {
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

// clock writes a time that a cluster recorded, in Unix seconds.
func clock(seconds int64) string {
	if seconds == 0 {
		return "-"
	}
	return time.Unix(seconds, 0).Format(time.DateTime)
}

// short shortens a digest for tables.
func short(digest string) string {
	if len(digest) > 12 {
		return digest[:12]
	}
	return digest
}

// nameList writes at most 20 names. A name that is hard to read in a list is quoted.
func nameList(names []string) string {
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
