package units

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseFloat(t *testing.T) {
	for text, want := range map[string]float64{"1": 1, "+1.5": 1.5, "-.5": -.5, "5.": 5, "1e3": 1000, "1E-3": .001,
		"007": 7, "0": 0} {
		if got, err := ParseFloat(text); got != want || err != nil {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"1_2", "1_000.5", "1e1_0", "_1", "0x1p3", "0X10", "-0x1p-3", "+0x1", "0x", "0b1",
		"0o7", "", "a"} {
		if got, err := ParseFloat(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[+-]?[0-9_xXpP.eE+-]{0,6}`).Draw(t, "text")
		v, err := ParseFloat(text)
		want, wanted := strconv.ParseFloat(text, 64)
		if strings.ContainsAny(text, "_xX") {
			if err == nil {
				t.Fatalf("%q: %v", text, v)
			}
		} else if v != want || (err == nil) != (wanted == nil) {
			t.Fatalf("%q: %v, %v, want %v, %v", text, v, err, want, wanted)
		}
	})
}

func TestFloatText(t *testing.T) {
	for _, c := range []struct {
		v     float64
		bits  int
		text  string
		exact bool
	}{
		{0, 64, "0", true}, {math.Copysign(0, -1), 64, "0", true}, {20231105, 64, "20231105", true}, {0.1, 64, "0.1", true},
		{float64(float32(0.1)), 32, "0.1", true},
		{0x1p53 - 1, 64, "9007199254740991", true}, {0x1p53, 64, "9007199254740992", false},
		{-0x1p53, 64, "-9007199254740992", false},
		{0x1p24 - 1, 32, "16777215", true}, {0x1p24, 32, "16777216", false}, {2047, 16, "2047", true},
		{2048, 16, "2048", false},
		{math.NaN(), 64, "NaN", true}, {math.Inf(1), 64, "+Inf", false}, {1e-7, 64, "1e-07", true},
	} {
		if text, exact := FloatText(c.v, c.bits); text != c.text || exact != c.exact {
			t.Errorf("%v of %d bits: %q, %v, want %q, %v", c.v, c.bits, text, exact, c.text, c.exact)
		}
	}
}

func TestInFull(t *testing.T) {
	for v, text := range map[float64]string{
		0: "0", math.Copysign(0, -1): "0", 1e6: "1000000", 1000000.5: "1000000.5", -1.5e15: "-1500000000000000",
		1e20: "100000000000000000000", 1e21: "1e+21",
		.1: "0.1", 1e-6: "0.000001", 9e-7: "9e-07", math.Inf(1): "+Inf",
	} {
		if got := InFull(v); got != text {
			t.Errorf("%v: %s, want %s", v, got, text)
		}
	}
}
