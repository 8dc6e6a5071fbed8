package main

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/config"
)

// outside gives flags that are not on the command line their values: from variables of
// the environment, COPPICE_ and the flag's name, and from the file of --config. A process
// that another one started takes neither: it is told all by flags.
type outside struct {
	file *config.Section // nil without --config
	off  bool
}

var _ kong.Resolver = (*outside)(nil)

// Validate implements kong.Resolver.
func (*outside) Validate(*kong.Application) error { return nil }

// given is a value of a flag that was not on the command line, and where it came from.
type given struct {
	value any // string, or []any of string
	from  string
}

// variable returns the name of a flag's variable: COPPICE_MAX_QUEUE of --max-queue.
func variable(flag string) string {
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
	if name := variable(f.Name); os.Getenv(name) != "" {
		return &given{os.Getenv(name), name}
	}
	if o.file == nil {
		return nil
	}
	return inFile(o.file, path(command), f.Name)
}

// path lists the names of the commands that lead to a node.
func path(n *kong.Node) (names []string) {
	for ; n != nil && n.Parent != nil; n = n.Parent {
		names = append([]string{n.Name}, names...)
	}
	return names
}

// inFile looks a flag up in the sections of a command, the innermost first.
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

// check says whether the flag takes the value, naming where it came from.
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

// BeforeResolve implements kong's hook: it reads the file of --config.
func (c *cli) BeforeResolve(ctx *kong.Context, o *outside) error {
	path := os.Getenv(variable("config"))
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
	b, err := dataset.ReadText(path)
	if err != nil {
		return err
	}
	if o.file, err = config.Parse(path, b); err != nil {
		return err
	}
	return known(ctx.Model.Node, o.file)
}

// known refuses keys that are neither flags of a command, or of one below it, nor
// commands.
func known(n *kong.Node, s *config.Section) error {
	flags := flagsBelow(n)
	for _, k := range s.Keys {
		if k.Section == nil {
			if !slices.Contains(flags, k.Name) {
				return s.Errorf(k.Place, "there is no flag --%s%s", k.Name, param.Suggest(k.Name, flags))
			}
			continue
		}
		next := child(n, k.Name)
		if next == nil {
			return s.Errorf(k.Place, "there is no command %q", strings.Join(append(path(n), k.Name), " "))
		}
		if err := known(next, k.Section); err != nil {
			return err
		}
	}
	return nil
}

// child returns a command below a node, or nil.
func child(n *kong.Node, name string) *kong.Node {
	for _, c := range n.Children {
		if c.Name == name && !c.Hidden {
			return c
		}
	}
	return nil
}

// flagsBelow lists the names of the flags of a command and of all below it that may be
// given outside the command line, each once.
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
