// Package shellword writes command lines that can be pasted into a POSIX shell.
package shellword

import (
	"regexp"
	"strings"
)

// plain matches a word that a shell does not change.
var plain = regexp.MustCompile(`^[\pL\pN_./:=,@%+-]+$`)

// Quote returns a word as a shell reads it: in quotes if need be.
func Quote(s string) string {
	if plain.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Line returns words as a command line.
func Line(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}
