package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
)

type configCmd struct {
	Show configShowCmd `cmd:"" help:"Show what value each flag of a command has, and where it comes from."`
}

// Help implements kong's HelpProvider.
func (configCmd) Help() string {
	return `Every flag may also be given as an environment variable, whose name is COPPICE_ and the name of the flag: COPPICE_MAX_QUEUE
for --max-queue. Or it may be given in the YAML file of --config (or COPPICE_CONFIG). A flag overrides a variable, and a
variable overrides the file:

  server: [10.0.0.1:7100, 10.0.0.2:7100]    # of every command that has --server
  coordinator:                              # of this command
    dir: /var/lib/coppice
    max-queue: 200
  output: json                              # of every command

A key that no command has is refused. An empty variable counts as not given. In a variable, commas separate the items of
a list.`
}

type configShowCmd struct {
	Command []string `arg:"" optional:"" passthrough:"" help:"Command line, such as train --steps 100 (default: all commands, with the values that variables and the file give)."`
}

// source is a flag with its value and where that comes from.
type source struct {
	Command string `json:"command"`
	Flag    string `json:"flag"`
	Value   string `json:"value"`
	From    string `json:"from"` // "flag", "default", a variable, or a file and line
}

// shownConfig is what `coppice config show` prints.
type shownConfig struct {
	Values []source `json:"values"`
	// Unknown lists variables named COPPICE_* that are of no flag.
	Unknown []string `json:"unknown_variables"`
}

// Run implements `coppice config show`.
func (c *configShowCmd) Run(a *app, k *kong.Kong, o *outside) error {
	shown := shownConfig{Values: []source{}, Unknown: unknownVariables(k.Model.Node)}
	var err error
	if len(c.Command) > 0 {
		shown.Values, err = o.sources(k, c.Command)
	} else {
		shown.Values = append(shown.Values, o.everywhere(k.Model.Node)...)
	}
	if err != nil {
		return err
	}
	for _, name := range shown.Unknown {
		a.note("note: no flag has the environment variable %s%s", name, param.Suggest(name, variables(k.Model.Node)))
	}
	return a.print(shown, func(w io.Writer) {
		t := newTable(w, []string{"command", "flag", "value", "from"})
		for _, s := range together(shown.Values) {
			t.AppendRow(rowOf(s.Command, "--"+s.Flag, s.Value, s.From))
		}
		t.Render()
	})
}

// sources lists every flag of a command line.
func (o *outside) sources(k *kong.Kong, args []string) (all []source, err error) {
	line, err := kong.Trace(k, args)
	if err == nil {
		err = line.Error
	}
	if err == nil && line.Selected() == nil {
		err = fmt.Errorf("%q names no command", strings.Join(args, " "))
	}
	if err == nil {
		err = checkGiven(line)
	}
	if err != nil {
		return nil, usagef("%w; see \"coppice --help\"", err)
	}
	command := line.Selected()
	for _, f := range line.Flags() {
		if !settable(f) {
			continue
		}
		s := source{strings.Join(path(command), " "), f.Name, f.Default, "default"}
		if slices.ContainsFunc(line.Path, func(p *kong.Path) bool { return p.Flag == f }) {
			s.Value, s.From = textOf(line.FlagValue(f)), "flag"
		} else if g := o.find(command, f); g != nil {
			if err := g.check(f); err != nil {
				return nil, usagef("--%s: %w", f.Name, err)
			}
			s.Value, s.From = textOf(g.value), g.from
		}
		all = append(all, s)
	}
	return all, nil
}

// everywhere lists what variables and the file give to the commands below a node.
func (o *outside) everywhere(n *kong.Node) (all []source) {
	for _, c := range n.Children {
		if c.Hidden {
			continue
		}
		if len(c.Children) > 0 {
			all = append(all, o.everywhere(c)...)
			continue
		}
		for _, group := range c.AllFlags(true) {
			for _, f := range group {
				if g := o.find(c, f); g != nil {
					all = append(all, source{strings.Join(path(c), " "), f.Name, textOf(g.value), g.from})
				}
			}
		}
	}
	return all
}

// together puts what several commands have alike into one line each.
func together(all []source) (lines []source) {
	commands := make(map[source]int)
	for _, s := range all {
		key := source{Flag: s.Flag, Value: s.Value, From: s.From}
		commands[key]++
		if commands[key] == 1 {
			lines = append(lines, s)
		}
	}
	for i, s := range lines {
		if n := commands[source{Flag: s.Flag, Value: s.Value, From: s.From}]; n > 1 {
			lines[i].Command = plural(n, "command")
		}
	}
	return lines
}

// textOf writes a flag's value as a variable has it.
func textOf(v any) string {
	switch v := v.(type) {
	case []string:
		return strings.Join(v, ",")
	case []any:
		var texts []string
		for _, one := range v {
			texts = append(texts, fmt.Sprint(one))
		}
		return strings.Join(texts, ",")
	}
	return fmt.Sprint(v)
}

// variables lists the variables of all flags.
func variables(n *kong.Node) []string {
	names := []string{variable("config")}
	for _, f := range flagsBelow(n) {
		names = append(names, variable(f))
	}
	return names
}

// unknownVariables lists variables that look like a flag's and are of none: perhaps a
// slip, perhaps what a platform sets for a service of that name.
func unknownVariables(n *kong.Node) []string {
	unknown, ours := []string{}, variables(n)
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "COPPICE_") && !strings.HasPrefix(name, "COPPICE_TEST_") && !slices.Contains(ours, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}
