// Package numbers reads numbers as people and programs write them: with a decimal comma, marks between thousands, or a
// word for a missing value.
package numbers

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// Parse reads a decimal number with a point; reason says why field is not one.
func Parse(field string) (v float64, reason errtext.Text) {
	// Most fields have nothing to trim: only these bytes may be part of a space.
	if n := len(field) - 1; n >= 0 && (field[0] <= ' ' || field[0] >= 0x7f || field[n] <= ' ' || field[n] >= 0x7f) {
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
		return 0, errtext.Text(fmt.Sprintf("%.40s is too large for a float32", field))
	}
	return 0, errtext.Text(fmt.Sprintf("%.40q is not a number", field))
}

// Marks says how numbers are written.
type Marks struct {
	Comma     bool // the decimal separator is a comma
	Thousands rune // between thousands; 0: nothing is
}

// Parse reads a number with these marks.
func (m Marks) Parse(field string) (v float64, reason errtext.Text) {
	if m.Thousands != 0 {
		return m.ParseGrouped(strings.TrimSpace(field))
	}
	if !m.Comma {
		if v, reason = Parse(field); reason != "" {
			reason += m.Advice(field)
		}
		return v, reason
	}
	field = strings.TrimSpace(field)
	if strings.Contains(field, ".") && HasMarks(field) {
		return 0, errtext.Sprintf("%.40q has a point, but the decimal separator is a comma; {decimal=.} reads points as "+
			"decimal separators, {thousands=.} as thousands separators", field)
	}
	v, reason = Parse(strings.Replace(field, ",", ".", 1))
	if reason != "" && field != "" {
		reason = errtext.Sprintf("%.40q is not a number%s", field, m.Advice(field))
	}
	return v, reason
}

// Value reads a number with these marks as parse does, without a reason; most fields that are none make no garbage.
func (m Marks) Value(field string) (v float64, ok bool) {
	field = strings.TrimSpace(field)
	if m.Thousands != 0 {
		if field, ok = ungroup(field, Alike[m.Thousands], m.Decimal()); !ok {
			return 0, false
		}
	}
	if !m.likeNumber(field) {
		return 0, false
	}
	v, reason := m.Parse(field)
	return v, reason == ""
}

// IsField reports whether a field is a number in a file with these marks.
func IsField(field string, m Marks) bool {
	_, ok := m.Value(field)
	return ok
}

// likeNumber reports whether a field is written as a number without marks between thousands: digits, one mark before
// decimals and an exponent, or a word such as inf. It may still be no number or too large.
func (m Marks) likeNumber(field string) bool {
	rest := strings.TrimLeft(field, "+-")
	if rest == "" || len(field)-len(rest) > 1 {
		return false
	}
	if c := rest[0] | 0x20; c == 'i' || c == 'n' {
		return strings.EqualFold(rest, "inf") || strings.EqualFold(rest, "infinity") || strings.EqualFold(rest, "nan")
	}
	mantissa := len(rest)
	rest = strings.TrimLeft(rest, "0123456789")
	if rest != "" && (rest[0] == m.Decimal() || rest[0] == '.' && m.Thousands != 0) {
		rest = strings.TrimLeft(rest[1:], "0123456789")
	}
	if rest != "" && len(rest) < mantissa && rest[0]|0x20 == 'e' {
		rest = strings.TrimLeft(rest[1:], "+-0123456789")
	}
	return rest == ""
}

// Plain returns a field of a column of texts; a number with a decimal comma gets a point and loses marks between
// thousands, so that it is the same text in files of all kinds.
func (m Marks) Plain(field string) string {
	field = strings.TrimSpace(field)
	if m.Thousands != 0 {
		if _, reason := m.ParseGrouped(field); reason == "" {
			field, _ = ungroup(field, Alike[m.Thousands], m.Decimal())
		}
	}
	if m.Comma && strings.Count(field, ",") == 1 && !strings.Contains(field, ".") && HasMarks(field) {
		return strings.Replace(field, ",", ".", 1)
	}
	return field
}

