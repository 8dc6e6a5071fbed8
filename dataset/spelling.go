package dataset

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// spelling says what in a field keeps it from being a number, and how to write it; empty: the field is no number in any of
// the spellings that are known.
func (m marks) spelling(field string) string {
	plain, causes := respell(field)
	if causes == nil {
		return ""
	}
	_, ok := m.value(plain)
	advice := ""
	if !ok {
		if advice = m.advice(plain); advice == "" {
			return ""
		}
	}
	return fmt.Sprintf(", because it has %s; write %s%s", strings.Join(causes, " and "), plain, advice)
}

// dressed matches a number with a sign, a currency or a parenthesis before it, and a unit or other signs after it.
var dressed = regexp.MustCompile(`^([-+]?)([^\d.,+-]{0,6})([-+]?)((?:\d[\d.,'’ \x{a0}\x{2009}\x{202f}]*|[.,]\d+)(?:[eEdDqQ][-+]?\d{1,3})?)([^\d]{0,16})$`)

// respell returns the number that people read in a field in ASCII, as programs write it, and what was changed; nil: nothing, or
// the field is no such number. The marks before decimals and between thousands stay.
func respell(field string) (plain string, causes []string) {
	const longest = 64
	if field = strings.TrimSpace(field); len(field) > longest || !strings.ContainsFunc(field, unicode.IsDigit) {
		return "", nil
	}
	add := func(cause string) {
		if !slices.Contains(causes, cause) {
			causes = append(causes, cause)
		}
	}
	field = strings.TrimSpace(strings.Map(func(r rune) rune {
		to, cause := asciiOf(r)
		if cause != "" {
			add(cause)
		}
		return to
	}, field))
	parts := dressed.FindStringSubmatch(field)
	if parts == nil {
		return "", nil
	}
	sign, before, number, after := parts[1]+parts[3], strings.TrimSpace(parts[2]), strings.TrimRight(parts[4], " ,'’\u00a0\u2009\u202f"), strings.TrimSpace(parts[5])
	if at := strings.IndexAny(number, "dDqQ"); at >= 0 {
		add(fmt.Sprintf("a %c exponent, as Fortran writes", number[at]&^0x20))
		number = number[:at] + "e" + number[at+1:]
	}
	inside, opened := strings.CutPrefix(before, "(")
	if rest, closed := strings.CutSuffix(after, ")"); opened && closed && sign == "" {
		add("parentheses, as accounting writes negative numbers")
		sign, before, after = "-", strings.TrimSpace(inside), strings.TrimSpace(rest)
	}
	if rest, found := strings.CutSuffix(after, "-"); found && sign == "" {
		add("a minus after its digits")
		sign, after = "-", strings.TrimSpace(rest)
	}
	if before != "" {
		cause := causeBefore(before)
		if cause == "" {
			return "", nil
		}
		add(cause)
	}
	if after != "" {
		cause := causeAfter(after)
		if cause == "" {
			return "", nil
		}
		add(cause)
	}
	if len(sign) > 1 {
		return "", nil
	}
	return sign + number, causes
}

// respelt reports whether a field is a number in a spelling that is not read; a unit may also be part of a name.
func respelt(field string) bool {
	_, causes := respell(field)
	return causes != nil && !slices.ContainsFunc(causes, func(cause string) bool { return strings.HasPrefix(cause, unitCause) })
}

// asciiOf returns the character of numbers that r stands for, or -1 for none, and what r is; empty: r itself.
func asciiOf(r rune) (to rune, cause string) {
	switch {
	case r < 0x80:
		return r, ""
	case r == '\u2212':
		return '-', "a Unicode minus (U+2212)"
	case r == '\u2013', r == '\u2014':
		return '-', fmt.Sprintf("a dash as minus (U+%04X)", r)
	case r == '\u2010', r == '\u2011', r == '\ufe63':
		return '-', fmt.Sprintf("a hyphen as minus (U+%04X)", r)
	case r >= '\uff01' && r <= '\uff5e':
		return r - '\uff01' + '!', "full-width characters"
	case r >= '\u200b' && r <= '\u200f', r == '\u2060', r == '\ufeff', r == '\u00ad':
		return -1, fmt.Sprintf("an invisible character (U+%04X)", r)
	case unicode.IsDigit(r):
		for _, zero := range []rune{'\u0660', '\u06f0', '\u0966', '\u09e6', '\u0e50'} {
			if r >= zero && r <= zero+9 {
				return r - zero + '0', "digits of another script"
			}
		}
	}
	return r, ""
}

// currencies are names of currencies that stand before or after an amount.
var currencies = []string{"USD", "EUR", "GBP", "CHF", "JPY", "CNY", "INR", "CAD", "AUD", "BRL", "SEK", "NOK", "DKK", "PLN", "kr", "Rs", "R$", "US$"}

func isCurrency(s string) bool {
	return slices.Contains(currencies, s) || !strings.ContainsFunc(s, func(r rune) bool { return !unicode.Is(unicode.Sc, r) })
}

// causeBefore says what a text before a number is; empty: none that is known.
func causeBefore(s string) string {
	switch {
	case isCurrency(s):
		return fmt.Sprintf("a currency (%s)", s)
	case strings.Trim(s, "<>=≤≥~≈") == "":
		return fmt.Sprintf("a comparison (%s)", s)
	}
	return ""
}

// unitCause begins what causeAfter says of a unit.
const unitCause = "a unit ("

// causeAfter says what a text after a number is; empty: none that is known.
func causeAfter(s string) string {
	first := []rune(s)[0]
	switch {
	case s == "%", s == "‰":
		return fmt.Sprintf("a percent sign (%s)", s)
	case isCurrency(s):
		return fmt.Sprintf("a currency (%s)", s)
	case slices.Contains([]string{"st", "nd", "rd", "th"}, s): // an ordinal number
	case unicode.IsLetter(first) || strings.ContainsRune("°µ′″\"'", first):
		if !strings.ContainsFunc(s, func(r rune) bool {
			return !unicode.IsLetter(r) && !strings.ContainsRune("°µ′″\"'²³/·*^. %⁻¹", r)
		}) {
			return unitCause + s + ")"
		}
	}
	return ""
}
