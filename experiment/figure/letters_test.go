package figure

import (
	"bytes"
	"image/png"
	"strings"
	"testing"
)

// TestBoxes: letters that the font lacks have a box with their number in PNG, and are letters in SVG.
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
	if blank, boxes := dark(named("")), dark(f); boxes < blank+400 {
		t.Errorf("%d dark dots with the name, %d without one", boxes, blank)
	}
	var svg bytes.Buffer
	if err := f.SVG(&svg); err != nil || !strings.Contains(svg.String(), "最近邻（三）🎉") {
		t.Errorf("the SVG lacks the name: %v", err)
	}
}

// TestWidthOfLackingLetters: they are as wide as letters of other fonts are.
func TestWidthOfLackingLetters(t *testing.T) {
	style := letters(10, 0, 0)
	if got := style.Width("最近"); got != 20 {
		t.Errorf("width %v, want 20", got)
	}
	face := ownText().Fonts.Lookup(style.Font, 10)
	if got, want := style.Width("other name"), face.Width("other name"); got != want {
		t.Errorf("width %v, want %v", got, want)
	}
	if got, want := style.Width("e\u0301"), style.Width("é"); got != want {
		t.Errorf("width %v, want %v", got, want)
	}
}
