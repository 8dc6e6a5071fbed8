package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/internal/printable"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
)

// The exit codes. A command that a signal ended exits with 128 and the number of the signal: 129 is SIGHUP, 130 is
// SIGINT (Ctrl-C), 143 is SIGTERM. A service that a signal stops exits with ExitOK.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
	ExitSignal = 128
)

// marked is an error that is also another one for errors.Is.
type marked struct {
	error
	as error
}

func (e marked) Unwrap() error { return e.error }

func (e marked) Is(target error) bool { return target == e.as }

var (
	errUsage = errors.New("wrong usage")
	errData  = errors.New("the contents of a data file are wrong")
)

// Usage returns an error with the text of err. It says that the command line is wrong: the exit code is 2.
func Usage(err error) error { return marked{err, errUsage} }

// NotFound returns an error with the text of err that says that something does not exist. It is an fs.ErrNotExist.
func NotFound(err error) error { return marked{err, fs.ErrNotExist} }

// BadData returns an error with the text of err. Unless err is about access to a file, it is about the contents of
// data.
func BadData(err error) error { return marked{err, errData} }

// Usagef is Usage with the text that errtext.Sprintf makes.
func Usagef(format string, args ...any) error {
	return Usage(errtext.Errorf(errtext.WrongOption, format, args...))
}

// isUsage reports whether an error is about what the user asked for: flags, specs and settings.
func isUsage(err error) bool {
	var (
		inFile  *spec.Error
		setting *param.Error
		option  *dataset.OptionError
	)
	return errors.Is(err, errUsage) || errors.As(err, &inFile) || errors.As(err, &setting) || errors.As(err, &option) ||
		errors.Is(err, dataset.ErrAmbiguous)
}

// reworded is an error with another text.
type reworded struct {
	error
	text string
}

// Reworded returns err with another text.
func Reworded(err error, text string) error { return reworded{err, text} }

func (e reworded) Unwrap() error { return e.error }

func (e reworded) Error() string { return e.text }

// formed is an error with the text and the form of another one, and with its own kind.
type formed struct {
	error
	as error
}

// Formed returns err with the text and the form of another error.
func Formed(err, as error) error { return formed{err, as} }

func (e formed) Unwrap() error { return e.error }

func (e formed) Error() string { return e.as.Error() }

// Formed implements errtext.Formed.
func (e formed) Formed() (errtext.Code, errtext.Text) {
	text := e.as.Error()
	if f := errtext.Of(text, e.as); f != nil {
		return f.Code, f.Whole()
	}
	return "", errtext.Sprintf("%s", text)
}

// Failure is the error of a command, as -o json prints it.
type Failure struct {
	Error string `json:"error"`
	Kind  string `json:"kind"`
	Code  int    `json:"exit_code"`
	// Mistakes lists what is wrong with a spec of an experiment, if that is more than one thing.
	Mistakes []string `json:"mistakes,omitempty"`
	// Form is the error with places for options, and MistakeForms has the form of each mistake. A text without places has
	// no form.
	Form         *errtext.Form   `json:"form,omitempty"`
	MistakeForms []*errtext.Form `json:"mistake_forms,omitempty"`
}

// interrupted is the error of an interrupted command.
type interrupted struct{ text string }

// Interrupted returns the error of an interrupted command. text says what continues without the command, and is
// printed without a prefix.
func Interrupted(text string) error { return interrupted{text} }

func (e interrupted) Error() string { return e.text }

func (interrupted) Is(target error) bool { return target == context.Canceled }

// KindTimeout is the kind of the error of a command that ends at its --timeout.
const KindTimeout = "timeout"

// ofKind is an error of a kind of its own.
type ofKind struct {
	error
	kind string
}

// OfKind returns err with a kind, which -o json prints.
func OfKind(kind string, err error) error { return ofKind{err, kind} }

// failureOf describes an error of a command that ran under ctx.
func failureOf(ctx context.Context, err error) Failure {
	f := Failure{Error: strings.ReplaceAll(Message(err), "\n", "; "), Kind: "failed", Code: ExitFailed}
	var mistakes experiment.Errors
	if errors.As(err, &mistakes) && len(mistakes) > 1 {
		f.Error = units.Plural(len(mistakes), "mistake") + " in the spec and its data"
		for _, one := range mistakes {
			text := strings.ReplaceAll(Message(one), "\n", "; ")
			f.Mistakes, f.MistakeForms = append(f.Mistakes, text), append(f.MistakeForms, errtext.Of(text, one))
		}
	}
	var own ofKind
	var peer *certs.PeerError
	var refused *client.Error
	if errors.As(err, &refused) && len(refused.Mistakes) > 1 { // the leader read the spec
		f.Mistakes, f.MistakeForms = refused.Mistakes, refused.MistakeForms
	}
	f.Error = access.HideTokens(f.Error) // a user may give a token in place of its file
	if f.Mistakes == nil {
		f.Form = errtext.Of(f.Error, err)
	}
	switch {
	case errors.Is(err, context.Canceled):
		by := Signalled{syscall.SIGINT}
		errors.As(context.Cause(ctx), &by)
		f.Kind, f.Code = "interrupted", ExitSignal+int(by.Signal)
	case isUsage(err) || refused != nil && len(refused.Mistakes) > 0 && refused.Status == http.StatusBadRequest:
		f.Kind, f.Code = "usage", ExitUsage
	case errors.Is(err, fs.ErrNotExist) || client.IsNotFound(err):
		f.Kind = "not_found"
	case errors.As(err, &own):
		f.Kind = own.kind
	case errors.As(err, &refused):
		f.Kind = protocol.ProblemKind(refused.Status, false)
	case errors.As(err, &peer):
		f.Kind = "refused"
	case errors.Is(err, client.ErrUnavailable) || errors.Is(err, client.ErrStranger):
		f.Kind = "unavailable"
	case isData(err):
		f.Kind = "data"
	}
	return f
}

