package units

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1000000": 1000000, "512MiB": 512 << 20, "8GiB": 8 << 30, "1.5KiB": 1536, "2 TiB": 2 << 40, "8gib": 8 << 30,
		" 7 B ":               7,
		"9223372036854774784": 9223372036854774784, "8388607TiB": 8388607 << 40,
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "B", "GiB", "-1", "-1GiB", "8GB", "8 G", "1.5", "1.5B", "1e3", "0x10", "1_000", "NaN", "Inf", "InfKiB", "1e9KiB",
		"+-1", "8GiBs",
		"9223372036854775808", "8388608TiB", "99999999999TiB", "1..5KiB", ".",
	} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q: %d, want an error", text, got)
		}
	}
}

// What is written is read, to a part in twenty (one decimal).
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1<<52).Draw(t, "n")
		got, err := Parse(Format(n))
		if err != nil || math.Abs(float64(got-n)) > float64(n)/20 {
			t.Fatalf("%d is written as %s and read as %d, %v", n, Format(n), got, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"1", "1.5GiB", "8388607TiB", "-0KiB", "1e400TiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := Parse(s); err != nil && n != 0 || n < 0 {
			t.Errorf("%q: %d, %v", s, n, err)
		}
	})
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 2465: "2,465", 1234567: "1,234,567",
		-100: "-100", -1000: "-1,000"} {
		if got := Count(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestPlural(t *testing.T) {
	for got, want := range map[string]string{Plural(0, "run"): "0 runs", Plural(1, "run"): "1 run",
		Plural(1500, "entry"): "1,500 entries"} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	for seconds, want := range map[float64]string{0.0421: "42 ms", 1: "1.0 s", 59.94: "59.9 s", 60: "1m00s", 185: "3m05s",
		3600: "1h00m", 7500: "2h05m"} {
		if got := Duration(seconds); got != want {
			t.Errorf("%v s: %q, want %q", seconds, got, want)
		}
	}
}
