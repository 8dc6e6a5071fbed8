package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The size of a chart in units of its view box, and of its margins.
const (
	chartWidth, chartHeight = 720, 300
	marginLeft, marginRight = 56, 24
	marginTop, marginBottom = 40, 40
	plotWidth, plotHeight   = chartWidth - marginLeft - marginRight, chartHeight - marginTop - marginBottom
	ticksAcross, ticksUp    = 6, 5
	seriesClasses           = 6  // the style sheet has so many
	markApart               = 28 // units between two marks
	outlier                 = 4  // a first loss above so many times the range of the others leaves the plot
)

// series is a line of a chart. A NaN interrupts it.
type series struct {
	Name   string
	X, Y   []float64
	Dashed bool
	Colour int // 0 to seriesClasses-1
}

// mark is an event at a position of the horizontal axis.
type mark struct {
	X     float64
	Text  string
	Kind  string // a class of the style sheet
	Label string // one or two characters
}

// eventMark is the kind of marks whose labels are numbers, bestMark the kind of the best step.
const (
	eventMark = "event"
	bestMark  = "best"
)

// chart is a picture of lines, as a template draws it. Positions are in units of the view box.
type chart struct {
	Title, XLabel, YLabel string
	XTicks, YTicks        []tick
	Lines                 []line
	Marks                 []placed
}

type tick struct {
	At   float64
	Text string
}

type line struct {
	Name, Points, Class string
	Last                string // the last value
}

type placed struct {
	At, Y             float64 // Y is of the label
	Text, Kind, Label string
	Side              string // of the line on which the label is: "", "left" or "right"
}

// newChart returns a chart, or nil if no series has two points. Values above the plot are drawn at its edge: the first
// steps of a training may have losses that are far greater than all others.
func newChart(title, xLabel, yLabel string, all []series, marks []mark) *chart {
	xs, ys := span{math.Inf(1), math.Inf(-1)}, span{math.Inf(1), math.Inf(-1)}
	count := 0
	for _, s := range all {
		for i := range s.X {
			if !math.IsNaN(s.Y[i]) && !math.IsInf(s.Y[i], 0) {
				xs.add(s.X[i])
				ys.add(s.Y[i])
				count++
			}
		}
	}
	if count < 2 || xs.lo == xs.hi {
		return nil
	}
	if tail := lateSpan(all, xs); ys.hi-tail.lo > outlier*(tail.hi-tail.lo) && tail.hi > tail.lo {
		ys.hi = tail.hi + (tail.hi-tail.lo)*(outlier-1)
	}
	if ys.lo == ys.hi {
		ys.lo, ys.hi = ys.lo-1, ys.hi+1
	}
	c := &chart{Title: title, XLabel: xLabel, YLabel: yLabel}
	across := func(x float64) float64 { return marginLeft + plotWidth*(x-xs.lo)/(xs.hi-xs.lo) }
	up := func(y float64) float64 {
		return marginTop + plotHeight*(1-(min(max(y, ys.lo), ys.hi)-ys.lo)/(ys.hi-ys.lo))
	}
	for _, v := range ticks(xs, ticksAcross) {
		c.XTicks = append(c.XTicks, tick{across(v), formatTick(v)})
	}
	for _, v := range ticks(ys, ticksUp) {
		c.YTicks = append(c.YTicks, tick{up(v), formatTick(v)})
	}
	for _, s := range all {
		class := "s" + strconv.Itoa(s.Colour%seriesClasses)
		if s.Dashed {
			class += " dashed"
		}
		l := line{Name: s.Name, Class: class}
		var b strings.Builder
		pen, drawn := 'M', 0
		for i := range s.X {
			if math.IsNaN(s.Y[i]) || math.IsInf(s.Y[i], 0) {
				pen = 'M'
				continue
			}
			fmt.Fprintf(&b, "%c%.1f %.1f", pen, across(s.X[i]), up(s.Y[i]))
			pen, l.Last = 'L', formatNumber(s.Y[i])
			drawn++
		}
		if drawn == 1 {
			b.WriteString("h0.1")
			l.Class += " dot"
		}
		if l.Points = b.String(); l.Points != "" {
			c.Lines = append(c.Lines, l)
		}
	}
	for _, m := range marks {
		c.mark(m, across(min(max(m.X, xs.lo), xs.hi)))
	}
	return c
}

// mark draws a mark at a place. An event that would cover the one before becomes a part of it. Labels of events are
// above the lines. The label of the best step is at the top, because the curve is low there, and the label of a second
// training at the bottom.
func (c *chart) mark(m mark, at float64) {
	p := placed{At: at, Y: marginTop - 5, Text: m.Text, Kind: m.Kind, Label: m.Label}
	if n := len(c.Marks) - 1; m.Kind == bestMark {
		p.Y, p.Side = marginTop+12, "left"
		if at < marginLeft+2*markApart {
			p.Side = "right"
		}
	} else if m.Kind != eventMark {
		p.Y, p.Side = marginTop+plotHeight-5, "right"
		if at > chartWidth-marginRight-2*markApart {
			p.Side = "left"
		}
	} else if n >= 0 && c.Marks[n].Kind == eventMark && math.Abs(at-c.Marks[n].At) < markApart {
		last := &c.Marks[n]
		first, _, _ := strings.Cut(last.Label, "-")
		last.Text, last.Label = last.Text+"; "+m.Text, first+"-"+m.Label
		return
	}
	c.Marks = append(c.Marks, p)
}

// span is a range of values.
type span struct{ lo, hi float64 }

func (s *span) add(v float64) { s.lo, s.hi = min(s.lo, v), max(s.hi, v) }

// lateSpan returns the range of the values after the first tenth of the horizontal axis.
func lateSpan(all []series, xs span) span {
	late := span{math.Inf(1), math.Inf(-1)}
	for _, s := range all {
		for i := range s.X {
			if y := s.Y[i]; s.X[i] > xs.lo+(xs.hi-xs.lo)/10 && !math.IsNaN(y) && !math.IsInf(y, 0) {
				late.add(y)
			}
		}
	}
	return late
}

// ticks returns round values in a range, about n of them.
func ticks(s span, n int) (all []float64) {
	rough := (s.hi - s.lo) / float64(n)
	step := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if step*factor >= rough {
			step *= factor
			break
		}
	}
	first := math.Ceil(s.lo / step)
	for i := range n + 2 { // so far above 0 that first+1 is first, the loop would have no end
		if v := (first + float64(i)) * step; v <= s.hi && (len(all) == 0 || v > all[len(all)-1]) {
			all = append(all, v)
		}
	}
	return all
}

// formatTick formats a value of an axis.
func formatTick(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 4, 64) + "M"
	case a >= 1e4:
		return strconv.FormatFloat(v/1e3, 'g', 4, 64) + "k"
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
