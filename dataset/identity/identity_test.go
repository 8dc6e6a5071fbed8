package identity

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestIdentityOf(t *testing.T) {
	for text, want := range map[string]identity{
		"1": {number: "1"}, "+1": {number: "1"}, "-1": {number: "-1"}, "1.0": {number: "1"}, "1.": {number: "1"},
		"1e0": {number: "1"}, "10E-1": {number: "1"},
		"0": {number: "0"}, "-0": {number: "0"}, "-0.0": {number: "0"}, ".5": {number: "0.5"}, "0.50": {number: "0.5"},
		"-.5": {number: "-0.5"},
		"01":  {number: "1", zeros: 1}, "-007": {number: "-7", zeros: 2}, "00": {number: "0", zeros: 1},
		"007.0": {number: "7", zeros: 2}, "00.5": {number: "0.5", zeros: 1},
		"20231105": {number: "20231105"}, "2.0231105e+07": {number: "20231105"}, "1.000000000000000056e-01": {number: "0.1"},
		"1e-07":            {number: "1e-07"},
		"9007199254740993": {number: "9007199254740993"}, "18446744073709551615": {number: "18446744073709551615"},
		"-9223372036854775808":           {number: "-9223372036854775808"},
		"123456789012345678901234567890": {number: "123456789012345678901234567890"},
		"9007199254740991.0":             {number: "9007199254740991"},
		"9007199254740992.0":             {number: "9007199254740992", inexact: true},
		"1e300":                          {number: "1" + strings.Repeat("0", 300), inexact: true},
	} {
		if text == "1e300" {
			want.number = fmt.Sprintf("%.0f", 1e300)
		}
		if got := identityOf(text); got.number != want.number && text != "1e300" || got.zeros != want.zeros ||
			got.inexact != want.inexact {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	for _, text := range []string{"", "+", "-", ".", "a", "1a", "1_0", "0x10", "0x1p3", "inf", "nan", "1e999", "1,5",
		"+-1", "--1", "1 2", "٣"} {
		if got := identityOf(text); got.number != "" {
			t.Errorf("%q is the number %s", text, got.number)
		}
	}
	for text, want := range map[string]string{"007.0": "007", "-007": "-007", "00.5": "00.5", "1.0": "1"} {
		id := identityOf(text)
		if got := id.name(); got != want {
			t.Errorf("%q is called %q, want %q", text, got, want)
		}
	}
}

func TestSortIdentities(t *testing.T) {
	for _, want := range [][]string{
		{"-9223372036854775808", "-9223372036854775807", "-1", "0.5", "2", "10", "9007199254740992", "9007199254740993",
			"18446744073709551614", "18446744073709551615", "123456789012345678901234567890"},
		{"007", "8", "0010"},
		{"10", "2", "a"},
		{"-1", "1", "inf"},
	} {
		got := slices.Clone(want)
		slices.Reverse(got)
		if Sort(got); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
