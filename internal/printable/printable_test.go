package printable_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/internal/printable"
)

func TestText(t *testing.T) {
	for s, want := range map[string]string{
		"":                             "",
		"plain, Zoë, 図, é̂, 👍🏽":        "plain, Zoë, 図, é̂, 👍🏽",
		"two\nlines\tand a tab":        "two\nlines\tand a tab",
		"\x1b[31mred\x1b[0m":           `\x1b[31mred\x1b[0m`,
		"bell\a, back\b, return\r\n":   `bell\x07, back\x08, return\x0d` + "\n",
		"\x00\x7f":                     `\x00\x7f`,
		"\u009b31m \u0085 \u00a0":      `\u009b31m \u0085 ` + "\u00a0",
		"a\u202eb\u202cc\u2066d\u2069": `a\u202eb\u202cc\u2066d\u2069`,
		"a\x9bb\xffc\xe5\x9b":          `a\x9bb\xffc\xe5\x9b`,
		"\ufffd":                       "\ufffd", // the character itself
	} {
		if got := printable.Text(s); got != want {
			t.Errorf("%q becomes %q, want %q", s, got, want)
		}
	}
	if got := printable.Line("a\nb\tc\x1b"); got != `a\nb\tc\x1b` {
		t.Errorf("a line becomes %q", got)
	}
}

// bad are the characters that no output has.
func bad(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e || r >= 0x2066 &&
			r <= 0x2069
	})
}

// texts draws bytes, many of which are in characters that are replaced.
var texts = rapid.Custom(func(t *rapid.T) string {
	return strings.Join(rapid.SliceOf(rapid.OneOf(
		rapid.SampledFrom([]string{"\x1b[2J", "\u009b", "\u202e", "\x7f", "\r", "\n", "\t", "\xc2", "\x9b", "\xe2\x80",
			"\xae", "é", "👍"}),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 4), func(b []byte) string { return string(b) }),
	)).Draw(t, "parts"), "")
})

// TestWriterIsText: however a text is cut into calls, a Writer writes what Text returns, and nothing that a terminal
// obeys.
func TestWriterIsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := texts.Draw(t, "text")
		want := printable.Text(s)
		if bad(want) {
			t.Fatalf("%q becomes %q", s, want)
		}
		if again := printable.Text(want); again != want {
			t.Fatalf("%q becomes %q, and then %q", s, want, again)
		}
		var out bytes.Buffer
		w := printable.NewWriter(&out)
		for rest := s; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "bytes")
			if k, err := w.Write([]byte(rest[:n])); k != n || err != nil {
				t.Fatal(k, err)
			}
			rest = rest[n:]
		}
		if err := w.Flush(); err != nil || out.String() != want {
			t.Fatalf("%q is written as %q, want %q; error %v", s, out.String(), want, err)
		}
	})
}

// TestJSONWriter: the values of JSON stay as they are, and no byte of it is obeyed by a terminal.
func TestJSONWriter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.ToValidUTF8(texts.Draw(t, "text"), "")
		var out bytes.Buffer
		e := json.NewEncoder(printable.NewJSONWriter(&out))
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(map[string]string{s: s}); err != nil {
			t.Fatal(err)
		}
		var back map[string]string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back[s] != s || bad(out.String()) {
			t.Fatalf("%q becomes %q: %q, error %v", s, out.String(), back, err)
		}
	})
	var out bytes.Buffer
	printable.NewJSONWriter(&out).Write([]byte("\"a\x9b\""))
	if out.String() != `"a\ufffd"` {
		t.Errorf("a byte that is not UTF-8: %s", out.String())
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestWriterErrors(t *testing.T) {
	w := printable.NewWriter(failing{})
	if n, err := w.Write([]byte("a")); n != 0 || err == nil {
		t.Error(n, err)
	}
	if printable.Unwrap(w) != (failing{}) || printable.Unwrap(failing{}) != (failing{}) {
		t.Error("Unwrap")
	}
}
