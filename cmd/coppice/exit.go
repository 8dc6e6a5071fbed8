package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/internal/printable"
)

// The exit codes. A command that a signal ended has 128 and the signal's number: 129
// SIGHUP, 130 SIGINT (Ctrl-C), 143 SIGTERM. A service that a signal stops ends well.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	exitSignal = 128
)

// failure is how a command failed, in JSON with -o json.
type failure struct {
	Error string `json:"error"`
	Kind  string `json:"kind"`
	Code  int    `json:"exit_code"`
	// Mistakes lists what is wrong with a spec of an experiment, if that is more than one thing.
	Mistakes []string `json:"mistakes,omitempty"`
}

// interrupted says what goes on after an interrupt; its text is for the user as it is.
type interrupted struct{ text string }

func (e interrupted) Error() string { return e.text }

func (interrupted) Is(target error) bool { return target == context.Canceled }

// absent is an error about a thing that is not there.
type absent struct{ error }

func (e absent) Unwrap() error { return e.error }

// Is has it found as fs.ErrNotExist.
func (absent) Is(target error) bool { return target == fs.ErrNotExist }

// failureOf describes an error of a command that ran under ctx.
func failureOf(ctx context.Context, err error) failure {
	f := failure{Error: strings.ReplaceAll(message(err), "\n", "; "), Kind: "failed", Code: exitFailed}
	var mistakes experiment.Errors
	if errors.As(err, &mistakes) && len(mistakes) > 1 {
		f.Error = plural(len(mistakes), "mistake") + " in the spec and its data"
		for _, one := range mistakes {
			f.Mistakes = append(f.Mistakes, strings.ReplaceAll(message(one), "\n", "; "))
		}
	}
	var refused *client.Error
	switch {
	case errors.Is(err, context.Canceled):
		f.Kind, f.Code = "interrupted", exitSignal+int(signalOf(ctx))
	case isUsage(err):
		f.Kind, f.Code = "usage", exitUsage
	case errors.Is(err, fs.ErrNotExist) || client.IsNotFound(err):
		f.Kind = "not_found"
	case errors.As(err, &refused):
		f.Kind = "refused"
	case errors.Is(err, client.ErrUnavailable) || errors.Is(err, client.ErrStranger):
		f.Kind = "unavailable"
	}
	return f
}

// signalOf returns the signal that ended ctx, or SIGINT for any other end.
func signalOf(ctx context.Context) syscall.Signal {
	var s signalled
	if errors.As(context.Cause(ctx), &s) {
		return s.Signal
	}
	return syscall.SIGINT
}

// report prints an error, each mistake of a spec on its line, or as one JSON value, and returns the exit code.
func report(ctx context.Context, stderr io.Writer, asJSON bool, err error) int {
	if err == nil {
		return exitOK
	}
	f := failureOf(ctx, err)
	var plain interrupted
	switch {
	case asJSON:
		e := json.NewEncoder(printable.NewJSONWriter(stderr))
		e.SetEscapeHTML(false)
		e.Encode(f)
	case errors.As(err, &plain):
		fmt.Fprintln(stderr, printable.Text(f.Error))
	case f.Mistakes != nil:
		fmt.Fprintf(stderr, "coppice: %s:\n", f.Error)
		for _, one := range f.Mistakes {
			fmt.Fprintln(stderr, printable.Text(one))
		}
	default:
		fmt.Fprintf(stderr, "coppice: %s\n%s", printable.Text(f.Error), printable.Text(engine.PanicStack(err)))
	}
	return f.Code
}

func message(err error) string {
	var p *fs.PathError
	var plain interrupted
	switch {
	case errors.As(err, &plain):
		return plain.text
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.As(err, &p):
		return strings.Replace(err.Error(), p.Error(), p.Path+": "+reasonOf(p), 1)
	}
	return err.Error()
}

// reasonOf says what is wrong with a file.
func reasonOf(err *fs.PathError) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no such file or folder"
	case errors.Is(err, syscall.EISDIR):
		return "is a folder; give the name of a file"
	case errors.Is(err, syscall.ENOTDIR):
		return "is not a folder, or is not in a folder"
	}
	return err.Err.Error()
}

// wantsJSON reads off a command line that could not be parsed whether its error is to be
// in JSON.
func wantsJSON(args []string) bool {
	isJSON := func(output string) bool { return output == outputJSON || output == outputJSONL }
	asked := isJSON(os.Getenv(variable("output")))
	for i, arg := range args {
		switch {
		case arg == "--":
			return asked
		case arg == "-o" || arg == "--output":
			asked = i+1 < len(args) && isJSON(args[i+1])
		case strings.HasPrefix(arg, "-o") || strings.HasPrefix(arg, "--output="):
			asked = strings.HasSuffix(arg, outputJSON) || strings.HasSuffix(arg, outputJSONL)
		}
	}
	return asked
}
