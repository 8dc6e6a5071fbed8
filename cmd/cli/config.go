package cli

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/internal/config"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol/access"
)

// outside gives values to flags that are not on the command line. They come from environment variables, COPPICE_ and
// the name of the flag, and from the file of --config. A process that Coppice starts ignores both, because it gets all
// flags.
type outside struct {
	file *config.Section // nil without --config
	off  bool
}

var _ kong.Resolver = (*outside)(nil)

// Validate implements kong.Resolver.
func (*outside) Validate(*kong.Application) error { return nil }

// given is the value of a flag that is not on the command line, and its origin.
type given struct {
	value any // string, or []any of string
	from  string
}

// Variable returns the environment variable of a flag: COPPICE_MAX_QUEUE for max-queue.
func Variable(flag string) string {
	return "COPPICE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// settable reports whether a flag may be given outside the command line.
func settable(f *kong.Flag) bool {
	return !f.Hidden && !slices.Contains([]string{"help", "help-all", "version", "config"}, f.Name)
}

// find returns the value of a flag of a command, or nil.
func (o *outside) find(command *kong.Node, f *kong.Flag) *given {
	if o.off || !settable(f) {
		return nil
	}
	if name := Variable(f.Name); os.Getenv(name) != "" {
		return &given{os.Getenv(name), name}
	}
	if o.file == nil {
		return nil
	}
	return inFile(o.file, CommandPath(command), f.Name)
}

// inFile finds a flag in the sections of a command, the innermost first.
func inFile(s *config.Section, command []string, flag string) *given {
	if len(command) > 0 {
		if k := s.Get(command[0]); k != nil && k.Section != nil {
			if g := inFile(k.Section, command[1:], flag); g != nil {
				return g
			}
		}
	}
	k := s.Get(flag)
	if k == nil || k.Section != nil {
		return nil
	}
	g := &given{k.Value, fmt.Sprintf("%s:%d", s.File, k.Line)}
	if k.List != nil {
		list := []any{}
		for _, text := range k.List {
			list = append(list, text)
		}
		g.value = list
	}
	return g
}

// Resolve implements kong.Resolver.
func (o *outside) Resolve(ctx *kong.Context, _ *kong.Path, f *kong.Flag) (any, error) {
	g := o.find(ctx.Selected(), f)
	if g == nil {
		return nil, nil
	}
	return g.value, g.check(f)
}

// check returns an error with the origin of the value, if the flag does not take it.
func (g *given) check(f *kong.Flag) error {
	if _, list := g.value.([]any); list && f.Target.Kind() != reflect.Slice {
		return fmt.Errorf("%s: want one value, not a list", g.from)
	}
	scratch := reflect.New(f.Target.Type()).Elem()
	scan := kong.Scan().PushTyped(g.value, kong.FlagValueToken)
	if err := f.Mapper.Decode(&kong.DecodeContext{Value: f.Value, Scan: scan}, scratch); err != nil {
		return fmt.Errorf("%s: %w", g.from, err)
	}
	if allowed := f.EnumSlice(); f.Enum != "" && !slices.Contains(allowed, fmt.Sprint(scratch)) {
		return fmt.Errorf("%s: want one of %s, not %q", g.from, strings.Join(allowed, ", "), fmt.Sprint(scratch))
	}
	return nil
}

// readConfig reads the file of --config.
func readConfig(ctx *kong.Context, o *outside) error {
	path := os.Getenv(Variable("config"))
	for _, f := range ctx.Flags() {
		switch {
		case f.Name == "config" && ctx.FlagValue(f) != "":
			path = fmt.Sprint(ctx.FlagValue(f))
		case f.Name == "die-with-stdin":
			o.off = ctx.FlagValue(f) == true
		}
	}
	if path == "" || o.off {
		return nil
	}
	b, err := read.ReadText(path)
	if err != nil {
		return err
	}
	if o.file, err = config.Parse(path, b); err != nil {
		return err
	}
	return known(ctx.Model.Node, o.file)
}

// known refuses keys that are no flag of a command or its subcommands, and no command.
func known(n *kong.Node, s *config.Section) error {
	flags := flagsBelow(n)
	for _, k := range s.Keys {
		if k.Section == nil {
			if !slices.Contains(flags, k.Name) {
				return s.Errorf(k.Place, "there is no flag --%s%s", k.Name, param.Suggest(k.Name, flags))
			}
			continue
		}
		next := Subcommand(n, k.Name)
		if next == nil {
			return s.Errorf(k.Place, "there is no command %q", strings.Join(append(CommandPath(n), k.Name), " "))
		}
		if err := known(next, k.Section); err != nil {
			return err
		}
	}
	return nil
}

// Subcommand returns a subcommand of a node, or nil.
func Subcommand(n *kong.Node, name string) *kong.Node {
	for _, c := range n.Children {
		if c.Name == name && !c.Hidden {
			return c
		}
	}
	return nil
}

// flagsBelow returns the names of the flags of a command and its subcommands that may be given outside the command
// line.
func flagsBelow(n *kong.Node) (names []string) {
	for _, f := range n.Flags {
		if settable(f) {
			names = append(names, f.Name)
		}
	}
	for _, c := range n.Children {
		if !c.Hidden {
			names = append(names, flagsBelow(c)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ConfigCmd is `coppice config`.
type ConfigCmd struct {
	Show configShowCmd `cmd:"" help:"Show what value each flag of a command has, and where it comes from."`
}

// Help implements kong's HelpProvider.
func (ConfigCmd) Help() string {
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

// source is a flag with its value and the origin of the value.
type source struct {
	Command string `json:"command"`
	Flag    string `json:"flag"`
	Value   string `json:"value"`
	From    string `json:"from"` // "flag", "default", a variable, or a file and line
}

// shownConfig is what `coppice config show` prints.
type shownConfig struct {
	Values []source `json:"values"`
	// Unknown lists variables named COPPICE_* that no flag has.
	Unknown []string `json:"unknown_variables"`
}

// Run implements `coppice config show`.
func (c *configShowCmd) Run(a *App, k *kong.Kong, o *outside) error {
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
	for i := range shown.Values { // a token in the place of its file
		shown.Values[i].Value = access.HideTokens(shown.Values[i].Value)
	}
	for _, name := range shown.Unknown {
		a.Note("note: no flag has the environment variable %s%s", name, param.Suggest(name, variables(k.Model.Node)))
	}
	return a.Print(shown, func(w io.Writer) {
		WriteTable(w, []string{"command", "flag", "value", "from"}, together(shown.Values), func(s source) []string {
			return []string{s.Command, "--" + s.Flag, s.Value, s.From}
		})
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
		return nil, Usagef("%w; see \"coppice --help\"", err)
	}
	command := line.Selected()
	for _, f := range line.Flags() {
		if !settable(f) {
			continue
		}
		s := source{Command: strings.Join(CommandPath(command), " "), Flag: f.Name, Value: f.Default, From: "default"}
		if slices.ContainsFunc(line.Path, func(p *kong.Path) bool { return p.Flag == f }) {
			s.Value, s.From = textOf(line.FlagValue(f)), "flag"
		} else if g := o.find(command, f); g != nil {
			if err := g.check(f); err != nil {
				return nil, Usagef("--%s: %w", f.Name, err)
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
					all = append(all, source{Command: strings.Join(CommandPath(c), " "), Flag: f.Name, Value: textOf(g.value),
						From: g.from})
				}
			}
		}
	}
	return all
}

// together joins the lines of several commands that have equal values.
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
			lines[i].Command = units.Plural(n, "command")
		}
	}
	return lines
}

// textOf writes the value of a flag as a variable has it.
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
	names := []string{Variable("config")}
	for _, f := range flagsBelow(n) {
		names = append(names, Variable(f))
	}
	return names
}

// unknownVariables lists variables that look like the variable of a flag. They may be mistakes, or set by a platform
// for a service named coppice.
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
