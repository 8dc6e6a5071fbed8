package figure

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/experiment/figure/svg"
)

// recording is a canvas that records texts and paths.
type recording struct {
	vg.CanvasSizer
	turned bool
	texts  []string
	boxes  []vg.Rectangle // box of each text
	lines  []vg.Path
	fills  []vg.Path
}

// record draws a figure on a recording.
func record(f *Figure) *recording {
	r := &recording{CanvasSizer: svg.New(svg.Options{Width: f.width, Height: f.height})}
	f.draw(draw.New(r))
	return r
}

func (r *recording) Rotate(float64)      { r.turned = true } // figures use quarter turns only
func (r *recording) Push()               {}
func (r *recording) Pop()                { r.turned = false }
func (r *recording) Stroke(path vg.Path) { r.lines = append(r.lines, path) }
func (r *recording) Fill(path vg.Path)   { r.fills = append(r.fills, path) }

func (r *recording) FillString(face font.Face, at vg.Point, text string) {
	size := face.Font.Size
	b := vg.Rectangle{Min: vg.Point{X: at.X, Y: at.Y - .2*size}, Max: vg.Point{X: at.X + widthOf(face, text),
		Y: at.Y + .72*size}}
	if r.turned {
		b = vg.Rectangle{Min: vg.Point{X: -b.Max.Y, Y: b.Min.X}, Max: vg.Point{X: -b.Min.Y, Y: b.Max.X}}
	}
	r.texts, r.boxes = append(r.texts, text), append(r.boxes, b)
}

// check reports texts that overlap or leave the figure.
func (r *recording) check(t rapid.TB) {
	t.Helper()
	width, height := r.Size()
	for i, a := range r.boxes {
		if a.Min.X < -.01 || a.Min.Y < -.01 || a.Max.X > width+.01 || a.Max.Y > height+.01 {
			t.Errorf("%q leaves the figure: %v", r.texts[i], a)
		}
		for j, b := range r.boxes[:i] {
			if min(a.Max.X, b.Max.X)-max(a.Min.X, b.Min.X) > .01 && min(a.Max.Y, b.Max.Y)-max(a.Min.Y, b.Min.Y) > .01 {
				t.Errorf("%q and %q overlap: %v, %v", r.texts[i], r.texts[j], a, b)
			}
		}
	}
}

// TestTextsApart checks that texts do not overlap in figures of every kind.
func TestTextsApart(t *testing.T) {
	for name, example := range examples() {
		t.Run(name, func(t *testing.T) {
			f, err := example.Figure()
			if err != nil {
				t.Fatal(err)
			}
			record(f).check(t)
		})
	}
}

// TestRandomTextsApart checks that texts do not overlap, whatever the numbers and names in a chart are.
func TestRandomTextsApart(t *testing.T) {
	number := rapid.Custom(func(t *rapid.T) float64 {
		return float64(rapid.IntRange(-2000, 2000).Draw(t, "mantissa")) *
			math.Pow(10, float64(rapid.IntRange(-12, 12).Draw(t, "exponent")))
	})
	rapid.Check(t, func(t *rapid.T) {
		var example figurer
		if rapid.Bool().Draw(t, "lines") {
			n := rapid.IntRange(1, 5).Draw(t, "points")
			s := Series{Name: "name"}
			for range n {
				s.X, s.Y = append(s.X, number.Draw(t, "x")), append(s.Y, number.Draw(t, "y"))
			}
			l := Lines{X: Axis{Name: "x"}, Y: Axis{Name: "y"}, Series: []Series{s}}
			l.X.Log, l.Y.Log = slices.Min(s.X) >= 0, slices.Min(s.Y) > 0
			l.X.Zero = l.X.Log
			example = &l
		} else {
			labels := rapid.IntRange(1, 12).Draw(t, "labels")
			d := Distributions{Labels: Axis{Name: "label"}, From: rapid.IntRange(0, 5000).Draw(t, "from")}
			if rapid.Bool().Draw(t, "names") {
				d.Names = rapid.SliceOfN(rapid.StringMatching(`[a-zA-Z]{0,20}`), labels, labels).Draw(t, "names")
			}
			for row := range rapid.IntRange(1, mostPanels).Draw(t, "rows") {
				name := rapid.StringMatching(`[a-z0-9]{0,40}`).Draw(t, "name")
				d.Rows = append(d.Rows, Compared{name, bump(labels, float64(row), 2), [][]float64{bump(labels, 1, 1)}})
			}
			example = &d
		}
		f, err := example.Figure()
		if err != nil {
			t.Fatal(err)
		}
		record(f).check(t)
	})
}

