package dataset

import (
	"fmt"
	"math"
	"strconv"

	"github.com/coppice-ldl/coppice/internal/num"
)

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
func Ages(n int, seed uint64) Source {
	if n < 0 || n > MaxRows {
		panic(fmt.Sprintf("dataset: a set of ages of %d rows", n))
	}
	info := Info{
		Rows: n, Features: agesSide * agesSide, Labels: agesCount, Shape: Shape{1, agesSide, agesSide}, HasValues: true,
		LabelType: LabelType{Scale: &Scale{True: TrueValue}},
	}
	for k := range agesCount {
		info.LabelNames = append(info.LabelNames, strconv.Itoa(k))
	}
	return &ages{info, num.NewKey(seed, "dataset/ages")}
}

type ages struct {
	info Info
	key  num.Key
}

// Info implements Source.
func (a *ages) Info() Info { return a.info }

// Scan implements Source.
func (a *ages) Scan(f func(*Row) error) error {
	row := Row{Labels: make([]float64, agesCount)}
	for i := range a.info.Rows {
		s := num.NewStream(a.key, uint64(i), 0)
		age := int(s.Uint64n(agesCount))
		row.Number, row.Value = i, float64(age)
		row.Values = drawFace(s, age)
		gaussian(row.Labels, row.Value, agesSigma, 0)
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