// isData reports whether an error is about the contents of data or of a model file, and not about access to them.
func isData(err error) bool {
	var (
		row    *dataset.RowError
		access *fs.PathError
	)
	if errors.Is(err, errData) && !errors.As(err, &access) {
		return true
	}
	for _, kind := range []error{dataset.ErrFormat, dataset.ErrNoLabels, dataset.ErrOtherLabels, dataset.ErrRowCount,
		dataset.ErrChanged, modelfile.ErrCorrupt} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return errors.As(err, &row)
}

// maxShownMistakes bounds the mistakes that are printed as text.
const maxShownMistakes = 50

// jsonErrors is the key of contexts in which errors are printed as JSON, whatever the output.
type jsonErrors struct{}

// report prints an error, each mistake of a spec on its line, or as one JSON value, and returns the exit code.
func report(ctx context.Context, stderr io.Writer, asJSON bool, err error) int {
	if err == nil {
		return ExitOK
	}
	f := failureOf(ctx, err)
	var plain interrupted
	switch {
	case asJSON || ctx.Value(jsonErrors{}) != nil:
		e := json.NewEncoder(printable.NewJSONWriter(stderr))
		e.SetEscapeHTML(false)
		e.Encode(f)
	case errors.As(err, &plain):
		fmt.Fprintln(stderr, printable.Text(f.Error))
	case f.Mistakes != nil:
		fmt.Fprintf(stderr, "coppice: %s:\n", f.Error)
		for _, one := range f.Mistakes[:min(len(f.Mistakes), maxShownMistakes)] {
			fmt.Fprintln(stderr, printable.Text(one))
		}
		if n := len(f.Mistakes) - maxShownMistakes; n > 0 {
			fmt.Fprintf(stderr, "and %s more; -o json lists all\n", units.Count(n))
		}
	default:
		fmt.Fprintf(stderr, "coppice: %s\n%s", printable.Text(f.Error), printable.Text(engine.PanicStack(err)))
	}
	return f.Code
}

// Message returns the text of an error on one line or more, without the name of the program.
func Message(err error) string {
	var plain interrupted
	switch {
	case errors.As(err, &plain):
		return plain.text
	case errors.Is(err, context.Canceled):
		return "interrupted"
	}
	return files.Message(err)
}

// Signalled is the cause of a context that a signal ended.
type Signalled struct{ syscall.Signal }

func (s Signalled) Error() string { return s.Signal.String() }

// Is makes the cause of a context count as context.Canceled.
func (Signalled) Is(target error) bool { return target == context.Canceled }

// ownProcess is what a command may change in its process. It is missing from the context of commands that tests run.
type ownProcess struct {
	hangup atomic.Pointer[func() bool] // called at each SIGHUP; if it returns true, the signal is ignored
}

type processKey struct{}

// processOf returns the process of a command, or nil.
func processOf(ctx context.Context) *ownProcess {
	p, _ := ctx.Value(processKey{}).(*ownProcess)
	return p
}

// OnHangup has ignores called at each SIGHUP of the process of a command. If it returns true, the signal is ignored.
func OnHangup(ctx context.Context, ignores func() bool) {
	if p := processOf(ctx); p != nil {
		p.hangup.Store(&ignores)
	}
}

// KeepPrivate makes all files that the process creates from now on, also by libraries, accessible to its user only.
func KeepPrivate(ctx context.Context) {
	if processOf(ctx) != nil {
		unix.Umask(unix.Umask(0o077) | 0o077)
	}
}

// untilSignal returns a context that ends at SIGINT (Ctrl-C), SIGTERM, and SIGHUP unless it is ignored (nohup). A
// closed pipe becomes an error of the write and does not end the process.
func untilSignal() (context.Context, func()) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	p := new(ownProcess)
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), processKey{}, p))
	came := make(chan os.Signal, 1)
	signal.Notify(came, signals...)
	go func() {
		for {
			select {
			case s := <-came:
				if f := p.hangup.Load(); s == syscall.SIGHUP && f != nil && (*f)() {
					continue
				}
				cancel(Signalled{s.(syscall.Signal)})
			case <-ctx.Done():
			}
			return
		}
	}()
	return ctx, func() { signal.Stop(came); cancel(nil) }
}
