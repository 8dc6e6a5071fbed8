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
	field = strings.TrimSpace(field)
	if field == "" {
		return 0, "is empty: a number is expected"
	}
	v, err := units.ParseFloat(field)
	switch {
	case err == nil:
		return v, ""
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Sprintf("%.40s does not fit in a float32", field)
	}
	return 0, fmt.Sprintf("%.40q is not a number", field)
}

// marks says how numbers are written.
type marks struct {
	comma     bool // decimals follow a comma
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
		reason += m.advice(field)
	}
	return v, reason
}

func (m marks) parseComma(field string) (v float64, reason string) {
	if strings.Contains(field, ".") && marked(field) {
		return 0, fmt.Sprintf("%.40q has a point where decimals follow a comma; --decimal . reads points before decimals, --thousands . points between thousands", field)
	}
	v, reason = parseNumber(strings.Replace(field, ",", ".", 1))
	if reason != "" && field != "" {
		reason = fmt.Sprintf("%.40q is not a number", field) + m.advice(field)
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

// isMissing reports whether a field of a text file, a class or a group is a missing value.
func isMissing(field string) bool {
	field = strings.TrimSpace(field)
	if field == "" {
		return true
	}
	if c := field[len(field)-1]; c >= '0' && c <= '9' || c == '.' { // numbers end so, and most fields
		return field == "."
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
