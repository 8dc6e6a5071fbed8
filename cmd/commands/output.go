package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/printable"
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

// printResult is print for a command with -o jsonl, which writes v as the result in the last line.
func (a *app) printResult(v any, text func(w io.Writer)) error {
	if a.output != outputJSONL {
		return a.print(v, text)
	}
	return a.encoder().Encode(struct {
		Result any `json:"result"`
	}{v})
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
