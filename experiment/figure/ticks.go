package figure

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// mostTicks and fewTicks bound the labels along an axis, of a figure and of one of several panels:
// more run into each other at 60 mm.
const (
	mostTicks = 6
	fewTicks  = 4
)

// ticks are at most so many labels, at 1, 2 or 5 times powers of ten.
type ticks struct {
	log  bool
	most int
}

// Ticks implements plot.Ticker.
func (t ticks) Ticks(least, greatest float64) []plot.Tick {
	if t.log && least > 0 && greatest > 5*least {
		return logTicks(least, greatest, t.most)
	}
	return linearTicks(least, greatest, t.most)
}

// wholeTicks are ticks at whole numbers, for counts.
type wholeTicks struct{}

// Ticks implements plot.Ticker.
func (wholeTicks) Ticks(least, greatest float64) []plot.Tick {
	return multiples(least, greatest, max(1, niceStep((greatest-least)/(mostTicks-1))), mostTicks)
}

// zeroTicks are the ticks of a zeroScale.
type zeroTicks struct{ least float64 }

// Ticks implements plot.Ticker.
func (t zeroTicks) Ticks(_, greatest float64) []plot.Tick {
	return append([]plot.Tick{{Value: 0, Label: "0"}}, logTicks(t.least, greatest, mostTicks-1)...)
}

// linearTicks are multiples of one step.
func linearTicks(least, greatest float64, most int) []plot.Tick {
	return multiples(least, greatest, niceStep((greatest-least)/float64(most-1)), most)
}

func multiples(least, greatest, step float64, most int) (all []plot.Tick) {
	digits := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	first := math.Ceil(least/step - 1e-9)
	for n := range most + 1 { // bounded also where the axis is so short that first + 1 is first
		i := first + float64(n)
		if i*step > greatest+step*1e-9 {
			break
		}
		all = append(all, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step+0, 'f', digits, 64)})
	}
	return all
}

// niceStep is the least of 1, 2 and 5 times a power of ten that is at least x.
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

// logTicks are, over more than a factor of five, at powers of ten, and at 2 and 5 times these where the axis has fewer than
// two powers of ten.
func logTicks(least, greatest float64, most int) (all []plot.Tick) {
	first, last := math.Floor(math.Log10(least)), math.Ceil(math.Log10(greatest))
	decades := math.Log10(greatest / least)
	every := max(1, math.Ceil(decades/float64(most)))
	for e := first; e <= last; e++ {
		for _, m := range []float64{1, 2, 3, 4, 5, 6, 7, 8, 9} {
			v := m * math.Pow(10, e)
			if v < least*(1-1e-9) || v > greatest*(1+1e-9) {
				continue
			}
			label := ""
			if m == 1 && math.Mod(e, every) == 0 || (m == 2 || m == 5) && decades < 2 {
				label = tickText(v)
			}
			all = append(all, plot.Tick{Value: v, Label: label})
		}
	}
	return all
}

// tickText is a number on a logarithmic axis: as it is, or, where that takes more room, as a power of ten.
func tickText(v float64) string {
	if v > 0.9e-4 && v < 1.1e4 {
		return strconv.FormatFloat(v, 'g', 6, 64)
	}
	return strings.NewReplacer("e+0", "e", "e-0", "e-", "e+", "e").Replace(strconv.FormatFloat(v, 'e', 0, 64))
}
