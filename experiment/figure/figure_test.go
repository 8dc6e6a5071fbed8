package figure

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/recorder"
)

var pictures = flag.String("pictures", "", "write every figure of the tests to this folder, to look at")

// figurer is what a figure is made from.
type figurer interface{ Figure() (*Figure, error) }

// scores is a figurer of cumulative scores.
type scores struct{}

func (scores) Figure() (*Figure, error) {
	return CumulativeScores("FG-Net, by persons", []string{"ldlf", "ranking"}, [][]float64{
		{.08, .21, .33, .45, .55, .63, .70, .76, .81, .85, .88}, {0, .14, .27, .38, .48, .58, .66, .74, .79, .82, .85},
	}, nil)
}

// examples are figures of every kind, with many and few, long and short of everything.
func examples() map[string]figurer {
	curve := Lines{Title: "Movie, fold 0", X: Axis{Name: "step"}, Y: Axis{Name: "K-L divergence", Unit: "nats", Log: true}}
	for s, name := range []string{"training", "validation"} {
		line := Series{Name: name}
		for i := range 200 {
			line.X = append(line.X, float64(100*i))
			line.Y = append(line.Y, .08+.01*float64(s)+.2*math.Exp(-float64(i)/30)*(1+.05*math.Sin(float64(i*(s+3)))))
		}
		curve.Series = append(curve.Series, line)
	}
	sweep := Lines{Title: "Depth of the trees", X: Axis{Name: "depth", Unit: "levels"},
		Y: Axis{Name: "K-L divergence", Unit: "nats"}}
	for s := range 7 {
		line := Series{Name: fmt.Sprintf("dataset number %d", s)}
		for depth := range 8 {
			line.X = append(line.X, float64(depth+2))
			line.Y = append(line.Y, .05+.01*float64(s)+.03/float64(depth+1))
			line.Deviation = append(line.Deviation, .002)
		}
		sweep.Series = append(sweep.Series, line)
	}
	papers := Lines{Title: "K-L by trees", X: Axis{Name: "trees", Log: true},
		Y: Axis{Name: "K-L divergence", Unit: "nats"}, Series: []Series{
			{Name: "default", X: []float64{1, 10, 100}, Y: []float64{.09, .08, .075}, Deviation: []float64{.002, .002, .003}},
			{Name: "strategy=rotate", X: []float64{1, 10, 100}, Y: []float64{.092, .085, .082},
				Deviation: []float64{.002, .002, .003}},
			{Name: "published: Section 4.4, default", X: []float64{20, 100}, Y: []float64{.071, .07}, Marks: true},
			{Name: "published: Section 4.4, strategy=rotate", X: []float64{50}, Y: []float64{.0825}, Deviation: []float64{.004},
				Marks: true, Line: 1},
		}}
	flat := Lines{X: Axis{Name: "trees", Log: true}, Y: Axis{Name: "accuracy", Unit: "%"},
		Series: []Series{{Name: "one", X: []float64{1, 10, 100}, Y: []float64{3, 3, 3}}}}
	many := CriticalDifferences{Title: "Sixteen algorithms on eight datasets", Difference: 6.1}
	for i := range 16 {
		many.Names = append(many.Names, fmt.Sprintf("algorithm-%d, preset auto", i))
		many.Ranks = append(many.Ranks, 1.5+float64(i)*.8)
	}
	return map[string]figurer{
		"critical": &CriticalDifferences{Names: []string{"ldlf", "structrf", "sa-bfgs", "rf", "mean"},
			Ranks: []float64{1.5, 1.75, 3.125, 3.875, 4.75}, Difference: 2.16},
		"critical-many": &many,
		"critical-ties": &CriticalDifferences{Title: "Ties", Names: []string{"a", "b", "c", "d", "e", "f"},
			Ranks: []float64{1.2, 3.5, 3.5, 3.5, 4.6, 4.61}, Difference: 1.1},
		"critical-large": &CriticalDifferences{Title: "Two models, three datasets", Names: []string{"first",
			"second, with a name that goes on and on and on"}, Ranks: []float64{1.33, 1.67}, Difference: 1.13},
		"curve": &curve, "sweep": &sweep, "flat": &flat, "papers": &papers, "scores": scores{},
		"distributions": &Distributions{
			Title: "SJAFFE, fold 0", Labels: Axis{Name: "emotion"}, Names: []string{"happy", "sad", "surprise", "anger",
				"disgust", "fear"},
			Rows: []Compared{
				{"sample 31234: K-L 0.00017", []float64{.4, .1, .2, .1, .1, .1}, [][]float64{{.35, .15, .2, .1, .1, .1}}},
				{"sample 17 (K-L 0.03)", []float64{.1, .3, .1, .2, .2, .1}, [][]float64{{.15, .25, .1, .2, .15, .15}}},
				{"sample 208 (K-L 0.1)", []float64{.1, .1, .1, .1, .2, .4}, [][]float64{{.2, .2, .1, .2, .1, .2}}},
			},
		},
		"methods": methods(6, "structrf auto", "ldlf preset=paper trees=50 depth=7 learning_rate=0.001 batch_size=64 "+
			"scaling=range optimizer=adam", "aa-knn"),
		"methods-two":  methods(8, "one", "two"),
		"methods-ages": methods(40, "structrf", "ldlf", "aa-knn"),
		"ages": &Distributions{Labels: Axis{Name: "age", Unit: "years"},
			Rows: []Compared{{"person 4", bump(70, 25, 4), [][]float64{bump(70, 28, 6)}}}},
		"confusion":     &Confusion{Title: "digits", Classes: strings.Split("0123456789", ""), Counts: diagonal(10)},
		"confusion-few": &Confusion{Classes: []string{"background", "leaf", "stem and root"}, Counts: diagonal(3)},
		"confusion-max": &Confusion{Title: "A hundred classes", Classes: numbered(100), Counts: diagonal(100)},
		"colours":       artificial(),
		"calibration": &Calibration{Title: "SJAFFE", X: Axis{Name: "predicted degree"}, Y: Axis{Name: "observed degree"},
			Curves: []Series{{Name: "all labels", X: []float64{.1, .2, .4}, Y: []float64{.12, .21, .33}},
				{Name: "happiness", X: []float64{.1, .3}, Y: []float64{.05, .4}}}},
		"gains": gains(),
		"gains-few": &Gains{X: Axis{Name: "feature 3"}, Thresholds: []float64{.5}, Gains: []float64{0},
			Visited: []bool{false}},
		"visits":     &Visits{Title: "The root of tree 0", Counts: []int{13, 2, 40, 0, 7, 1, 1, 3}},
		"visits-one": &Visits{Counts: []int{0}},
	}
}

