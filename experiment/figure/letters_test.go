package figure

import (
	"bytes"
	"image/png"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/font"
)

// TestBoxes: letters that the font lacks have a box with their number in PNG, are letters in SVG, and are named.
func TestBoxes(t *testing.T) {
	named := func(name string) *Figure {
		f, err := (&CriticalDifferences{Names: []string{name, "other"}, Ranks: []float64{1, 2}, Difference: .5}).Figure()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	dark := func(f *Figure) (n int) {
		var b bytes.Buffer
		if err := f.PNG(&b); err != nil {
			t.Fatal(err)
		}
		p, err := png.Decode(&b)
		if err != nil {
			t.Fatal(err)
		}
		for x := range p.Bounds().Dx() {
			for y := range p.Bounds().Dy() {
				if r, _, _, _ := p.At(x, y).RGBA(); r < 0x8000 {
					n++
				}
			}
		}
		return n
	}
	f := named("最近邻（三）🎉")
	if got, want := f.Boxed(), []rune("三最近邻（）🎉"); !slices.Equal(got, want) {
		t.Errorf("boxed: %q, want %q", string(got), string(want))
	}
	if blank, boxes := dark(named("")), dark(f); boxes < blank+400 {
		t.Errorf("%d dark dots with the name, %d without one", boxes, blank)
	}
	var svg bytes.Buffer
	if err := f.SVG(&svg); err != nil || !strings.Contains(svg.String(), "最近邻（三）🎉") {
		t.Errorf("the SVG lacks the name: %v", err)
	}
	for _, name := range []string{"Ħamrun ŧ ĸ", "cafe\u0301", "Ελλάς", "a\u200db"} {
		if got := named(name).Boxed(); len(got) > 0 {
			t.Errorf("%q: boxed %q", name, string(got))
		}
	}
}

// TestWidthOfLackingLetters: they are as wide as letters of other fonts are.
func TestWidthOfLackingLetters(t *testing.T) {
	style := letters(10, 0, 0)
	if got := style.Width("最近"); got != 20 {
		t.Errorf("width %v, want 20", got)
	}
	face := font.DefaultCache.Lookup(style.Font, 10)
	if got, want := style.Width("other name"), face.Width("other name"); got != want {
		t.Errorf("width %v, want %v", got, want)
	}
	if got, want := style.Width("e\u0301"), style.Width("é"); got != want {
		t.Errorf("width %v, want %v", got, want)
	}
}

// TestZeroApart: on a logarithmic axis with 0, points have places of their own, and ticks name them.
func TestZeroApart(t *testing.T) {
	values := []float64{0, 1e-4, 1e-2, 1, 100}
	s := zeroScale{1e-4}
	for i := 1; i < len(values); i++ {
		if a, b := s.Normalize(0, 100, values[i-1]), s.Normalize(0, 100, values[i]); b-a < .1 {
			t.Errorf("%v is at %v and %v at %v", values[i-1], a, values[i], b)
		}
	}
	if s.Normalize(0, 100, 0) != 0 || s.Normalize(0, 100, 100) != 1 || s.Normalize(0, 1e-4, 1e-4) != 1 {
		t.Error("the ends of the axis are elsewhere")
	}
	lines := Lines{X: Axis{Name: "l2", Log: true, Zero: true}, Series: []Series{{Name: "a", X: values, Y: values}}}
	if _, err := lines.Figure(); err != nil {
		t.Error(err)
	}
	lines.X.Zero = false
	if _, err := lines.Figure(); err == nil {
		t.Error("a logarithmic axis without a place for 0 has it")
	}
}

// TestWholeTicks: an axis of whole values has whole numbers, also one of a single step.
func TestWholeTicks(t *testing.T) {
	for _, steps := range [][]float64{{1}, {1, 2}, {0, 3}, {1, 400}} {
		lines := Lines{X: Axis{Name: "step"}, Series: []Series{{Name: "a", X: steps, Y: slices.Repeat([]float64{7}, len(steps))}}}
		f, err := lines.Figure()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := f.SVG(&b); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), ">0.2<") || strings.Contains(b.String(), ">0.5<") || strings.Contains(b.String(), ">1.0<") {
			t.Errorf("steps %v: the axis has parts of steps", steps)
		}
	}
	for _, c := range []struct{ least, greatest float64 }{{0, 2}, {0, 1}, {1, 1000}} {
		for _, tick := range (wholeTicks{}).Ticks(c.least, c.greatest) {
			if strings.Contains(tick.Label, ".") {
				t.Errorf("%v to %v: %q", c.least, c.greatest, tick.Label)
			}
		}
	}
}
