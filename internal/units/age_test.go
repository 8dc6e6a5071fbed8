package units

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseAge(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "30d": 30 * day, "12h": 12 * time.Hour, "1d12h": 36 * time.Hour, "2w": 14 * day, "90m": 90 *
			time.Minute,
		"1w2d3h4m5s": 9*day + 3*time.Hour + 4*time.Minute + 5*time.Second, "1h1h": 2 * time.Hour, "106751d": 106751 * day,
	} {
		if got, err := ParseAge(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "d", "30", "-1d", "+1d", "1.5d", "30 d", "30D", "1d12", "1y", "30days", "1e3d", "١d", "106752d",
		"9223372036854775807s", "99999999999999999999d", "5000000w5000000w",
	} {
		if got, err := ParseAge(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

// TestTooOld: an age that is too large is not called a text of another kind.
func TestTooOld(t *testing.T) {
	for _, text := range []string{"106752d", "9223372036854775807s", "99999999999999999999d", "5000000w5000000w"} {
		if _, err := ParseAge(text); err == nil || !strings.Contains(err.Error(), "too large: want at most 106751d") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// An age is the sum of its parts.
func TestAgeIsASum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, want := "", time.Duration(0)
		for range rapid.IntRange(1, 5).Draw(t, "parts") {
			n := rapid.Int64Range(0, 1000).Draw(t, "number")
			unit := rapid.SampledFrom([]byte("wdhms")).Draw(t, "unit")
			text += fmt.Sprintf("%d%c", n, unit)
			want += time.Duration(n) * map[byte]time.Duration{'w': 168 * time.Hour, 'd': 24 * time.Hour, 'h': time.Hour,
				'm': time.Minute, 's': time.Second}[unit]
		}
		if got, err := ParseAge(text); err != nil || got != want {
			t.Fatalf("%s: %v, %v; want %v", text, got, err, want)
		}
	})
}

func FuzzParseAge(f *testing.F) {
	for _, s := range []string{"30d", "1d12h", "0", "106751d24h", "9999999999999999999w", "00000000000000000000000001s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseAge(s)
		if d < 0 || err != nil && d != 0 || d%time.Second != 0 {
			t.Errorf("%q: %v, %v", s, d, err)
		}
		if Age(d).Seconds() != int64(d/time.Second) {
			t.Errorf("%v: %d seconds", d, Age(d).Seconds())
		}
	})
}
