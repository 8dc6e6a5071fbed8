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
			return usagef("<%s> is empty", p.Positional.Name)
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
			return usagef("--%s has an empty value; give one, or leave the flag out", f.Name)
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