// TestPositions checks that points, bars and deviations are drawn at the positions of their values.
func TestPositions(t *testing.T) {
	// part returns the position of v on the way from a to b.
	part := func(a, b, v vg.Length) float64 { return float64((v - a) / (b - a)) }
	for _, c := range []struct {
		name         string
		x, y         Axis
		xs, ys       []float64
		wantX, wantY []float64 // parts of the way from the first to the last point
	}{
		{"linear", Axis{}, Axis{}, []float64{-2, 0, 2, 8}, []float64{5, 4, 2, 1}, []float64{0, .2, .4, 1},
			[]float64{0, .25, .75, 1}},
		{"logarithmic", Axis{Log: true}, Axis{Log: true}, []float64{1, 10, 1000}, []float64{.01, 10, 1},
			[]float64{0, 1. / 3, 1}, []float64{0, 1.5, 1}},
		{"zero", Axis{Log: true, Zero: true}, Axis{}, []float64{0, 1, 10, 100}, []float64{0, 1, 1, 2},
			[]float64{0, .15, .575, 1}, []float64{0, .5, .5, 1}},
	} {
		f, err := (&Lines{X: c.x, Y: c.y, Series: []Series{{X: c.xs, Y: c.ys}}}).Figure()
		if err != nil {
			t.Fatal(err)
		}
		r := record(f)
		at := slices.IndexFunc(r.lines, func(p vg.Path) bool { return len(p) == len(c.xs) })
		if at < 0 {
			t.Fatalf("%s: no line has %d points", c.name, len(c.xs))
		}
		line := r.lines[at]
		first, last := line[0].Pos, line[len(line)-1].Pos
		if first.X >= last.X {
			t.Errorf("%s: the least x is at the right", c.name)
		}
		if c.ys[0] > c.ys[len(c.ys)-1] != (first.Y > last.Y) {
			t.Errorf("%s: the greatest y is not at the top", c.name)
		}
		for i, p := range line {
			if x, y := part(first.X, last.X, p.Pos.X), part(first.Y, last.Y, p.Pos.Y); math.Abs(x-c.wantX[i]) > 1e-9 ||
				math.Abs(y-c.wantY[i]) > 1e-9 {
				t.Errorf("%s: point %d is at %.4f, %.4f, want %.4f, %.4f", c.name, i, x, y, c.wantX[i], c.wantY[i])
			}
			text := slices.Index(r.texts, fmt.Sprint(c.xs[i])) // the first texts are those along x
			if b := r.boxes[max(0, text)]; text < 0 || math.Abs(float64((b.Min.X+b.Max.X)/2-p.Pos.X)) > .01 {
				t.Errorf("%s: point %d is at %v, but the text %q is at %v", c.name, i, p.Pos, fmt.Sprint(c.xs[i]), b)
			}
		}
	}

	f, err := (&Visits{Counts: []int{4, 0, 1}}).Figure()
	if err != nil {
		t.Fatal(err)
	}
	var heights []vg.Length
	for _, bar := range record(f).fills {
		heights = append(heights, bar[2].Pos.Y-bar[0].Pos.Y)
	}
	if len(heights) != 3 || heights[0] < 100 || heights[1] != 0 || math.Abs(float64(heights[0]/heights[2])-4) > 1e-9 {
		t.Errorf("bars of 4, 0 and 1 visits are %v points high", heights)
	}

	f, err = (&Lines{Series: []Series{{X: []float64{1, 2}, Y: []float64{3, 5}, Deviation: []float64{1, .5}}}}).Figure()
	if err != nil {
		t.Fatal(err)
	}
	var deviations []vg.Length
	lines := record(f).lines
	for i, p := range lines[:len(lines)-2] { // a deviation is three lines: the bar and its two ends
		if a, b := lines[i+1], lines[i+2]; len(p) == 2 && p[0].Pos.X == p[1].Pos.X && (a[0].Pos.X+a[1].Pos.X)/
			2 == p[0].Pos.X && (b[0].Pos.X+b[1].Pos.X)/2 == p[0].Pos.X && b[0].Pos.Y == p[1].Pos.Y {
			deviations = append(deviations, p[1].Pos.Y-p[0].Pos.Y)
		}
	}
	if len(deviations) != 2 || math.Abs(float64(deviations[0]/deviations[1])-2) > 1e-9 {
		t.Errorf("deviations of 1 and 0.5 are %v points long", deviations)
	}
}

