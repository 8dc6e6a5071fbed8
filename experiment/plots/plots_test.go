package plots

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/figure"
)

func textOf(t *testing.T, f *figure.Figure) string {
	t.Helper()
	return f.Element("x")
}

func point(step uint64, training, validation float64) curve.Point {
	return curve.Point{Step: step, Training: training, Validation: validation}
}

// TestCurve: the losses that there are, of one training or of folds, on a logarithmic axis where they are far
// apart.
func TestCurve(t *testing.T) {
	nan := math.NaN()
	points := []curve.Point{point(1, .5, nan), point(2, .4, .45), point(3, .3, nan), point(4, .25, .44)}
	f, err := Curve("title", points, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text := textOf(t, f); !strings.Contains(text, ">training<") || !strings.Contains(text, ">validation<") ||
		!strings.Contains(text, ">loss<") {
		t.Error(text)
	}
	var folds [][]curve.Point
	for range 12 {
		folds = append(folds, points)
	}
	if f, err = Curve("title", nil, folds); err != nil {
		t.Fatal(err)
	}
	if text := textOf(t, f); !strings.Contains(text, ">fold 9<") || strings.Contains(text, ">fold 10<") ||
		!strings.Contains(text, "the first 10 of 12 folds") || !strings.Contains(text, "validation loss") {
		t.Error(text)
	}
	for _, none := range [][]curve.Point{nil, {point(1, nan, nan)}} {
		if _, err := Curve("title", none, nil); !errors.Is(err, figure.ErrData) {
			t.Errorf("error %v", err)
		}
	}
}

// TestChosen: rows from the best to the worst, the first and the last among them.
func TestChosen(t *testing.T) {
	var r Rows
	for _, i := range []int{7, 2, 9, 0, 4, 1, 8, 3, 6, 5, 10} {
		shift := float32(i) * .04
		r.Add(fmt.Sprint("sample ", i), []float32{.5, .5}, []float32{.5 + shift, .5 - shift})
	}
	var names []string
	for _, i := range r.chosen() {
		names = append(names, r.Names[i])
	}
	if got := strings.Join(names, ", "); got != "sample 0, sample 2, sample 4, sample 6, sample 8, sample 10" {
		t.Error(got)
	}
}

// evaluated has predictions of the labels' type.
func evaluated(kind dataset.LabelType, model *measures.Added, labels int) *Evaluated {
	e := &Evaluated{Title: "title", Type: kind, Model: model, Baseline: model, BaselineName: "mean baseline"}
	for i := range 3 {
		truth := make([]float32, labels)
		for j := range truth {
			truth[j] = 1 / float32(labels)
		}
		e.Rows.Add(fmt.Sprint("sample ", i), truth, truth)
	}
	return e
}

// TestFigures: which figures go with which labels, and what their axes say.
func TestFigures(t *testing.T) {
	errs := measures.Errors{Scores: []float64{.1, .5, .9}}
	ages := evaluated(dataset.LabelType{Scale: &dataset.Scale{Low: 20}},
		&measures.Added{Scale: &measures.OnScale{Expected: errs, Median: errs, Mode: errs}}, 30)
	classes := evaluated(dataset.LabelType{Classes: true},
		&measures.Added{Classes: &measures.Classes{Confusion: [][]float64{{1, 2}, {3, 4}}}}, 2)
	numbers := &Evaluated{Title: "title", Type: dataset.LabelType{Scale: &dataset.Scale{}},
		Model: &measures.Added{Number: &measures.OfNumber{Number: errs, Floored: errs}}}
	plain := evaluated(dataset.LabelType{}, nil, 3)
	var p Points
	for y := range 3 {
		for x := range 4 {
			p.Add(float32(x), float32(y), []float32{.2, .3, .5}, []float32{.3, .3, .4})
		}
	}
	plain.Map = p.Map("title", "width", "height")
	for want, e := range map[string]*Evaluated{
		"distributions [number 20 40 true predicted] cumulative-score [expected median mode mean baseline, median]": ages,
		"distributions [class] confusion [true class 3 4]":                                                          classes,
		"cumulative-score [number floored]":                                                                         numbers,
		"distributions [label sample 1: K-L 0] colours [width height true predicted label 3]":                       plain,
	} {
		figures, err := e.Figures()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range figures {
			names = append(names, f.Name)
			_, texts, _ := strings.Cut(want, f.Name+" [")
			texts, _, _ = strings.Cut(texts, "]")
			svg := textOf(t, f.Figure)
			for _, text := range strings.Fields(texts) {
				if !strings.Contains(svg, text) {
					t.Errorf("%s has no %q", f.Name, text)
				}
			}
		}
		kinds := 0
		for _, name := range names {
			if strings.Contains(want, name+" [") {
				kinds++
			}
		}
		if kinds != len(names) || strings.Count(want, "[") != len(names) {
			t.Errorf("figures %v, want %s", names, want)
		}
	}
}

// TestMap: points of a grid in any order, and nothing else.
func TestMap(t *testing.T) {
	grid := func(change func(list []planePoint) []planePoint) *figure.ColourMap {
		var p Points
		for x := range 4 {
			for y := range 3 {
				p.Add(float32(x), float32(-y), []float32{float32(x), float32(y), 0}, []float32{0, float32(x * y), 0})
			}
		}
		p.list = change(p.list)
		return p.Map("", "", "")
	}
	m := grid(func(list []planePoint) []planePoint { return list })
	if m == nil || m.Columns != 4 || m.Lines != 3 || m.FromX != 0 || m.ToX != 3 || m.FromY != -2 || m.ToY != 0 {
		t.Fatalf("%+v", m)
	}
	if d := m.Maps[0].Degrees; d[0] != [3]float64{0, 2, 0} || d[3] != [3]float64{3, 2, 0} ||
		d[11] != [3]float64{3, 0, 0} || m.Maps[1].Degrees[3] != [3]float64{0, 6, 0} {
		t.Errorf("%v", d)
	}
	for what, change := range map[string]func([]planePoint) []planePoint{
		"a point is missing":     func(list []planePoint) []planePoint { return list[1:] },
		"a point is elsewhere":   func(list []planePoint) []planePoint { list[5].x = 9; return list },
		"a point is there twice": func(list []planePoint) []planePoint { list[5] = list[4]; return list },
		"one line":               func(list []planePoint) []planePoint { return []planePoint{list[0], list[3], list[6]} },
		"nothing":                func(list []planePoint) []planePoint { return nil },
		"one place": func(list []planePoint) []planePoint {
			for i := range list {
				list[i] = list[0]
			}
			return list
		},
	} {
		if m := grid(change); m != nil {
			t.Errorf("%s: %+v", what, m)
		}
	}
}
