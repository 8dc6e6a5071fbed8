package units

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

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
	wrong := fmt.Errorf("%.80q is not an age: want whole numbers with units (w, d, h, m or s), such as 30d, 12h or 1d12h", text)
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
