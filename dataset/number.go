package dataset

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/internal/units"
)

// parseNumber reads a decimal number with a point; reason says why field is not one.
func parseNumber(field string) (v float64, reason string) {
	if field != "" && (mayBeSpace(field[0]) || mayBeSpace(field[len(field)-1])) { // most fields have nothing to trim
		field = strings.TrimSpace(field)
	}
	if field == "" {
		return 0, "the field is empty, want a number"
	}
	v, err := units.ParseFloat(field)
	switch {
	case err == nil:
		return v, ""
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Sprintf("%.40s is too large for a float32", field)
	}
	return 0, fmt.Sprintf("%.40q is not a number", field)
}

// marks says how numbers are written.
type marks struct {
	comma     bool // the decimal separator is a comma
	thousands rune // between thousands; 0: nothing is
}

// parse reads a number with these marks.
func (m marks) parse(field string) (v float64, reason string) {
	if m.thousands != 0 {
		return m.parseGrouped(strings.TrimSpace(field))
	}
	if m.comma {
		return m.parseComma(strings.TrimSpace(field))
	}
	v, reason = parseNumber(field)
	if reason != "" {
		reason += m.spelling(field) + m.advice(field)
	}
	return v, reason
}

// value reads a number with these marks as parse does, without a reason; most fields that are none make no garbage.
func (m marks) value(field string) (v float64, ok bool) {
	field = strings.TrimSpace(field)
	if m.thousands != 0 {
		if field, ok = ungroup(field, alike[m.thousands], m.decimal()); !ok {
			return 0, false
		}
	}
	if !m.likeNumber(field) {
		return 0, false
	}
	v, reason := m.parse(field)
	return v, reason == ""
}

// likeNumber reports whether a field is written as a number without marks between thousands: digits, one mark before decimals
// and an exponent, or a word such as inf. It may still be no number or too large.
func (m marks) likeNumber(field string) bool {
	rest := strings.TrimLeft(field, "+-")
	if rest == "" || len(field)-len(rest) > 1 {
		return false
	}
	if c := rest[0] | 0x20; c == 'i' || c == 'n' {
		return strings.EqualFold(rest, "inf") || strings.EqualFold(rest, "infinity") || strings.EqualFold(rest, "nan")
	}
	mantissa := len(rest)
	rest = strings.TrimLeft(rest, "0123456789")
	if rest != "" && (rest[0] == m.decimal() || rest[0] == '.' && m.thousands != 0) {
		rest = strings.TrimLeft(rest[1:], "0123456789")
	}
	if rest != "" && len(rest) < mantissa && rest[0]|0x20 == 'e' {
		rest = strings.TrimLeft(rest[1:], "+-0123456789")
	}
	return rest == ""
}

func (m marks) parseComma(field string) (v float64, reason string) {
	if strings.Contains(field, ".") && marked(field) {
		return 0, fmt.Sprintf("%.40q has a point, but the decimal separator is a comma; --decimal . reads points as decimal separators, --thousands . as thousands separators", field)
	}
	v, reason = parseNumber(strings.Replace(field, ",", ".", 1))
	if reason != "" && field != "" {
		reason = fmt.Sprintf("%.40q is not a number", field) + m.spelling(field) + m.advice(field)
	}
	return v, reason
}

// text returns a field of a column of texts; a number with a decimal comma gets a point and loses marks between
// thousands, so that it is the same text in files of all kinds.
func (m marks) text(field string) string {
	field = strings.TrimSpace(field)
	if m.thousands != 0 {
		if _, reason := m.parseGrouped(field); reason == "" {
			field, _ = ungroup(field, alike[m.thousands], m.decimal())
		}
	}
	if m.comma && strings.Count(field, ",") == 1 && !strings.Contains(field, ".") && marked(field) {
		return strings.Replace(field, ",", ".", 1)
	}
	return field
}

// marked reports whether a field has digits and otherwise only characters of numbers, as
// written in some country.
func marked(field string) bool {
	digits := false
	for _, c := range strings.TrimSpace(field) {
		switch {
		case c >= '0' && c <= '9':
			digits = true
		case !strings.ContainsRune("+-.,eE", c):
			return false
		}
	}
	return digits
}

// missingWords are the words for a missing value, in small or capital letters, of features, labels, classes and groups alike:
// those of pandas, of SQL dumps, of SAS and Stata, of C's printf on several systems, and the errors of spreadsheets. An empty field is a missing value too.
var missingWords = []string{
	"na", "n/a", "#n/a", "#na", "#n/a n/a", "<na>", "null", "none", "?", `\n`, ".",
	"nan", "-nan", "+nan", "nan(ind)", "-nan(ind)", "nan(snan)", "-nan(snan)",
	"1.#qnan", "-1.#qnan", "1.#snan", "-1.#snan", "1.#ind", "-1.#ind",
	"#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!",
}

// mayBeSpace reports whether a byte is a space or may be part of one.
func mayBeSpace(c byte) bool { return c <= ' ' || c >= 0x7f }

// isMissing reports whether a field of a text file, a class or a group is a missing value.
func isMissing(field string) bool {
	if field == "" {
		return true
	}
	if c := field[len(field)-1]; c >= '0' && c <= '9' { // most fields are numbers
		return false
	}
	field = strings.TrimSpace(field)
	if field == "" {
		return true
	}
	for _, word := range missingWords {
		if strings.EqualFold(field, word) {
			return true
		}
	}
	return false
}

// isNumber tells whether a field is a number with a point.
func isNumber(field string) bool {
	_, reason := parseNumber(field)
	return reason == ""
}

// nan is a missing value in Row.Values and Row.Labels.
var nan = math.NaN()
