// Command coppice trains label distribution learning models, in one process or
// on a cluster: `coppice --help` lists what it does.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

func main() {
	// A closed pipe is an error of the write, not the end of the process.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// app is what every command works with.
type app struct {
	ctx    context.Context
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	json   bool

	atEnd []func() // what to do when the command has ended
}

// run runs one command line and returns its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	out := &checkedWriter{w: stdout}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exited:
			code = int(r)
		default:
			panic(r)
		}
		if code == exitOK {
			code = report(stderr, out.err)
		}
	}()
	var c cli
	parser := kong.Must(&c,
		kong.Name("coppice"), kong.Description(description), kong.Writers(out, stderr),
		kong.Exit(func(code int) { panic(exited(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}), kong.Help(printHelp),
		kong.Groups{"cluster": "Which cluster:", "data": "How a data file is read:"},
	)
	parsed, err := parser.Parse(args)
	if err != nil && out.err != nil {
		return report(stderr, out.err)
	}
	if err != nil {
		fmt.Fprintf(stderr, "coppice: %v; see \"%s --help\"\n", err, at(err))
		return exitUsage
	}
	a := &app{ctx: ctx, stdin: stdin, stdout: out, stderr: stderr, json: c.Output == "json"}
	defer a.end()
	err = parsed.Run(a)
	return report(stderr, err)
}

// exited carries an exit code out of kong's own flags, such as --help.
type exited int

// at names the command that a wrong command line had come to.
func at(err error) string {
	var p *kong.ParseError
	if errors.As(err, &p) && p.Context.Selected() != nil {
		return p.Context.Selected().FullPath()
	}
	return "coppice"
}

// report prints an error on one line and returns the exit code.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	if !errors.Is(err, errReported) {
		fmt.Fprintf(stderr, "coppice: %s\n", message(err))
	}
	if isUsage(err) {
		return exitUsage
	}
	return exitFailed
}

// errReported ends a command that has said why by itself.
var errReported = errors.New("reported")

func message(err error) string {
	var p *fs.PathError
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.As(err, &p) && errors.Is(err, fs.ErrNotExist):
		return strings.Replace(err.Error(), p.Error(), p.Path+": no such file or folder", 1)
	}
	return err.Error()
}
