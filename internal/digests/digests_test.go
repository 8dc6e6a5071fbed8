package digests

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestParse: a digest is read from its text and from no other.
func TestParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Digest(sha256.Sum256(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")))
		text := hex.EncodeToString(want[:])
		if got, ok := Parse(text); !ok || got != want || got.String() != text || got.Text() != text {
			t.Fatalf("%s is read as %s, %v", text, got, ok)
		}
		at, c := rapid.IntRange(0, len(text)-1).Draw(t, "place"), rapid.Byte().Draw(t, "character")
		other := text[:at] + string([]byte{c}) + text[at+1:]
		if got, ok := Parse(other); ok != strings.ContainsRune("0123456789abcdef", rune(c)) || ok && got.String() != other {
			t.Fatalf("%q is read as %s, %v", other, got, ok)
		}
	})
	for _, text := range []string{"", strings.Repeat("0", 63), strings.Repeat("0", 65), strings.Repeat("A", 64)} {
		if d, ok := Parse(text); ok || d != (Digest{}) {
			t.Errorf("%q is read as %s", text, d)
		}
	}
	if text := (Digest{}).Text(); text != "" {
		t.Errorf("no digest has the text %q", text)
	}
}

// TestSet: a set has what was added, and no text that is no digest.
func TestSet(t *testing.T) {
	s, one := make(Set), strings.Repeat("1", 64)
	s.Add(one)
	s.Add("")
	s.Add("1")
	d, _ := Parse(one)
	if len(s) != 1 || !s.Has(one) || !s.Contains(d) || s.Has("") || s.Has(strings.Repeat("2", 64)) {
		t.Errorf("%v", s)
	}
}
