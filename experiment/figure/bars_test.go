package figure

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// bars with an error bar beyond zero, and a long name.
func exampleBars() *Bars {
	return &Bars{Title: "structrf: importance", X: Axis{Name: "rise of the K-L divergence", Unit: "nats"},
		Names:  []string{"feature 0", "a very long name of a feature that does not fit", "温度"},
		Series: []BarSeries{{Values: []float64{0.3, -0.01, 0.02}, Deviation: []float64{0.02, 0.03, 0}}}}
}

func exampleParts() *Bars {
	return &Bars{Title: "mean |SHAP value|", X: Axis{Name: "mean |SHAP value|"}, Names: []string{"a", "b"},
		Series: []BarSeries{{Name: "sad", Values: []float64{1, 2}}, {Name: "happy", Values: []float64{0, 3}}}}
}

func exampleSwarm() *Swarm {
	return &Swarm{Title: "sad", X: Axis{Name: "SHAP value"}, Names: []string{"a", "b"},
		Values: [][]float64{{-1, 0, 1, 1, 1}, {0, 0, 0, 0, 0.5}}, Shades: [][]float64{{0, 0.5, 1, 1, 1}, {0, 0, 0, 0, 1}}}
}

// TestBars: each part of a bar begins where the part before it ends, and its length is its value.
func TestBars(t *testing.T) {
	f, err := exampleParts().Figure()
	if err != nil {
		t.Fatal(err)
	}
	var boxes []float64 // left and right ends, in the order of drawing
	r := record(f)
	for _, path := range r.fills {
		if len(path) >= 5 {
			low, high := math.Inf(1), math.Inf(-1)
			for _, p := range path[:len(path)-1] { // without its end
				low, high = min(low, float64(p.Pos.X)), max(high, float64(p.Pos.X))
			}
			boxes = append(boxes, low, high)
		}
	}
	boxes = boxes[4:] // of the legend
	unit := boxes[3] - boxes[2]
	unit /= 2 // the second bar begins with 2
	for i, want := range []float64{0, 1, 0, 2, 1, 1, 2, 5} {
		if got := (boxes[i] - boxes[0]) / unit; math.Abs(got-want) > 1e-6 {
			t.Errorf("end %d is at %v, want %v: %v", i, got, want, boxes)
		}
	}
	if !strings.Contains(strings.Join(r.texts, " "), "happy") {
		t.Errorf("texts: %q", r.texts)
	}
}

// TestRandomSwarms: texts are apart and points are in the figure, whatever the values are.
func TestRandomSwarms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &Swarm{Title: "t", X: Axis{Name: "SHAP value"}}
		for range rapid.IntRange(1, 5).Draw(t, "rows") {
			n := rapid.IntRange(1, 40).Draw(t, "samples")
			s.Names = append(s.Names, rapid.StringN(0, 40, -1).Draw(t, "name"))
			s.Values = append(s.Values, rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), n, n).Draw(t, "values"))
			s.Shades = append(s.Shades, rapid.SliceOfN(rapid.Float64Range(0, 1), n, n).Draw(t, "shades"))
		}
		f, err := s.Figure()
		if err != nil {
			t.Fatal(err)
		}
		r := record(f)
		r.check(t)
		width, height := r.Size()
		for _, path := range r.fills {
			for _, p := range path[:len(path)-1] { // without its end
				if p.Pos.X < 0 || p.Pos.X > width || p.Pos.Y < 0 || p.Pos.Y > height {
					t.Fatalf("a point leaves the figure: %v", p.Pos)
				}
			}
		}
	})
}

// TestEqualFigures: equal data give equal files, and texts do not overlap.
func TestEqualFigures(t *testing.T) {
	draw := func() string {
		var b bytes.Buffer
		for _, f := range []figurer{exampleBars(), exampleParts(), exampleSwarm()} {
			drawn, err := f.Figure()
			if err != nil {
				t.Fatal(err)
			}
			record(drawn).check(t)
			if err := errors.Join(drawn.SVG(&b), drawn.PNG(&b), drawn.PDF(&b)); err != nil {
				t.Fatal(err)
			}
		}
		return b.String()
	}
	if first, second := draw(), draw(); first != second {
		t.Error("two drawings differ")
	}
}

// TestWrongBars: data that cannot be drawn are refused.
func TestWrongBars(t *testing.T) {
	for name, f := range map[string]figurer{
		"no bars":         &Bars{Series: []BarSeries{{}}},
		"no series":       &Bars{Names: []string{"a"}},
		"lengths":         &Bars{Names: []string{"a"}, Series: []BarSeries{{Values: []float64{1, 2}}}},
		"deviations":      &Bars{Names: []string{"a"}, Series: []BarSeries{{Values: []float64{1}, Deviation: []float64{}}}},
		"not finite":      &Bars{Names: []string{"a"}, Series: []BarSeries{{Values: []float64{math.NaN()}}}},
		"negative parts":  &Bars{Names: []string{"a"}, Series: []BarSeries{{Values: []float64{-1}}, {Values: []float64{1}}}},
		"no rows":         &Swarm{},
		"no points":       &Swarm{Names: []string{"a"}, Values: [][]float64{{}}, Shades: [][]float64{{}}},
		"shades":          &Swarm{Names: []string{"a"}, Values: [][]float64{{1}}, Shades: [][]float64{{}}},
		"infinite points": &Swarm{Names: []string{"a"}, Values: [][]float64{{math.Inf(1)}}, Shades: [][]float64{{1}}},
	} {
		if _, err := f.Figure(); !errors.Is(err, ErrData) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
