package units

import (
	"math"
	"strconv"
	"strings"
)

// ParseFloat is strconv.ParseFloat of 64 bits for decimal numbers: hexadecimal digits and underscores, which
// that function also reads, are a syntax error.
func ParseFloat(text string) (float64, error) {
	if !decimal(text) {
		return 0, &strconv.NumError{Func: "ParseFloat", Num: strings.Clone(text), Err: strconv.ErrSyntax}
	}
	return strconv.ParseFloat(text, 64)
}

// decimal reports whether a text has neither an underscore nor the beginning of a hexadecimal number.
func decimal(text string) bool {
	digits := text
	if len(digits) > 0 && (digits[0] == '+' || digits[0] == '-') {
		digits = digits[1:]
	}
	if len(digits) > 1 && digits[0] == '0' && digits[1]|0x20 == 'x' {
		return false
	}
	return strings.IndexByte(digits, '_') < 0
}

// FloatText writes a float of so many bits (16, 32 or 64): a whole number with all its digits, any other with as few as tell
// it from all floats of its type. exact is false if v is so large that several whole numbers round to one such
// float, so that v may stand for another number.
func FloatText(v float64, bits int) (text string, exact bool) {
	limit := 0x1p53 // 2 to the number of binary digits of the significand
	switch bits {
	case 16:
		limit = 0x1p11
	case 32:
		limit = 0x1p24
	}
	if math.Abs(v) >= limit {
		return strconv.FormatFloat(v, 'f', -1, max(bits, 32)), false
	}
	if v == math.Floor(v) {
		return strconv.FormatInt(int64(v), 10), true
	}
	return strconv.FormatFloat(v, 'g', -1, max(bits, 32)), true
}

// InFull writes a float for people, with as few digits as tell it from all others, and without an exponent unless it is 1e21 or more, or
// closer to 0 than 1e-6.
func InFull(v float64) string {
	if most := math.Abs(v); most < 1e21 && most >= 1e-6 || v == 0 {
		return strconv.FormatFloat(v+0, 'f', -1, 64) // no -0
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
