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
		whole := strings.ToValidUTF8(text, "")
		at := strings.Index(got, "...")
		if !utf8.ValidString(got) || len(got) > BriefText+3 || len(got) <= BriefText-2*utf8.UTFMax {
			t.Fatalf("%q of %q", got, text)
		}
		fits := false // the dots may be in the text as well
		for ; at >= 0 && !fits; at = next(got, at) {
			fits = strings.HasPrefix(whole, got[:at]) && strings.HasSuffix(whole, got[at+3:])
		}
		if !fits {
			t.Fatalf("%q of %q", got, text)
		}
	})
}

// next returns where dots begin after those at a place, or -1.
func next(text string, at int) int {
	if i := strings.Index(text[at+1:], "..."); i >= 0 {
		return at + 1 + i
	}
	return -1
}
