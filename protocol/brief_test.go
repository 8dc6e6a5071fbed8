package protocol

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// A text is cut at the end of a character, and only if it is long.
func TestBrief(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 300, 600).Draw(t, "text")
		got := Brief(text)
		if len(text) <= BriefText {
			if got != text {
				t.Fatalf("%q of %q", got, text)
			}
			return
		}
		begin, cut := strings.CutSuffix(got, "...")
		if !cut || !utf8.ValidString(got) || !strings.HasPrefix(text, begin) || len(begin) > BriefText || len(begin) <= BriefText-utf8.UTFMax {
			t.Fatalf("%q of %q", got, text)
		}
	})
}
