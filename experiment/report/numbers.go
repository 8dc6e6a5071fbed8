package report

import (
	"math"
	"strconv"
	"strings"
)

// none is the text for a missing number.
const none = "-"

// unitOf has the units of measures. Other measures are pure numbers, or have the unit of the labels.
var unitOf = map[string]string{"kl": "nats", "jensen_shannon": "nats", "log_loss": "nats"}

// none reports whether a number is not finite.
func (n number) none() bool { return math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) }

// floatsOf are numbers as the packages beside this one have them.
func floatsOf(list []number) (values []float64) {
	for _, v := range list {
		values = append(values, float64(v))
	}
	return values
}

// leastFixed is the size below which a number is shown with a power of ten.
const leastFixed = 1e-6

// mostDigits bounds the digits of a number: more are not kept.
const mostDigits = 17

// format says how the numbers of a column are written.
type format struct {
	decimals int
	power    int // decimals of numbers with a power of ten
}

// apart returns a format with so many more digits that no two values of different places look alike.
func (f format) apart(values []number, places []int) format {
	for f.decimals < mostDigits && f.alike(values, places) {
		f.decimals, f.power = f.decimals+1, f.power+1
	}
	return f
}

func (f format) alike(values []number, places []int) bool {
	of := make(map[string]int)
	for i, v := range values {
		text := f.text(v)
		if place, shown := of[text]; shown && place != places[i] {
			return true
		}
		of[text] = places[i]
	}
	return false
}

// text is a number.
func (f format) text(n number) string {
	if v := math.Abs(float64(n)); v > 0 && v < leastFixed {
		return strconv.FormatFloat(float64(n), 'e', f.power, 64)
	}
	return fixed(n, f.decimals)
}

// pText is a p-value.
func pText(p number) string {
	switch v := float64(p); {
	case math.IsNaN(v):
		return none
	case v < 0.0001:
		return "< 0.0001"
	default:
		return strconv.FormatFloat(v, 'f', 4, 64)
	}
}

// pIs says what p is.
func pIs(p number) string {
	if text := pText(p); !strings.HasPrefix(text, "<") {
		return "p = " + text
	}
	return "p " + pText(p)
}

// effectText is an effect size; beyond 100, differences are equal but for rounding.
func effectText(n number) string {
	switch {
	case n > 100:
		return "> 100"
	case n < -100:
		return "< -100"
	}
	return fixed(n, 2)
}

// fixed is a number with so many decimals; what rounds to 0 has no sign.
func fixed(n number, decimals int) string {
	if n.none() {
		return none
	}
	text := strconv.FormatFloat(float64(n), 'f', decimals, 64)
	if strings.Trim(text, "-0.") == "" {
		return strings.TrimPrefix(text, "-")
	}
	return text
}

// number is a float that is null in JSON if it is not finite.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if n.none() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(n)+0, 'g', -1, 64), nil // no -0
}
