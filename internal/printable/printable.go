// Package printable makes text safe to show. A terminal obeys control characters, also those in the name of a column or
// in the message of another machine.
package printable

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
	"golang.org/x/text/unicode/norm"
)

// Text returns s with visible escapes, such as \x1b, in place of control characters other than line feeds and tabs, of
// the characters that embed text of another direction, and of bytes that are not UTF-8.
func Text(s string) string {
	for i, r := range s {
		broken := false
		if r == utf8.RuneError {
			_, size := utf8.DecodeRuneInString(s[i:])
			broken = size == 1
		}
		if broken || hidden(r) {
			return string(appendText(nil, s, texts))
		}
	}
	return s
}

// Line is Text that has escapes for line feeds and tabs as well.
func Line(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Text(s))
}

// hidden reports whether a character is a control character, but for line feeds and tabs, or begins or ends text of
// another direction.
func hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	}
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// escapes are the formats of escapes: of a character below 0x80, of any other character, and of a byte that is not
// UTF-8; if the last is empty, such a byte is escaped as U+FFFD.
type escapes struct{ low, high, broken string }

var (
	texts = escapes{`\x%02x`, `\u%04x`, `\x%02x`}
	jsons = escapes{`\u%04x`, `\u%04x`, ""} // a decoder of JSON reads a byte that is not UTF-8 as U+FFFD
)

// appendText appends s, with escapes, to dst.
func appendText(dst []byte, s string, e escapes) []byte {
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1 && e.broken == "":
			dst = fmt.Appendf(dst, e.high, utf8.RuneError)
		case r == utf8.RuneError && size == 1:
			dst = fmt.Appendf(dst, e.broken, s[0])
		case hidden(r) && r < utf8.RuneSelf:
			dst = fmt.Appendf(dst, e.low, r)
		case hidden(r):
			dst = fmt.Appendf(dst, e.high, r)
		default:
			dst = append(dst, s[:size]...)
		}
		s = s[size:]
	}
	return dst
}

// Writer writes what Text returns. It may be used by several goroutines.
type Writer struct {
	w  io.Writer
	as escapes

	mu   sync.Mutex // of what follows
	rest []byte     // the beginning of a character that is not complete yet
	buf  []byte
}

// NewWriter returns a Writer of text to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w, as: texts} }

// NewJSONWriter returns a Writer of JSON to w. It writes escapes of JSON, so that the values stay as they are.
func NewJSONWriter(w io.Writer) *Writer { return &Writer{w: w, as: jsons} }

// Write implements io.Writer. The bytes of a character may come in several calls.
func (w *Writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := append(w.rest, b...)
	whole := len(all)
	for i := max(0, whole-utf8.UTFMax+1); i < whole; i++ {
		if utf8.RuneStart(all[i]) && !utf8.FullRune(all[i:]) {
			whole = i
		}
	}
	w.buf = appendText(w.buf[:0], string(all[:whole]), w.as)
	w.rest = append([]byte(nil), all[whole:]...)
	if len(w.buf) == 0 {
		return len(b), nil
	}
	if _, err := w.w.Write(w.buf); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Flush writes the beginning of a character that was never completed.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) == 0 {
		return nil
	}
	_, err := w.w.Write(appendText(nil, string(w.rest), w.as))
	w.rest = nil
	return err
}

// Unwrap returns the writer under w, for escape sequences of the program's own; any other writer is returned as it is.
func Unwrap(w io.Writer) io.Writer {
	if p, ok := w.(*Writer); ok {
		return p.w
	}
	return w
}

// Look returns the same text for texts that look alike: they differ in white space, in characters that are
// not seen, in dashes, or in how Unicode writes a letter.
func Look(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		s = strings.Map(func(r rune) rune {
			switch {
			case unicode.In(r, unicode.Cf, unicode.Variation_Selector):
				return -1
			// signs that look like dashes
			case unicode.Is(unicode.Pd, r), strings.ContainsRune("\u02d7\u2043\u2212\u2500\u2796", r):
				return '-'
			}
			return r
		}, norm.NFKC.String(s))
	}
	return strings.Join(strings.Fields(s), " ")
}

// columns does not depend on the language of this machine, as runewidth's default does.
var columns = &runewidth.Condition{StrictEmojiNeutral: true}

// Width returns how many columns of a terminal a text takes: East Asian wide letters take two, and combining
// marks none.
func Width(text string) int { return columns.StringWidth(text) }
