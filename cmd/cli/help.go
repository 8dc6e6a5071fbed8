package cli

import (
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/protocol"
)

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

var helpOptions = kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100, ValueFormatter: kong.DefaultHelpValueFormatter}

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
	_, err := fmt.Fprintf(ctx.Stdout, "\n\"%s --help-all\" shows %s that few people need.\n", node.FullPath(), units.Plural(len(left), "flag"))
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
		Protocol int    `json:"protocol"`
		Numerics int    `json:"numerics"`
	}{version.String, protocol.Version, round.Numerics}
	return a.Print(v, func(w io.Writer) { writeVersion(w) })
}

func writeVersion(w io.Writer) {
	fmt.Fprintf(w, "coppice %s (protocol %d, arithmetic version %d)\n", version.String, protocol.Version, round.Numerics)
}

// versionFlag is --version.
type versionFlag bool

// BeforeReset implements kong's hook: nothing else on the command line is looked at.
func (versionFlag) BeforeReset(k *kong.Kong) error {
	writeVersion(k.Stdout)
	k.Exit(ExitOK)
	return nil
}