// methods are distributions that some methods predict over so many labels.
func methods(labels int, names ...string) *Distributions {
	d := &Distributions{Title: "SJAFFE: test samples", Labels: Axis{Name: "label"}, From: 16, Methods: names}
	for row := range 6 {
		c := Compared{Name: fmt.Sprintf("sample %d", 17*row), True: bump(labels, float64(labels*(row+1)/8),
			float64(labels)/6)}
		for m := range names {
			c.Predicted = append(c.Predicted, bump(labels, float64(labels*(row+2)/9), float64(labels)/float64(4+m)))
		}
		d.Rows = append(d.Rows, c)
	}
	return d
}

// gains has one peak, and visits that are dense there.
func gains() *Gains {
	g := &Gains{Title: "Yeast_alpha, the root of tree 0", X: Axis{Name: "feature 3"}}
	for i := range 2000 {
		x := float64(i) / 2000
		gain := .008*math.Exp(-20*(x-.6)*(x-.6)) + .0002*math.Sin(40*x)*math.Sin(40*x)
		g.Thresholds, g.Gains, g.Visited = append(g.Thresholds, x), append(g.Gains, gain), append(g.Visited, i%400 == 0 ||
			gain > .006 && i%20 == 0)
	}
	return g
}

func numbered(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("c", i))
	}
	return names
}

func diagonal(n int) [][]float64 {
	counts := make([][]float64, n)
	for i := range counts {
		counts[i] = make([]float64, n)
		counts[i][i], counts[i][(i*3+1)%n] = 170+float64(i), 9
	}
	return counts
}

func bump(n int, middle, width float64) (v []float64) {
	for i := range n {
		z := (float64(i) - middle) / width
		v = append(v, math.Exp(-z*z/2)/width/2.5)
	}
	return v
}

func artificial() *ColourMap {
	m := &ColourMap{Title: "Artificial set", X: Axis{Name: "x1"}, Y: Axis{Name: "x2"}, FromX: -1, ToX: 1, FromY: -1,
		ToY: 1, Columns: 40, Lines: 40}
	for i, name := range []string{"true", "ldlf"} {
		one := Map{Name: name}
		for y := range m.Lines {
			for x := range m.Columns {
				a, b := float64(x)/20-1, float64(y)/20-1
				one.Degrees = append(one.Degrees, [3]float64{.3 + .2*a*b, .3 + .1*math.Sin(3*(a+b)) + .02*float64(i), .4 - .2*a})
			}
		}
		m.Maps = append(m.Maps, one)
	}
	return m
}

