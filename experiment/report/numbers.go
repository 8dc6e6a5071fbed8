package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/internal/units"
)

// none stands where there is no number.
const none = "-"

// unitOf is the unit of a measure; empty: it is a pure number, or has that of the labels.
func unitOf(measure string) string {
	switch measure {
	case "kl", "jensen_shannon", "log_loss":
		return "nats"
	}
	return ""
}

// none reports whether a number is not finite.
func (n number) none() bool { return math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) }

// compare orders numbers; one that is none is equal to all.
func compare(a, b number) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// floatsOf are numbers as the packages beside this one have them.
func floatsOf(list []number) (values []float64) {
	for _, v := range list {
		values = append(values, float64(v))
	}
	return values
}

// digits is how many decimals figures of one dataset and measure have: 4, as papers print; more where
// the least would have fewer than two digits, fewer where it has more than five.
func (r *Result) digits() int {
	least := math.Inf(1)
	for i := range r.Lines {
		if v := math.Abs(float64(r.Lines[i].Mean)); v > 0 && v < least {
			least = v
		}
	}
	if math.IsInf(least, 0) {
		return 4
	}
	order := int(math.Floor(math.Log10(least)))
	return min(max(1-order, min(4, max(1, 4-order))), 8)
}

// text is a mean with its deviation.
func (f Figure) text(digits int) string {
	if f.Folds == 0 {
		return none
	}
	mean := strconv.FormatFloat(float64(f.Mean), 'f', digits, 64)
	if math.IsNaN(float64(f.Deviation)) {
		return mean
	}
	return mean + " ± " + strconv.FormatFloat(float64(f.Deviation), 'f', digits, 64)
}

// text is a line's figure; one that lacks folds says how many it has.
func (l *Line) text(digits int) string {
	if l.Folds == 0 || l.Complete() {
		return l.Figure.text(digits)
	}
	return fmt.Sprintf("%s (%d of %d)", l.Figure.text(digits), l.Folds, l.Wanted)
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

// fixed is a number with so many decimals.
func fixed(n number, digits int) string {
	if n.none() {
		return none
	}
	return strconv.FormatFloat(float64(n), 'f', digits, 64)
}

// count is a number of things.
func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return units.Count(n) + " " + more
}
