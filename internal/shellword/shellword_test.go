package shellword

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestLine: a shell reads a line as the words that it was made of.
func TestLine(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, words []string) {
		out, err := exec.Command("sh", "-c", `printf '%s\0' `+Line(words)).Output()
		if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); err != nil || !slices.Equal(got, words) {
			t.Fatalf("%s is read as %q, want %q (%v)", Line(words), got, words, err)
		}
	}
	check(t, []string{"a", "", "it's", `"x" $HOME ~ * ; # !`, "é", "new\nline", `back\slash`,
		"--set=members=structrf:trees=3,rf", "'"})
	if got := Line([]string{"coppice", "--data", "x.csv", "a b"}); got != "coppice --data x.csv 'a b'" {
		t.Error(got)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.SliceOfN(rapid.StringOf(rapid.RuneFrom([]rune("ab-=:'\"\\ $`*?~#!&|;<>(){}[]\n\té"))), 1, 4).
			Draw(t, "words"))
	})
}
