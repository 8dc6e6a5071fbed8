package printable

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Look returns the same text for texts that look alike: they differ in white space, in characters that are
// not seen, in dashes, or in how Unicode writes a letter.
func Look(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		s = strings.Map(func(r rune) rune {
			switch {
			case unicode.In(r, unicode.Cf, unicode.Variation_Selector):
				return -1
			case unicode.Is(unicode.Pd, r), strings.ContainsRune("\u02d7\u2043\u2212\u2500\u2796", r): // signs that look like dashes
				return '-'
			}
			return r
		}, norm.NFKC.String(s))
	}
	return strings.Join(strings.Fields(s), " ")
}
