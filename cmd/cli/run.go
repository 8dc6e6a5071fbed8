// Package cli has what all commands of coppice share: it reads a command line, runs the command, and prints its output
// and its error.
//
// A Grammar is a struct with a field for each command. Run parses a command line, with the values of environment variables
// and of the file of --config, and calls the method Run of the command with an App. The command prints with the methods of
// App and with tables, and writes files with Create. It returns an error, and the kind of the error decides the exit code:
// see Usagef, NotFound, BadData and OfKind.
package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/printable"
)

// Main runs the command line of this process, and ends the process with the exit code of the command.
func Main(run Program) {
	ctx, stop := untilSignal()
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Run runs a command line of a grammar, without the name of the program, and returns its exit code. The command stops if
// ctx ends. again runs the command lines of a library.
func Run(ctx context.Context, g Grammar, again Program, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int) {
	out := &checkedWriter{w: stdout}
	text, notes := printable.NewWriter(out), printable.NewWriter(stderr)
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exited:
			code = int(r)
		default:
			panic(r)
		}
		text.Flush() // out.err has its error
		notes.Flush()
		if code == ExitOK {
			code = report(ctx, stderr, wantsJSON(args), out.err)
		}
	}()
	c, from := g.all(), &outside{}
	parser := NewParser(g, kong.Bind(from), kong.Resolvers(from), kong.WithBeforeResolve(readConfig), kong.Writers(text, notes),
		kong.Exit(func(code int) { panic(exited(code)) }))
	parsed, err := parser.Parse(withNegatives(args))
	if err != nil && out.err != nil {
		return report(ctx, stderr, wantsJSON(args), out.err)
	}
	if err != nil {
		wrong := wrongLine(err)
		if ctx.Value(jsonErrors{}) == nil { // a library has its own help
			wrong = errtext.Errorf(errtext.WrongOption, "%w; see \"%s --help\"", wrong, at(err))
		}
		return report(ctx, stderr, wantsJSON(args), Usage(wrong))
	}
	if err := cmp.Or(checkGiven(parsed), checkOutput(parsed.Selected(), c.Output)); err != nil {
		return report(ctx, stderr, wantsJSON(args), err)
	}
	a := &App{Ctx: ctx, Stdin: stdin, Stdout: text, Stderr: notes, Data: out, Output: c.Output, JSON: c.Output == JSON, given: givenIn(parsed), again: again}
	defer func() {
		for _, f := range a.atEnd {
			f()
		}
	}()
	err = parsed.Run(a)
	if a.Cluster != nil {
		err = a.Cluster.Explained(err)
	}
	return report(ctx, stderr, a.JSON || c.Output == JSONL, err)
}

// NewParser returns a parser of the command lines of a grammar.
func NewParser(g Grammar, options ...kong.Option) *kong.Kong {
	ungroup := kong.PostBuild(func(k *kong.Kong) error { // help lists subcommands alone
		for _, command := range k.Model.Children {
			for _, sub := range command.Children {
				sub.Group = nil
			}
		}
		return nil
	})
	return kong.Must(g, append(options, kong.Name("coppice"), kong.Description(description), kong.ConfigureHelp(helpOptions), kong.Help(printHelp),
		Groups, ungroup, decimalNumbers())...)
}

// exited carries an exit code out of flags of kong, such as --help.
type exited int

// at returns the command that a wrong command line names.
func at(err error) string {
	var p *kong.ParseError
	if errors.As(err, &p) && p.Context.Selected() != nil {
		return p.Context.Selected().FullPath()
	}
	return "coppice"
}

// wantsJSON reports whether a command line that could not be parsed asks for errors in JSON.
func wantsJSON(args []string) bool {
	isJSON := func(output string) bool { return output == JSON || output == JSONL }
	asked := isJSON(os.Getenv(Variable("output")))
	for i, arg := range args {
		switch {
		case arg == "--":
			return asked
		case arg == "-o" || arg == "--output":
			asked = i+1 < len(args) && isJSON(args[i+1])
		case strings.HasPrefix(arg, "-o") || strings.HasPrefix(arg, "--output="):
			asked = strings.HasSuffix(arg, JSON) || strings.HasSuffix(arg, JSONL)
		}
	}
	return asked
}

// Globals are the flags of all commands.
type Globals struct {
	Output string `short:"o" enum:"text,json,csv,jsonl" default:"text" help:"Output format: text, json, csv (job curve) or jsonl (train, watch, run). Progress and logs go to stderr."`

	ConfigFile  string      `name:"config" placeholder:"FILE" help:"YAML file with values of flags."`
	HelpAll     allHelpFlag `help:"Show all flags, including rarely used flags."`
	ShowVersion versionFlag `name:"version" help:"Print the version and stop."`
}

// all implements grammar.
func (g *Globals) all() *Globals { return g }

// Grammar is what a command line may have: a struct that embeds Globals, with a field for each command.
type Grammar interface{ all() *Globals }

// Groups are the titles under which help lists commands and flags.
var Groups = kong.Groups{
	"models": "Train and use models:", "things": "What a cluster holds:", "services": "Run a cluster:", "other": "Other commands:",
	"what": "What to train:", "test": "How to test:", "write": "What to write:", "cluster": "Which cluster:", "data": "How a data file is read:",
}

const description = "Coppice trains label distribution learning models on many machines, and loses no work when a machine fails."
