package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

// mayBeEmpty is the tag of a flag or an argument whose empty value says something.
const mayBeEmpty = "empty"

// checkGiven refuses what the command line says twice or leaves empty: of two values one
// would be lost, and an empty value would mean the default. Flags that are lists may be
// given again and again.
func checkGiven(line *kong.Context) error {
	seen := make(map[*kong.Flag]bool)
	for _, p := range line.Path {
		if p.Positional != nil && !p.Positional.Tag.Has(mayBeEmpty) && isEmpty(line.Value(p).Interface()) {
			return usagef("the argument <%s> is empty", p.Positional.Name)
		}
		f := p.Flag
		if f == nil || p.Resolved {
			continue
		}
		if seen[f] && !f.IsCumulative() {
			return usagef("--%s is given twice; give it once", f.Name)
		}
		seen[f] = true
		if isEmpty(line.FlagValue(f)) && !f.Tag.Has(mayBeEmpty) {
			return usagef("--%s has an empty value; give a value, or leave the flag out", f.Name)
		}
	}
	return nil
}

// isEmpty tells whether a flag's value is a text without content, or a list of such texts.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case string:
		return v == ""
	case []string:
		return strings.TrimSpace(strings.Join(v, "")) == ""
	}
	return false
}

// givenIn lists the flags that a command line itself has.
func givenIn(line *kong.Context) map[string]bool {
	given := make(map[string]bool)
	for _, p := range line.Path {
		if p.Flag != nil && !p.Resolved {
			given[p.Flag.Name] = true
		}
	}
	return given
}

// apartFromCluster refuses flags about a cluster beside the flag by which the command asks none. A
// variable or a configuration file may name a cluster all the same.
func (a *app) apartFromCluster(flag string, asksNone bool) error {
	for _, name := range []string{"server", "wait"} {
		if asksNone && a.given[name] {
			return usagef("--%s needs a cluster, but %s uses none; leave one of them out", name, flag)
		}
	}
	return nil
}