// axisOf returns an axis of values.
func axisOf(a Axis, values ...float64) *axis {
	all := newAxis(a)
	all.include(values...)
	all.finish()
	return &all
}

// textsOf returns the texts of ticks.
func textsOf(all []tick) (texts []string) {
	for _, tick := range all {
		if tick.text != "" {
			texts = append(texts, tick.text)
		}
	}
	return texts
}

// TestTicks checks the texts of axes against texts that were written by hand.
func TestTicks(t *testing.T) {
	log, zero := Axis{Log: true}, Axis{Log: true, Zero: true}
	for _, c := range []struct {
		axis   *axis
		length vg.Length
		want   string
	}{
		{axisOf(Axis{}, 0, 20000), 200, "0 5000 10000 15000 20000"},
		{axisOf(Axis{}, 0, 20000), 60, "0 10000 20000"},
		{axisOf(Axis{}, 0, 20000), 35, "0 20000"},
		{axisOf(Axis{}, .012, .031), 200, "0.015 0.020 0.025 0.030"},
		{axisOf(Axis{}, -1, 1, .5), 200, "-1.0 -0.5 0.0 0.5 1.0"},
		{axisOf(Axis{}, 0, 3e7), 200, "0 1e7 2e7 3e7"},
		{axisOf(Axis{}, 0, 1.5e-7), 200, "0 5e-8 1.0e-7 1.5e-7"},
		{axisOf(log, .08, .3), 200, "0.10 0.15 0.20 0.25 0.30"},
		{axisOf(log, .05, .3), 200, "0.05 0.1 0.2"},
		{axisOf(log, 1, 1e6), 200, "1 10 100 1000 10000 1e5 1e6"},
		{axisOf(log, 1, 1e6), 100, "1 100 10000 1e6"},
		{axisOf(zero, 0, 1e-4, .01, 1), 200, "0 0.0001 0.001 0.01 0.1 1"},
		{axisOf(zero, 0, 0), 200, "-1 0 1"},
		// whole numbers have whole ticks
		{axisOf(Axis{}, 1), 200, "0 1 2"}, {axisOf(Axis{}, 1, 2), 200, "1 2"}, {axisOf(Axis{}, 0, 3), 200, "0 1 2 3"},
		{axisOf(Axis{}, 1, 400), 200, "100 200 300 400"},
	} {
		style := letters(tickSize, 0, 0)
		if got := strings.Join(textsOf(c.axis.fitted(c.length, 4, style.Width)), " "); got != c.want {
			t.Errorf("from %v to %v, %v points: %s, want %s", c.axis.low, c.axis.high, c.length, got, c.want)
		}
	}
}

