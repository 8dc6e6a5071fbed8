package dataset

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// parseNumber reads a decimal number with a point; reason says why it is none.
func parseNumber(field string) (v float64, reason string) {
	field = strings.TrimSpace(field)
	if field == "" {
		return 0, "is empty: a number is expected"
	}
	v, err := strconv.ParseFloat(field, 64)
	switch {
	case err == nil:
		return v, ""
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Sprintf("%.40s does not fit in a float32", field)
	}
	return 0, fmt.Sprintf("%.40q is not a number", field)
}

// marks are what stands between the digits of numbers.
type marks struct{ comma bool } // decimals follow a comma

// parse reads a number with these marks.
func (m marks) parse(field string) (v float64, reason string) {
	if m.comma {
		return m.parseComma(strings.TrimSpace(field))
	}
	v, reason = parseNumber(field)
	if reason != "" && strings.Contains(field, ",") && marked(field) {
		reason += "; --decimal , reads a decimal comma, and marks between thousands cannot be read"
	}
	return v, reason
}

func (m marks) parseComma(field string) (v float64, reason string) {
	if strings.Contains(field, ".") && marked(field) {
		return 0, fmt.Sprintf("%.40q has a point where decimals follow a comma; --decimal . reads points, and marks between thousands cannot be read", field)
	}
	v, reason = parseNumber(strings.Replace(field, ",", ".", 1))
	if reason != "" && field != "" {
		reason = fmt.Sprintf("%.40q is not a number", field)
	}
	return v, reason
}

// marked tells whether a field has digits, and besides them only what numbers
// have in some country.
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

// missingWords are what a text file has in place of a missing value, besides
// nothing at all; capitals do not matter.
var missingWords = []string{"na", "n/a", "#n/a", "nan", "null", "none", "?"}

// isMissing tells whether a field of a text file, or a class, stands for a missing
// value.
func isMissing(field string) bool {
	field = strings.TrimSpace(field)
	if field == "" {
		return true
	}
	if c := field[0]; c >= '0' && c <= '9' || c == '-' || c == '.' { // most fields
		return false
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

// nan is how readers hand on a missing value.
var nan = math.NaN()
