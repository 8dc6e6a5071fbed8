// Package units reads and writes numbers of bytes, everywhere in the same way: plain
// bytes, or KiB, MiB, GiB and TiB, which are powers of 1024. It reads ages as well (30d), and decimal numbers, and
// writes durations and numbers of things.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// names of the units: each is 1024 times the one before it.
var names = []string{"B", "KiB", "MiB", "GiB", "TiB"}

// Bytes is a number of bytes as a flag, which is not negative.
type Bytes int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Bytes) UnmarshalText(text []byte) error {
	n, err := Parse(string(text))
	*b = Bytes(n)
	return err
}

// String implements fmt.Stringer.
func (b Bytes) String() string { return Format(int64(b)) }

// Parse reads a size: 1000000, 512MiB, 1.5 GiB. A fraction of a byte is cut off.
func Parse(text string) (int64, error) {
	number, factor := strings.TrimSpace(text), 1.0
	for i := len(names) - 1; i >= 0; i-- {
		if n := len(number) - len(names[i]); n > 0 && strings.EqualFold(number[n:], names[i]) {
			number, factor = strings.TrimSpace(number[:n]), math.Ldexp(1, 10*i)
			break
		}
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil && n >= 0 && float64(n) < math.MaxInt64/factor {
		return n * int64(factor), nil
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || strings.Trim(number, "0123456789.") != "" || factor == 1 || v*factor >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is not a size: want a number of bytes, or a number with a unit (KiB, MiB, GiB or TiB), "+
			"such as 1000000, 512MiB or 8GiB", text)
	}
	return int64(v * factor), nil
}

// Count writes a number of things with commas: 2,465.
func Count[T int | int64 | uint64](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural writes a number of things: 1 run, 2,000 runs, 2 entries.
func Plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if stem, ok := strings.CutSuffix(one, "y"); ok {
		return Count(n) + " " + stem + "ies"
	}
	return Count(n) + " " + one + "s"
}

// Duration writes seconds as 950 ms, 12.3 s or 3m05s.
func Duration(seconds float64) string {
	switch d := time.Duration(seconds * float64(time.Second)); {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
}

// Format writes a size for people, with one decimal: 999 B, 1.5 KiB, 8.0 GiB.
func Format(n int64) string {
	v, i := float64(n), 0
	for v >= 1024 && i < len(names)-1 {
		v, i = v/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", v, names[i])
}

// seconds of the units of an age, by their letter.
var seconds = map[byte]int64{'s': 1, 'm': 60, 'h': 60 * 60, 'd': 24 * 60 * 60, 'w': 7 * 24 * 60 * 60}

// Age is a time in whole seconds as a flag, which is not negative.
type Age time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Age) UnmarshalText(text []byte) error {
	d, err := ParseAge(string(text))
	*a = Age(d)
	return err
}

// Seconds returns the age in seconds.
func (a Age) Seconds() int64 { return int64(time.Duration(a) / time.Second) }

// ParseAge reads an age: 30d, 12h, 1d12h, 2w, 0. Its units are w (7 days), d (24
// hours), h, m (minutes) and s, each with a whole number before it.
func ParseAge(text string) (time.Duration, error) {
	wrong := fmt.Errorf("%.80q is not an age: want whole numbers with units (w, d, h, m or s), such as 30d, 12h or 1d12h",
		text)
	if text == "0" {
		return 0, nil
	}
	total, rest := int64(0), text
	for first := true; first || rest != ""; first = false {
		digits := 0
		for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
			digits++
		}
		n, err := strconv.ParseInt(rest[:digits], 10, 64)
		if digits == 0 || digits == len(rest) || seconds[rest[digits]] == 0 {
			return 0, wrong
		}
		unit := seconds[rest[digits]]
		if err != nil || n > (math.MaxInt64/int64(time.Second)-total)/unit {
			return 0, fmt.Errorf("%.80q is too large: want at most %dd", text, math.MaxInt64/int64(24*time.Hour))
		}
		total, rest = total+n*unit, rest[digits+1:]
	}
	return time.Duration(total) * time.Second, nil
}

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

// FloatText writes a float of so many bits (16, 32 or 64): a whole number with all its digits, any other with as few as
// tell it from all floats of its type. exact is false if v is so large that several whole numbers round to one such
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

// InFull writes a float for people, with as few digits as tell it from all others, and without an exponent unless it is
// 1e21 or more, or closer to 0 than 1e-6.
func InFull(v float64) string {
	if most := math.Abs(v); most < 1e21 && most >= 1e-6 || v == 0 {
		return strconv.FormatFloat(v+0, 'f', -1, 64) // no -0
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
