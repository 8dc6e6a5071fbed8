package protocol

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestMatchName: a * stands for any characters, as .* in a regular expression.
func TestMatchName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab*]{1,6}`).Draw(t, "pattern")
		name := rapid.StringMatching(`[ab]{0,8}`).Draw(t, "name")
		want := regexp.MustCompile("^" + strings.ReplaceAll(pattern, "*", ".*") + "$").MatchString(name)
		if got := MatchName(pattern, name); got != want {
			t.Errorf("%q fits %q: %v, want %v", name, pattern, got, want)
		}
	})
	if !MatchName("", "x") || MatchName("ab*ba", "aba") {
		t.Error("an empty pattern fits all names, and the ends of a pattern do not share characters")
	}
}
