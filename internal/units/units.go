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
		return 0, fmt.Errorf("%q is not a size: want a number of bytes, or a number with a unit (KiB, MiB, GiB or TiB), such as 1000000, 512MiB or 8GiB", text)
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
