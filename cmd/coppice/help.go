package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/protocol"
)

// helpCmd is --help as a command.
type helpCmd struct {
	Command []string `arg:"" optional:"" help:"The command, such as job list."`
}

// Run implements `coppice help`: it does what --help behind the command does.
func (c *helpCmd) Run(a *app, k *kong.Kong) error {
	_, err := k.Parse(append(c.Command, "--help"))
	if out, ok := a.data.(*checkedWriter); ok && out.err != nil {
		return out.err
	}
	return usagef("%w; see \"coppice --help\"", err)
}

// plainSubcommands takes the groups of commands off their subcommands, whose help stands
// alone.
func plainSubcommands(k *kong.Kong) error {
	for _, command := range k.Model.Children {
		for _, sub := range command.Children {
			sub.Group = nil
		}
	}
	return nil
}

// printHelp prints kong's help and, for commands that take settings, their table.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	node := ctx.Selected()
	if node == nil || !node.Target.IsValid() || !node.Target.CanAddr() {
		return nil
	}
	if s, ok := node.Target.Addr().Interface().(interface{ settingsHelp() string }); ok {
		_, err := io.WriteString(ctx.Stdout, "\n"+strings.TrimRight(s.settingsHelp(), "\n")+"\n")
		return err
	}
	return nil
}

type versionCmd struct{}

// Run implements `coppice version`.
func (versionCmd) Run(a *app) error {
	v := struct {
		Version  string `json:"version"`
		Protocol int    `json:"protocol"`
		Numerics int    `json:"numerics"`
	}{version.String, protocol.Version, round.Numerics}
	return a.print(v, func(w io.Writer) { writeVersion(w) })
}

func writeVersion(w io.Writer) {
	fmt.Fprintf(w, "coppice %s (protocol %d, numerics %d)\n", version.String, protocol.Version, round.Numerics)
}

// versionFlag is --version.
type versionFlag bool

// BeforeReset implements kong's hook: nothing else on the command line is looked at.
func (versionFlag) BeforeReset(k *kong.Kong) error {
	writeVersion(k.Stdout)
	k.Exit(exitOK)
	return nil
}