// HasMarks reports whether a field has digits and otherwise only characters of numbers, as
// written in some country.
func HasMarks(field string) bool {
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

// MissingWords are the words for a missing value, in small or capital letters, of features, labels, classes and groups
// alike: those of pandas, of SQL dumps, of SAS and Stata, of C's printf on several systems, and the errors of
// spreadsheets. An empty field is a missing value too.
var MissingWords = []string{
	"na", "n/a", "#n/a", "#na", "#n/a n/a", "<na>", "null", "none", "?", `\n`, ".",
	"nan", "-nan", "+nan", "nan(ind)", "-nan(ind)", "nan(snan)", "-nan(snan)",
	"1.#qnan", "-1.#qnan", "1.#snan", "-1.#snan", "1.#ind", "-1.#ind",
	"#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!",
}

// IsMissing reports whether a field of a text file, a class or a group is a missing value.
func IsMissing(field string) bool {
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
	for _, word := range MissingWords {
		if strings.EqualFold(field, word) {
			return true
		}
	}
	return false
}

// Is tells whether a field is a number with a point.
func Is(field string) bool {
	_, reason := Parse(field)
	return reason == ""
}

// NaN is a missing value in Row.Values and Row.Labels.
var NaN = math.NaN()

// Decimal returns the mark before decimals.
func (m Marks) Decimal() byte {
	if m.Comma {
		return ','
	}
	return '.'
}

// Alike are the marks that stand for one between thousands.
var Alike = map[rune]string{',': ",", '.': ".", '\'': "'\u2019", ' ': " \u00a0\u2009\u202f"}

// ungroup takes the marks between thousands out of the whole part of a number; ok: they are where they must be, or
// there is none. After the first mark come three digits, or two if more follow (as in India).
func ungroup(field, between string, decimal byte) (plain string, ok bool) {
	whole, rest := field, ""
	if i := strings.IndexAny(field, string(decimal)+"eE"); i >= 0 {
		whole, rest = field[:i], field[i:]
	}
	marks := 0
	for _, r := range whole {
		if strings.ContainsRune(between, r) {
			marks++
		}
	}
	if marks == 0 {
		return field, true
	}
	groups := strings.FieldsFunc(whole, func(r rune) bool { return strings.ContainsRune(between, r) })
	if len(groups) != marks+1 {
		return "", false
	}
	for i, group := range groups {
		if i == 0 {
			group = strings.TrimLeft(group, "+-")
		}
		last := i == len(groups)-1
		if !digits(group) || i == 0 && (len(group) > 3 || group[0] == '0') || last && len(group) != 3 || i > 0 && !last &&
			len(group) != 3 && len(group) != 2 {
			return "", false
		}
	}
	return strings.Join(groups, "") + rest, true
}

// LikeThousands reports whether a mark in a number may be one between thousands: one to three digits before it,
// no zero first, and three after it.
func LikeThousands(field string, mark byte) bool {
	field = strings.TrimLeft(field, "+-")
	whole, rest, found := strings.Cut(field, string(mark))
	return found && len(rest) == 3 && digits(rest) && len(whole) <= 3 && digits(whole) && whole[0] != '0'
}

// digits reports whether s is digits.
func digits(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// ParseGrouped reads a number with marks between thousands.
func (m Marks) ParseGrouped(field string) (v float64, reason errtext.Text) {
	plain, ok := ungroup(field, Alike[m.Thousands], m.Decimal())
	if !ok {
		return 0, errtext.Sprintf("%.40q is not a number with the thousands separator %q", field, m.Thousands)
	}
	if m.Comma {
		plain = strings.Replace(plain, ",", ".", 1)
	}
	if v, reason = Parse(plain); reason != "" && field != "" {
		reason = errtext.Sprintf("%.40q is not a number", field)
	}
	return v, reason
}

// Advice names the flags with which a field that is not a number is one.
func (m Marks) Advice(field string) (text errtext.Text) {
	for _, way := range m.Ways(field) {
		text += "; " + way.Text()
	}
	return text
}

// Ways lists the ways to read a field that is not a number with these marks.
func (m Marks) Ways(field string) (ways []dataset.Way) {
	field = strings.TrimSpace(field)
	if !strings.ContainsAny(field, "0123456789") || strings.ContainsFunc(field, func(r rune) bool {
		return !strings.ContainsRune("0123456789+-.,eE' \u00a0\u2009\u202f\u2019", r)
	}) {
		return nil
	}
	values := map[float64]bool{}
	for _, other := range m.Others() {
		if v, reason := other.ParseGrouped(field); reason == "" && !values[v] {
			values[v] = true
			text := errtext.Sprintf("%s reads %s", other.Text(), strconv.FormatFloat(v, 'f', -1, 64))
			ways = append(ways, dataset.Way{What: text.String(), Flags: other.flags()})
		}
	}
	return ways
}

// MarksOf returns the marks of a way that Way.What describes as ways does.
func MarksOf(w *dataset.Way) (m Marks) {
	decimal := ""
	for _, f := range w.Flags {
		switch f.Name {
		case "--thousands":
			m.Thousands = []rune(f.Value)[0]
			m.Comma = m.Thousands == '.'
		case "--decimal":
			decimal = f.Value
		}
	}
	if decimal != "" {
		m.Comma = decimal == ","
	}
	return m
}

// Others lists the marks to try if a field is no number with these.
func (m Marks) Others() [7]Marks {
	return [7]Marks{{Comma: !m.Comma}, {Thousands: ','}, {Thousands: '.', Comma: true}, {Thousands: '\''},
		{Thousands: '\'', Comma: true}, {Thousands: ' '}, {Thousands: ' ', Comma: true}}
}

// flags returns the flags that read numbers with these marks.
func (m Marks) flags() (flags []dataset.Flag) {
	if m.Thousands != 0 {
		flags = append(flags, dataset.Flag{Name: "--thousands", Value: string(m.Thousands)})
	}
	if m.Thousands == 0 || m.Comma != (m.Thousands == '.') {
		flags = append(flags, dataset.Flag{Name: "--decimal", Value: string(m.Decimal())})
	}
	return flags
}

// Text returns the flags as places of a text.
func (m Marks) Text() errtext.Text { return dataset.FlagsText(m.flags()) }

// DecimalsProof is what shows that marks of a file are before decimals, where no flag says it: a number that could not
// be written so with marks between thousands.
type DecimalsProof struct {
	Needed bool // none was seen, and no flag says it
	Doubt  bool // a mark was seen that may be one between thousands
}

// Look looks at a number with a fraction or of more than four characters.
func (p *DecimalsProof) Look(field string, mark byte) {
	field = strings.TrimSpace(field)
	switch {
	case strings.IndexByte(field, mark) < 0:
	case LikeThousands(field, mark):
		p.Doubt = true
	default:
		p.Needed = false
	}
}
