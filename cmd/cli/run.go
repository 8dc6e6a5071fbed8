// Package cli has what all commands of coppice share: it reads a command line, runs the command, and prints its output
// and its error.
//
// A Grammar is a struct with a field for each command. Run parses a command line, with the values of environment
// variables and of the file of --config, and calls the method Run of the command with an App. The command prints with
// the methods of App and with tables, and writes files with Create. It returns an error, and the kind of the error
// decides the exit code: see Usagef, NotFound, BadData and OfKind.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/printable"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/protocol"
)

// Main runs the command line of this process, and ends the process with the exit code of the command.
func Main(run Program) {
	ctx, stop := untilSignal()
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Run runs a command line of a grammar, without the name of the program, and returns its exit code. The command stops
// if ctx ends. again runs the command lines of a library.
func Run(ctx context.Context, g Grammar, again Program, args []string, stdin io.Reader, stdout,
	stderr io.Writer) (code int) {
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
	parser := NewParser(g, kong.Bind(from), kong.Resolvers(from), kong.WithBeforeResolve(readConfig),
		kong.Writers(text, notes),
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
	a := &App{Ctx: ctx, Stdin: stdin, Stdout: text, Stderr: notes, Data: out, Output: c.Output, JSON: c.Output == JSON,
		given: givenIn(parsed), again: again}
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
	return kong.Must(g, append(options, kong.Name("coppice"), kong.Description(description),
		kong.ConfigureHelp(helpOptions), kong.Help(printHelp),
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
	"models": "Train and use models:", "things": "What a cluster holds:", "services": "Run a cluster:",
	"other": "Other commands:",
	"what":  "What to train:", "test": "How to test:", "write": "What to write:", "cluster": "Which cluster:",
	"data": "How a data file is read:",
}

const description = "Coppice trains label distribution learning models, and loses no work."

// HelpCmd is --help as a command.
type HelpCmd struct {
	Command []string `arg:"" optional:"" help:"Command, such as job list."`
}

// Run implements `coppice help`: it does what --help behind the command does.
func (c *HelpCmd) Run(a *App, k *kong.Kong) error {
	_, err := k.Parse(append(c.Command, "--help"))
	if out, ok := a.Data.(*checkedWriter); ok && out.err != nil {
		return out.err
	}
	return Usagef("%w; see \"coppice --help\"", err)
}

var helpOptions = kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100,
	ValueFormatter: kong.DefaultHelpValueFormatter}

// seldomUsed is the tag of a flag that few people need.
const seldomUsed = "seldom"

// minOmitted is the least number of flags with the tag seldomUsed that --help omits. If a command has fewer, --help
// shows all flags, as --help-all does.
const minOmitted = 10

// printHelp prints the help of kong, without the flags that few people need if there are many.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	node := ctx.Selected()
	if node == nil {
		return kong.DefaultHelpPrinter(options, ctx)
	}
	var left []*kong.Flag
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			if f.Tag.Has(seldomUsed) {
				left = append(left, f)
			}
		}
	}
	if len(left) < minOmitted {
		return kong.DefaultHelpPrinter(options, ctx)
	}
	for _, f := range left {
		f.Hidden = true
		defer func() { f.Hidden = false }()
	}
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	_, err := fmt.Fprintf(ctx.Stdout, "\n\"%s --help-all\" shows %s that few people need.\n", node.FullPath(),
		units.Plural(len(left), "flag"))
	return err
}

// allHelpFlag is --help-all.
type allHelpFlag bool

// BeforeReset implements kong's hook: nothing else on the command line is looked at.
func (allHelpFlag) BeforeReset(ctx *kong.Context, k *kong.Kong) error {
	if err := kong.DefaultHelpPrinter(helpOptions, ctx); err != nil {
		return err
	}
	k.Exit(ExitOK)
	return nil
}

// VersionCmd is `coppice version`.
type VersionCmd struct{}

// Run implements `coppice version`.
func (VersionCmd) Run(a *App) error {
	v := struct {
		Version  string `json:"version"`
		Commit   string `json:"commit,omitempty"`
		Modified bool   `json:"modified"`
		Protocol int    `json:"protocol"`
		Numerics int    `json:"numerics"`
	}{Version: version.String, Protocol: protocol.Version, Numerics: round.Numerics}
	v.Commit, v.Modified = version.Commit()
	return a.Print(v, func(w io.Writer) { writeVersion(w) })
}

func writeVersion(w io.Writer) {
	commit, modified := version.Commit()
	tree := ", clean"
	switch {
	case commit == "":
		commit, tree = "unknown", ""
	case modified:
		tree = ", modified"
	}
	fmt.Fprintf(w, "coppice %s (commit %.12s%s; protocol %d, arithmetic version %d)\n", version.String, commit, tree,
		protocol.Version, round.Numerics)
}

// versionFlag is --version.
type versionFlag bool

// BeforeReset implements kong's hook: nothing else on the command line is looked at.
func (versionFlag) BeforeReset(k *kong.Kong) error {
	writeVersion(k.Stdout)
	k.Exit(ExitOK)
	return nil
}