// TestFigures: every kind gives a well-formed SVG whose texts have widths, and the same bytes each
// time.
func TestFigures(t *testing.T) {
	for name, example := range examples() {
		f, err := example.Figure()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		svg := drawn(t, f.SVG)
		if !bytes.Equal(svg, drawn(t, f.SVG)) {
			t.Errorf("%s: drawn twice, it differs", name)
		}
		d := xml.NewDecoder(bytes.NewReader(svg))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
		}
		if n := bytes.Count(svg, []byte("<text")); n == 0 || n != bytes.Count(svg, []byte("textLength")) {
			t.Errorf("%s: of %d texts some have no width of their own", name, n)
		}
		if bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("<script")) ||
			bytes.Contains(svg, []byte("style=")) || bytes.Count(svg, []byte(fontFamily)) != 1 ||
			bytes.Contains(svg, []byte("class=")) {
			t.Errorf("%s: the SVG has a number that is none, a script, a style, or one font alone", name)
		}
		if *pictures != "" {
			for ext, b := range map[string][]byte{".svg": svg, ".png": drawn(t, f.PNG)} {
				if err := os.WriteFile(filepath.Join(*pictures, name+ext), b, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func drawn(t *testing.T, draw func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := draw(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPNG: figures of each way of drawing are PNG pictures of the width of a column, and the same
// bytes each time.
func TestPNG(t *testing.T) {
	for _, name := range []string{"critical", "flat", "colours"} {
		f, err := examples()[name].Figure()
		if err != nil {
			t.Fatal(err)
		}
		picture := drawn(t, f.PNG)
		if name == "critical" && !bytes.Equal(picture, drawn(t, f.PNG)) {
			t.Errorf("%s: drawn twice, it differs", name)
		}
		img, err := png.Decode(bytes.NewReader(picture))
		if err != nil || img.Bounds().Dx() != 992 {
			t.Errorf("%s: a PNG of %v, %v", name, img.Bounds(), err)
		}
	}
}

// TestTexts: names, axes and units are texts of the SVG.
func TestTexts(t *testing.T) {
	for name, wants := range map[string][]string{
		"critical":  {"average rank (1 is best)", "critical difference 2.16", ">ldlf<", ">1.50<"},
		"curve":     {"K-L divergence (nats)", ">step<", ">validation<"},
		"scores":    {"largest error (label units)", "samples (%)"},
		"ages":      {"age (years)", ">degree<", ">predicted<"},
		"confusion": {"true class", "predicted class", ">179<"},
		"colours":   {">x1<", ">label 3<", ">ldlf<"},
		"gains":     {">feature 3<", "gain (nats)", ">visited by the adaptive step<"},
		"visits":    {">feature<", ">thresholds visited<"},
	} {
		f, err := examples()[name].Figure()
		if err != nil {
			t.Fatal(err)
		}
		text := f.Element(`"quoted"`)
		if !strings.HasPrefix(text, `<svg class="figure" role="img" aria-label="&#34;quoted&#34;" width="`) ||
			strings.Contains(text, "style") || strings.Contains(text, "family") {
			t.Errorf("%s: %.90s", name, text)
		}
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the SVG has no %q", name, want)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	nan := math.NaN()
	for i, bad := range []figurer{
		&Lines{},
		&Lines{Series: make([]Series, mostSeries+1)},
		&Lines{Series: []Series{{X: []float64{1}, Y: []float64{1, 2}}}},
		&Lines{Series: []Series{{X: []float64{1}, Y: []float64{nan}}}},
		&Lines{Series: []Series{{X: []float64{1}, Y: []float64{1}, Deviation: []float64{}}}},
		&Lines{X: Axis{Log: true}, Series: []Series{{X: []float64{0}, Y: []float64{1}}}},
		&Lines{Y: Axis{Log: true}, Series: []Series{{X: []float64{1}, Y: []float64{1}, Deviation: []float64{2}}}},
		&CriticalDifferences{Names: []string{"a"}, Ranks: []float64{1}, Difference: 1},
		&CriticalDifferences{Names: []string{"a", "b"}, Ranks: []float64{1, nan}, Difference: 1},
		&CriticalDifferences{Names: []string{"a", "b"}, Ranks: []float64{1, 2}},
		&Distributions{},
		&Distributions{Rows: []Compared{{"a", []float64{1}, nil}}},
		&Distributions{Rows: []Compared{{"a", []float64{1}, [][]float64{{nan}}}}},
		&Distributions{Names: []string{"x", "y"}, Rows: []Compared{{"a", []float64{1}, [][]float64{{1}}}}},
		&Distributions{Rows: make([]Compared, mostPanels+1)},
		&Distributions{Rows: []Compared{{"a", []float64{1}, [][]float64{{1, 2}}}}},
		&Distributions{Methods: []string{"x", "y"}, Rows: []Compared{{"a", []float64{1}, [][]float64{{1}}}}},
		&Distributions{Methods: make([]string, mostMethods+1),
			Rows: []Compared{{"a", []float64{1}, make([][]float64, mostMethods+1)}}},
		&Confusion{},
		&Confusion{Classes: []string{"a", "b"}, Counts: [][]float64{{1, 2}, {1}}},
		&ColourMap{},
		&Gains{},
		&Gains{Thresholds: []float64{1}, Gains: []float64{1, 2}, Visited: []bool{true}},
		&Gains{Thresholds: []float64{1}, Gains: []float64{nan}, Visited: []bool{true}},
		&Visits{},
		&Visits{Counts: []int{-1}},
		&ColourMap{FromX: 0, ToX: 1, FromY: 0, ToY: 1, Columns: 2, Lines: 2, Maps: []Map{{Name: "a"}}},
	} {
		if _, err := bad.Figure(); !errors.Is(err, ErrData) {
			t.Errorf("%d: error %v", i, err)
		}
	}
	if _, err := CumulativeScores("", []string{"a"}, nil, nil); !errors.Is(err, ErrData) {
		t.Errorf("error %v", err)
	}
}

// TestPDF: a figure is one page of its size, whose letters are shapes. Equal figures are equal files.
func TestPDF(t *testing.T) {
	mediaBox := regexp.MustCompile(`/MediaBox \[0 0 ([0-9.]+) ([0-9.]+)\]`)
	for name, d := range examples() {
		var files [6]bytes.Buffer
		f, err := d.Figure()
		if err != nil {
			t.Fatal(name, err)
		}
		for i := range files {
			if err := f.PDF(&files[i]); err != nil {
				t.Fatal(name, err)
			}
		}
		text := files[0].String()
		if slices.ContainsFunc(files[1:], func(b bytes.Buffer) bool { return b.String() != text }) {
			t.Errorf("%s: two files of a figure differ", name)
		}
		box := mediaBox.FindStringSubmatch(text)
		if !strings.HasPrefix(text, "%PDF-") || strings.Count(text, "/Type /Page\n") != 1 ||
			strings.Contains(text, "/FontDescriptor") || box == nil || box[1] != fmt.Sprintf("%.2f", f.width.Points()) {
			t.Errorf("%s: the page is %q, the width %.2f", name, box, f.width.Points())
		}
	}
}

// TestPictures: a PDF gets pictures from below, and no two of the same width.
func TestPictures(t *testing.T) {
	recorded := new(recorder.Canvas)
	c := shapes{sized{recorded}, make(map[int]bool)}
	picture := image.NewGray(image.Rect(3, 5, 5, 7))
	copy(picture.Pix, []byte{10, 20, 30, 40})
	for range 2 {
		c.DrawImage(vg.Rectangle{Max: vg.Point{X: 10, Y: 10}}, picture)
	}
	for i, want := range [][]byte{{30, 40, 10, 20}, {30, 40, 0, 10, 20, 0}} {
		drawn := recorded.Actions[i].(*recorder.DrawImage)
		var got []byte
		for at := 0; at < len(drawn.Image.(*image.NRGBA).Pix); at += 4 {
			got = append(got, drawn.Image.(*image.NRGBA).Pix[at])
		}
		if !bytes.Equal(got, want) || drawn.Rectangle.Max.X != vg.Length(5*len(want)/2) {
			t.Errorf("picture %d: %v to %v", i, got, drawn.Rectangle)
		}
	}
}

// TestRenderedPDF: a reader of PDF shows what the PNG has.
func TestRenderedPDF(t *testing.T) {
	program, err := exec.LookPath("pdftoppm")
	if err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"colours", "critical-ties"} { // others take seconds
		f, err := examples()[name].Figure()
		if err != nil {
			t.Fatal(name, err)
		}
		var page, want bytes.Buffer
		if err := cmp.Or(f.PDF(&page), f.PNG(&want)); err != nil {
			t.Fatal(name, err)
		}
		cmd := exec.CommandContext(t.Context(), program, "-png", "-singlefile", "-r", fmt.Sprint(dotsPerInch), "-")
		cmd.Stdin = &page
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(name, err)
		}
		a, errA := png.Decode(bytes.NewReader(out))
		b, errB := png.Decode(&want)
		if errA != nil || errB != nil {
			t.Fatal(name, errA, errB)
		}
		far, size := 0.0, b.Bounds().Size()
		for y := range size.Y {
			for x := range size.X {
				far += math.Abs(float64(color.GrayModel.Convert(a.At(x, y)).(color.Gray).Y)-
					float64(color.GrayModel.Convert(b.At(x, y)).(color.Gray).Y)) / float64(size.X*size.Y)
			}
		}
		if t.Logf("%s: %.2f of 255", name, far); !(far < 3) {
			t.Errorf("%s: the shades differ by %.1f of 255 on average", name, far)
		}
	}
}

// TestShapes: the outline of each letter is where the font's width puts it, and is as high as the letter.
func TestShapes(t *testing.T) {
	face := ownText().Fonts.Lookup(sans, 100)
	recorded := &recorder.Canvas{}
	shapes{sized{recorded}, nil}.FillString(face, vg.Point{X: 10, Y: 20}, "HH")
	fill, ok := recorded.Actions[0].(*recorder.Fill)
	if !ok || len(recorded.Actions) != 1 {
		t.Fatalf("%v", recorded.Actions)
	}
	low, high, left, right := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, p := range fill.Path {
		if p.Type == vg.CloseComp {
			continue
		}
		low, high = min(low, float64(p.Pos.Y)), max(high, float64(p.Pos.Y))
		left, right = min(left, float64(p.Pos.X)), max(right, float64(p.Pos.X))
	}
	width := float64(face.Width("HH"))
	if low != 20 || high < 20+65 || high > 20+75 || left < 10 || left > 10+15 || right > 10+width || right < 10+width-15 {
		t.Errorf("from %v, %v to %v, %v; the text is %v wide", left, low, right, high, width)
	}
}

// sized is a canvas with a size.
type sized struct{ vg.Canvas }

func (sized) Size() (w, h vg.Length) { return 100, 100 }

// TestTies: the lines of models with equal ranks are apart, in the order of their names, and around their rank.
func TestTies(t *testing.T) {
	g := &diagram{CriticalDifferences: &CriticalDifferences{Ranks: []float64{1, 2, 2, 2, 4, 4.01}}}
	at := scale{from: 100, unit: 30}
	var x []vg.Length
	for i, by := range g.apart(at) {
		x = append(x, at.at(g.Ranks[i])+by)
	}
	for i := 1; i < len(x); i++ {
		if x[i]-x[i-1] < tieGap-1e-9 {
			t.Errorf("the lines %d and %d are at %v and %v", i-1, i, x[i-1], x[i])
		}
	}
	if x[0] != 100 || math.Abs(float64(x[2]-130)) > 1e-9 || math.Abs(float64(x[4]+x[5]-2*at.at(4.005))) > 1e-9 {
		t.Errorf("the lines are at %v", x)
	}
}

// TestStylesOf: a series has one style in all figures. No two series of a figure have the same.
func TestStylesOf(t *testing.T) {
	all := StylesOf([]int{0, 1, 2, 3, 4}, true)
	for _, truth := range []bool{false, true} {
		for place := range all {
			if got := StylesOf([]int{place}, truth)[0]; got != all[place] || got == 1 {
				t.Errorf("place %d alone has style %d, with others %d", place, got, all[place])
			}
			if got := StylesOf([]int{4, place}, truth); place != 4 && (got[0] != all[4] || got[1] != all[place]) {
				t.Errorf("places 4 and %d have the styles %v", place, got)
			}
		}
	}
	for _, places := range [][]int{{7, 1, 13}, {0, 1, 2, 3, 4, 5}, {6, 0}} {
		styles := StylesOf(places, len(places) < 6)
		if seen := slices.Compact(slices.Sorted(slices.Values(styles))); len(seen) != len(places) ||
			len(places) < 6 && slices.Contains(styles, 1) {
			t.Errorf("places %v have the styles %v", places, styles)
		}
	}
	if got := StylesOf([]int{7, 1}, false); got[1] != all[1] {
		t.Errorf("the first place of two with the same colour has style %d, want %d", got[1], all[1])
	}
	if got := StylesOf(make([]int, 40), true); len(got) != 40 {
		t.Errorf("styles %v", got)
	}
}
