package figure

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
)

// TestCalibration: each curve has a panel with its name, and data that cannot be drawn is refused.
func TestCalibration(t *testing.T) {
	curve := func(name string, x ...float64) Series { return Series{Name: name, X: x, Y: x} }
	k := Calibration{Title: "a title", X: Axis{Name: "predicted"}, Y: Axis{Name: "observed"},
		Curves: []Series{curve("first", .1, .4), curve("second", .2), curve("third", .3, .9)}}
	f, err := k.Figure()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.SVG(&b); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a title", "first", "second", "third", "mean of a bin", "predicted", "observed"} {
		if !strings.Contains(b.String(), ">"+text+"<") {
			t.Errorf("the figure lacks %q", text)
		}
	}
	for _, wrong := range [][]Series{nil, make([]Series, MostCurves+1), {curve("none")}, {curve("NaN", math.NaN())},
		{{Name: "lengths", X: []float64{1}, Y: []float64{1, 2}}}} {
		k.Curves = wrong
		if _, err := k.Figure(); !errors.Is(err, ErrData) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}
