// Package generate makes sources of rows by a formula and a seed: the artificial dataset of Geng 2016, sparse and
// dense data of any size, and images of faces with ages.
package generate

import (
	"fmt"
	"math"
	"strconv"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Artificial returns the artificial set of Geng 2016 ("Label Distribution
// Learning", section 5.1) with n rows: three features x uniform in [-1, 1], and
// three labels d = ψ/Σψ where
//
//	t_i = x_i + 0.5 x_i² + 0.2 x_i³ + 1
//	ψ1 = (w1·t)²              w1 = (4, 2, 1)
//	ψ2 = (w2·t + 0.01 ψ1)²    w2 = (1, 2, 4)
//	ψ3 = (w3·t + 0.01 ψ2)²    w3 = (1, 4, 2)
//
// Rows depend on seed and their number only. The labels are those of the
// features as rounded to float32. A negative n panics.
func Artificial(n int, seed uint64) dataset.Source {
	if n < 0 || n > dataset.MaxRows {
		panic(fmt.Sprintf("dataset: an artificial set of %d rows", n))
	}
	return &artificial{n, num.NewKey(seed, "dataset/artificial")}
}

type artificial struct {
	rows int
	key  num.Key
}

// Info implements Source.
func (a *artificial) Info() dataset.Info { return dataset.Info{Rows: a.rows, Features: 3, Labels: 3} }

// Scan implements Source.
func (a *artificial) Scan(f func(*dataset.Row) error) error {
	row := dataset.Row{Values: make([]float64, 3), Labels: make([]float64, 3)}
	for i := range a.rows {
		row.Number = i
		s := num.NewStream(a.key, uint64(i), 0)
		for j := range row.Values {
			row.Values[j] = float64(float32(float64(2*s.Float64()) - 1))
		}
		artificialLabels(row.Labels, row.Values)
		if err := f(&row); err != nil {
			return err
		}
	}
	return nil
}

// ArtificialGrid returns the rows on which Geng 2016 shows models of the artificial set: n × n
// points, n at least 2, whose first two features are a grid over [-1, 1], the first one fastest, and whose third
// is sin(π (x1 + x2)). The paper's n is 51. Labels are as in Artificial.
func ArtificialGrid(n int) dataset.Source {
	if n < 2 || n > dataset.MaxRows/n {
		panic(fmt.Sprintf("dataset: an artificial grid of %d x %d rows", n, n))
	}
	return artificialGrid(n)
}

type artificialGrid int

// Info implements Source.
func (n artificialGrid) Info() dataset.Info {
	return dataset.Info{Rows: int(n * n), Features: 3, Labels: 3}
}

// Scan implements Source.
func (n artificialGrid) Scan(f func(*dataset.Row) error) error {
	row := dataset.Row{Values: make([]float64, 3), Labels: make([]float64, 3)}
	at := func(i int) float64 { return float64(float32(float64(2*float64(i))/float64(n-1) - 1)) }
	for i := range int(n * n) {
		row.Number = i
		row.Values[0], row.Values[1] = at(i%int(n)), at(i/int(n))
		sin, _ := num.SinCos2Pi(float64(row.Values[0]+row.Values[1]) / 2)
		row.Values[2] = float64(float32(sin))
		artificialLabels(row.Labels, row.Values)
		if err := f(&row); err != nil {
			return err
		}
	}
	return nil
}

var artificialWeights = [3][3]float64{{4, 2, 1}, {1, 2, 4}, {1, 4, 2}}

func artificialLabels(dst, x []float64) {
	var t [3]float64
	for i, v := range x {
		square := float64(v * v)
		t[i] = float64(v+float64(0.5*square)) + float64(0.2*float64(square*v)) + 1
	}
	last, sum := 0.0, 0.0
	for k, w := range artificialWeights {
		dot := float64(w[0]*t[0]) + float64(w[1]*t[1]) + float64(w[2]*t[2])
		dot += float64(0.01 * last)
		last = float64(dot * dot)
		dst[k] = last
		sum += last
	}
	for k := range dst {
		dst[k] /= sum
	}
}

// Options says what New makes.
type Options struct {
	Rows, Features, Labels int
	Density                float64 // share of features that are not 0, above 0 and up to 1
	Seed                   uint64
}

// generateGroups is the number of hidden values that decide the labels.
const generateGroups = 8

// New returns a data set of any size, for load. Each row has
// max(1, ⌊Density·Features⌋) features that are not 0, standard normal, spread
// evenly over the columns. Feature j belongs to group j mod 8 and has a weight of
// ±1; t is the sum by group, divided by the root of the number of terms, and the
// labels are d = ψ/Σψ with ψ_k = (w_k·t + b_k)² + 0.01, w_k standard normal and
// b_k normal around 1: linear functions of the features tell them apart. Rows
// depend on the options (but Rows) and their number only.
func New(o Options) (dataset.Source, error) {
	info := dataset.Info{Rows: o.Rows, Features: o.Features, Labels: o.Labels}
	if err := info.Check(); err != nil {
		return nil, err
	}
	if o.Rows < 1 || o.Labels < 1 {
		return nil, fmt.Errorf("got %d samples and %d labels, want at least one of each", o.Rows, o.Labels)
	}
	if !(o.Density > 0 && o.Density <= 1) {
		return nil, fmt.Errorf("density %v: want a number above 0 and up to 1", o.Density)
	}
	g := &generated{
		info: info, key: num.NewKey(o.Seed, "dataset/generate"),
		perRow: max(1, int(math.Floor(o.Density*float64(o.Features)))),
		weight: make([][generateGroups]float64, o.Labels), bias: make([]float64, o.Labels),
	}
	g.info.Rare = g.perRow < o.Features/rareFeatures
	s := num.NewStream(num.NewKey(o.Seed, "dataset/generate/weights"), 0, 0)
	for k := range g.weight {
		for j := range g.weight[k] {
			g.weight[k][j] = s.Normal()
		}
		g.bias[k] = 1 + s.Normal()
	}
	return g, nil
}

// rareFeatures is the number of features, for each that is not 0, above which files are packed less: DEFLATE
// makes one byte of up to 1,032, and some six bytes of a number.
const rareFeatures = 200

type generated struct {
	info   dataset.Info
	key    num.Key
	perRow int
	weight [][generateGroups]float64 // by label
	bias   []float64
}

// Info implements Source.
func (g *generated) Info() dataset.Info { return g.info }

// Scan implements Source.
func (g *generated) Scan(f func(*dataset.Row) error) error {
	row := dataset.Row{Values: make([]float64, g.perRow), Labels: make([]float64, g.info.Labels)}
	if row.Sparse = g.perRow < g.info.Features; row.Sparse {
		row.Columns = make([]uint32, g.perRow)
	}
	for i := range g.info.Rows {
		row.Number = i
		g.fill(&row)
		if err := f(&row); err != nil {
			return err
		}
	}
	return nil
}

// fill draws a row: one column in each of perRow equal stretches.
func (g *generated) fill(row *dataset.Row) {
	s := num.NewStream(g.key, uint64(row.Number), 0)
	var t [generateGroups]float64
	for i := range row.Values {
		column := g.info.Features * i / g.perRow
		if row.Sparse {
			column += int(s.Uint64n(uint64(g.info.Features*(i+1)/g.perRow - column)))
			row.Columns[i] = uint32(column)
		}
		v := float64(float32(s.Normal()))
		row.Values[i] = v
		if column/generateGroups%2 == 1 {
			v = -v
		}
		t[column%generateGroups] += v
	}
	scale := math.Sqrt(generateGroups / float64(g.perRow))
	for j := range t {
		t[j] *= scale
	}
	sum := 0.0
	for k := range row.Labels {
		dot := g.bias[k]
		for j, v := range &t {
			dot += float64(g.weight[k][j] * v)
		}
		row.Labels[k] = float64(dot*dot) + 0.01
		sum += row.Labels[k]
	}
	for k := range row.Labels {
		row.Labels[k] /= sum
	}
}

// The set of ages.
const (
	agesSide  = 32
	agesCount = 70 // 0 to 69
	agesSigma = 3
	// AgesRows is the number of rows that the set has where nothing else is said.
	AgesRows = 2000
)

// Ages returns n grey images of 32 x 32 pixels that show an age, from 0 to 69, in their lines and in the
// tone of their upper third; the label distribution is N(age, 3²) at the whole numbers from 0 to 69,
// divided by its sum, and the age is the exact number. A row depends on seed and its number only. In what
// follows a ± b is uniform on [a - b, a + b].
//
//	background   .3 ± .2
//	ellipse      half axes 10 ± 2 and 13 ± 2, centre within ± 2 of the middle, tone .6 ± .1
//	lines        ⌊age/7⌋ of length 4.5 ± 1.5 in the ellipse at any place and angle, each .15 darker
//	upper third  of the ellipse: .2 + .6 age/69 ± .15, over the lines
//	noise        N(0, .1²) on each pixel; then all is multiplied by 1 ± .3
//
// An n below 0 panics.
func Ages(n int, seed uint64) dataset.Source {
	if n < 0 || n > dataset.MaxRows {
		panic(fmt.Sprintf("dataset: a set of ages of %d rows", n))
	}
	info := dataset.Info{
		Rows: n, Features: agesSide * agesSide, Labels: agesCount, Shape: dataset.Shape{Channels: 1, Height: agesSide,
			Width: agesSide}, HasValues: true,
		LabelType: dataset.LabelType{Scale: &dataset.Scale{True: dataset.TrueValue}},
	}
	for k := range agesCount {
		info.LabelNames = append(info.LabelNames, strconv.Itoa(k))
	}
	return &ages{info, num.NewKey(seed, "dataset/ages")}
}

type ages struct {
	info dataset.Info
	key  num.Key
}

// Info implements Source.
func (a *ages) Info() dataset.Info { return a.info }

// Scan implements Source.
func (a *ages) Scan(f func(*dataset.Row) error) error {
	row := dataset.Row{Labels: make([]float64, agesCount)}
	for i := range a.info.Rows {
		s := num.NewStream(a.key, uint64(i), 0)
		age := int(s.Uint64n(agesCount))
		row.Number, row.Value = i, float64(age)
		row.Values = drawFace(s, age)
		dataset.Gaussian(row.Labels, row.Value, agesSigma, 0)
		if err := f(&row); err != nil {
			return err
		}
	}
	return nil
}

// face is an image of an ellipse while it is drawn.
type face struct {
	pixels []float64
	cx, cy float64 // the ellipse's centre, in pixels from the middle of the first one
	a, b   float64 // its half axes along x and y
}

// around returns a number that is uniform on [middle - by, middle + by].
func around(s *num.Stream, middle, by float64) float64 {
	return middle + float64(by*(float64(2*s.Float64())-1))
}

// drawFace draws the image of an age.
func drawFace(s *num.Stream, age int) []float64 {
	const middle = (agesSide - 1) / 2.0
	f := face{pixels: make([]float64, agesSide*agesSide)}
	background := around(s, 0.3, 0.2)
	f.a, f.b = around(s, 10, 2), around(s, 13, 2)
	f.cx, f.cy = around(s, middle, 2), around(s, middle, 2)
	tone := around(s, 0.6, 0.1)
	hair := around(s, 0.2+float64(0.6*float64(age)/(agesCount-1)), 0.15)
	contrast := around(s, 1, 0.3)
	f.fill(func(float64, float64) bool { return true }, background)
	f.fill(f.inside, tone)
	for range age / 7 {
		f.line(s)
	}
	f.fill(func(x, y float64) bool { return f.inside(x, y) && y < f.cy-f.b/3 }, hair)
	for i, v := range f.pixels {
		f.pixels[i] = float64(contrast * (v + float64(0.1*s.Normal())))
	}
	return f.pixels
}

// inside tells whether a point is in the ellipse.
func (f *face) inside(x, y float64) bool {
	dx, dy := (x-f.cx)/f.a, (y-f.cy)/f.b
	return float64(dx*dx)+float64(dy*dy) <= 1
}

// fill gives the pixels of a part of the image a tone.
func (f *face) fill(part func(x, y float64) bool, tone float64) {
	for i := range f.pixels {
		if part(float64(i%agesSide), float64(i/agesSide)) {
			f.pixels[i] = tone
		}
	}
}

// line darkens the pixels of the ellipse on a line: of any angle, with its middle uniform over
// the ellipse.
func (f *face) line(s *num.Stream) {
	radius, length := math.Sqrt(s.Float64()), around(s, 4.5, 1.5)
	sin, cos := num.SinCos2Pi(s.Float64())
	x, y := f.cx+float64(f.a*float64(radius*cos)), f.cy+float64(f.b*float64(radius*sin))
	sin, cos = num.SinCos2Pi(s.Float64())
	seen := map[int]bool{}
	const steps = 16
	for i := range steps + 1 {
		along := float64(length * (float64(float64(i)/steps) - 0.5))
		px, py := math.Floor(x+float64(along*cos)+0.5), math.Floor(y+float64(along*sin)+0.5)
		at := int(py)*agesSide + int(px)
		if px >= 0 && px < agesSide && py >= 0 && py < agesSide && f.inside(px, py) && !seen[at] {
			seen[at] = true
			f.pixels[at] -= 0.15
		}
	}
}