// TestTicksCover checks the ticks of random axes: they are round numbers, their texts say their values, and the axis
// has a tick at every multiple of their distance.
func TestTicksCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Float64Range(-1000, 1000).Draw(t, "from") *
			math.Pow(10, float64(rapid.IntRange(-9, 9).Draw(t, "exponent")))
		to := from + rapid.Float64Range(1e-3, 1000).Draw(t, "length")*max(1e-12, math.Abs(from))
		a := axisOf(Axis{Log: from > 0 && rapid.Bool().Draw(t, "log")}, from, to)
		all := a.ticks(mostTicks)
		linear := !a.Log || a.high <= 5*a.low
		room := (a.high - a.low) * 1e-9
		texts := textsOf(all)
		if len(texts) < 2 || len(texts) > mostTicks+1 {
			t.Fatalf("%d texts: %q", len(texts), texts)
		}
		for i, tick := range all {
			if tick.value < a.low-room || tick.value > a.high+1e-9*math.Abs(a.high)+room {
				t.Errorf("%v is not between %v and %v", tick.value, a.low, a.high)
			}
			if v, err := strconv.ParseFloat(tick.text, 64); tick.text != "" &&
				(err != nil || math.Abs(v-tick.value) > 1e-9*math.Abs(v)+room) {
				t.Errorf("the text of %v is %q", tick.value, tick.text)
			}
			if !linear || i == 0 {
				continue
			}
			step := all[1].value - all[0].value
			if got := tick.value - all[i-1].value; math.Abs(got-step) > 1e-6*step+room {
				t.Errorf("ticks are %v and %v apart", step, got)
			}
			if digit := strings.TrimRight(fmt.Sprintf("%.3e", step)[:5], "0"); !slices.Contains([]string{"1.", "2.", "5."},
				digit) {
				t.Errorf("the distance of ticks is %v, want 1, 2 or 5 times a power of ten", step)
			}
			if all[0].value-step > a.low+room || all[len(all)-1].value+step < a.high-room {
				t.Errorf("ticks from %v to %v do not cover %v to %v", all[0].value, all[len(all)-1].value, a.low, a.high)
			}
		}
	})
}

// TestShortAxis checks that values that differ only by rounding errors have ticks and a figure.
func TestShortAxis(t *testing.T) {
	next := math.Nextafter(.05, 1)
	a := newAxis(Axis{})
	a.include(.05, next)
	if n := len(a.ticks(mostTicks)); n > mostTicks+1 {
		t.Errorf("%d ticks", n)
	}
	f, err := (&Lines{Series: []Series{{X: []float64{1, 2}, Y: []float64{.05, next}}}}).Figure()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := record(f).texts, []string{"1", "2", "-0.5", "0.0", "0.5", "1.0"}; !slices.Equal(got, want) {
		t.Errorf("texts %q, want %q", got, want)
	}
}

// TestZeroApart checks the positions on a logarithmic axis with 0.
func TestZeroApart(t *testing.T) {
	values := []float64{0, 1e-4, 1e-2, 1, 100}
	a := axisOf(Axis{Log: true, Zero: true}, values...)
	for i := 1; i < len(values); i++ {
		if from, to := a.at(values[i-1]), a.at(values[i]); to-from < .1 {
			t.Errorf("%v is at %v and %v at %v", values[i-1], from, values[i], to)
		}
	}
	if a.at(0) != 0 || a.at(100) != 1 || axisOf(a.Axis, 0, 1e-4).at(1e-4) != 1 {
		t.Error("the ends of the axis are wrong")
	}
	lines := Lines{X: Axis{Name: "l2", Log: true}, Series: []Series{{Name: "a", X: values, Y: values}}}
	if _, err := lines.Figure(); err == nil {
		t.Error("a logarithmic axis without 0 shows 0")
	}
}

// TestWideAxis: an axis of losses is logarithmic if the losses are above 0 and far apart.
func TestWideAxis(t *testing.T) {
	for want, values := range map[bool][]float64{true: {1, .1}, false: {0, 10}} {
		a := newAxis(Axis{Wide: WideLosses})
		a.include(values...)
		if a.finish(); a.Log != want {
			t.Errorf("%v: logarithmic: %v", values, a.Log)
		}
	}
}
