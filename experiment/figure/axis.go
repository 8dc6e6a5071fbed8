package figure

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
)

// Axis describes an axis of a figure. Name has no unit. Unit is empty for pure numbers.
type Axis struct {
	Name, Unit string
	Log        bool // the scale is logarithmic, for values above 0
	Zero       bool // a logarithmic axis also has 0, at its left end
	// Wide makes the scale logarithmic if all values are above 0 and the greatest exceeds the least by more than this
	// factor; 0: never.
	Wide float64
}

// WideLosses is Axis.Wide of losses.
const WideLosses = 5

// Has reports whether a value can be shown on the axis.
func (a Axis) Has(v float64) bool { return !a.Log || v > 0 || a.Zero && v == 0 }

// label returns the text next to the axis.
func (a Axis) label() string {
	if a.Unit == "" {
		return a.Name
	}
	return a.Name + " (" + a.Unit + ")"
}

// axis is an axis with the range of the values on it.
type axis struct {
	Axis
	low, high float64
	least     float64  // the least value above 0
	fraction  bool     // a value is not a whole number
	names     []string // names of the values 0, 1, 2 and so on; if empty, ticks are numbers
}

// newAxis returns an axis without values.
func newAxis(a Axis) axis {
	return axis{Axis: a, low: math.Inf(1), high: math.Inf(-1), least: math.Inf(1)}
}

// include extends the range to the values.
func (a *axis) include(values ...float64) {
	for _, v := range values {
		a.low, a.high = min(a.low, v), max(a.high, v)
		a.fraction = a.fraction || v != math.Trunc(v)
		if v > 0 {
			a.least = min(a.least, v)
		}
	}
}

// finish extends a range that has only one value, apart from rounding errors.
func (a *axis) finish() {
	a.Log = a.Log && a.high > 0 || a.Wide > 0 && a.low > 0 && a.high > a.Wide*a.low // Log: otherwise all values are 0
	switch {
	case a.high-a.low > 1e-12*max(math.Abs(a.low), math.Abs(a.high)):
	case a.Log:
		a.low, a.high = a.low/2, a.high*2
	default:
		a.low, a.high = a.low-1, a.high+1
	}
}

// zeroRoom is the part of a logarithmic axis between 0 and the least value above 0.
const zeroRoom = 0.15

// at returns the position of a value on the axis, from 0 to 1.
func (a *axis) at(v float64) float64 {
	switch {
	case !a.Log:
		return (v - a.low) / (a.high - a.low)
	case a.low > 0:
		return (math.Log(v) - math.Log(a.low)) / (math.Log(a.high) - math.Log(a.low))
	case v < a.least:
		return 0
	case a.high <= a.least:
		return 1
	}
	return zeroRoom + float64((1-zeroRoom)*(math.Log(v)-math.Log(a.least))/(math.Log(a.high)-math.Log(a.least)))
}

// tick is a tick of an axis. A tick without text is shorter.
type tick struct {
	value float64
	text  string
}

// mostTicks is the maximum number of texts along an axis.
const mostTicks = 6

// fitted returns the ticks for an axis of a length. Between their texts there is at least a gap. The function size
// returns the size of a text along the axis.
func (a *axis) fitted(length, gap vg.Length, size func(text string) vg.Length) []tick {
	for most := mostTicks; ; most-- {
		all, end, overlap := a.ticks(most), vg.Length(math.Inf(-1)), false
		for i := range all {
			if all[i].text == "" {
				continue
			}
			middle, half := length*vg.Length(a.at(all[i].value)), size(all[i].text)/2
			if middle-half < end-1e-6 {
				overlap, all[i].text = true, ""
				continue
			}
			end = middle + half + gap
		}
		if !overlap || most == 2 {
			return all
		}
	}
}

// ticks returns ticks at round numbers, with about the given number of texts at most.
func (a *axis) ticks(most int) (all []tick) {
	switch {
	case len(a.names) > 0:
		for i, name := range a.names {
			all = append(all, tick{float64(i), name})
		}
		return all
	case a.Log && a.low <= 0:
		return append([]tick{{0, "0"}}, logTicks(a.least, a.high, most-1)...)
	case a.Log && a.high > 5*a.low:
		return logTicks(a.low, a.high, most)
	}
	step := niceStep((a.high - a.low) / float64(most-1))
	if !a.fraction {
		step = max(1, step)
	}
	first := math.Ceil(a.low/step - 1e-9)
	for n := range most + 1 { // the bound ends the loop if first + 1 is rounded to first
		v := (first + float64(n)) * step
		if v > a.high+step*1e-9 {
			break
		}
		all = append(all, tick{v, linearText(v, step)})
	}
	return all
}

// niceStep returns the least of 1, 2 and 5 times a power of ten that is at least x.
func niceStep(x float64) float64 {
	if !(x > 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= x*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// logTicks returns ticks at 1 to 9 times powers of ten. The powers have texts. On short axes, 2 and 5 times powers have
// texts, too.
func logTicks(low, high float64, most int) (all []tick) {
	decades := math.Log10(high) - math.Log10(low)
	every := max(1, math.Ceil(decades/float64(most)))
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for m := 1.0; m <= 9; m++ {
			v := m * math.Pow(10, e)
			if v < low*(1-1e-9) || v > high*(1+1e-9) {
				continue
			}
			text := ""
			if m == 1 && math.Mod(e, every) == 0 || (m == 2 || m == 5) && decades < 2 && most > mostTicks-3 {
				text = shortExponent.Replace(strconv.FormatFloat(v, 'e', 0, 64))
				if v > 0.9e-4 && v < 1.1e4 {
					text = strconv.FormatFloat(v, 'g', 6, 64)
				}
			}
			all = append(all, tick{v, text})
		}
	}
	return all
}

var shortExponent = strings.NewReplacer("e+0", "e", "e-0", "e-", "e+", "e")

// linearText returns the text of a multiple of a step. Texts with many digits have an exponent.
func linearText(v, step float64) string {
	exponent := math.Floor(math.Log10(step) + 1e-9)
	digits := int(max(0, -exponent))
	switch size := math.Abs(v); {
	case digits <= 5 && size < 1e6:
		return strconv.FormatFloat(v+0, 'f', digits, 64) // without the sign of -0
	case size < step/2:
		return "0"
	default:
		significant := math.Floor(math.Log10(size)+1e-9) - exponent
		return shortExponent.Replace(strconv.FormatFloat(v, 'e', int(max(0, significant)), 64))
	}
}
