// Package figure draws the figures of reports and papers: critical differences, lines (learning curves, sweeps,
// cumulative scores), distributions, confusion matrices and colour maps. A figure depends only on its data. It is 84 mm
// wide, for one column of a page, and its letters are readable at 60 mm. Series also differ without colours.
//
// Figures with axes are charts (chart.go): a chart has layers of points, and chooses ticks, sizes and positions itself.
package figure

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"strings"
	"sync"
	"unicode"

	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/text/unicode/norm"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/coppice-ldl/coppice/internal/printable"
)

// ErrData is wrapped by all errors about data that cannot be drawn.
var ErrData = errors.New("the figure cannot be drawn")

const (
	columnWidth = 84 * vg.Millimeter // width of all figures
	dotsPerInch = 300                // of a PNG
)

// Figure is a figure that can be written as SVG or PNG.
type Figure struct {
	width, height vg.Length
	draw          func(draw.Canvas)
}

// Named is a figure with the name of its file.
type Named struct {
	Name string
	*Figure
}

// PNG writes the figure as a PNG image with 300 dots per inch. Letters that the font lacks are boxes with their
// numbers.
func (f *Figure) PNG(w io.Writer) error {
	c := vgimg.NewWith(vgimg.UseWH(f.width, f.height), vgimg.UseDPI(dotsPerInch))
	f.draw(draw.New(bitmap{c}))
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(w)
	return err
}

// finite returns an error about what if a value is not finite.
func finite(what string, values []float64) error {
	for i, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s: value %d (counted from 0) is %v, want a finite number: %w", what, i, v, ErrData)
		}
	}
	return nil
}

// handler measures and draws all texts of figures. If the font lacks a letter, the width of the letter is the size of
// the font. A PNG shows a box of this width instead, and the reader of an SVG uses another font.
type handler struct{ text.Plain }

// sans is the font of all figures.
var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

// ownText returns the handler of all texts. It reads the font when it is first called.
var ownText = sync.OnceValue(func() handler {
	f, err := opentype.Parse(liberationsansregular.TTF)
	if err != nil {
		panic(fmt.Errorf("the font of figures cannot be read: %w", err))
	}
	return handler{text.Plain{Fonts: font.NewCache(font.Collection{{Font: sans, Face: f}})}}
})

// Box implements text.Handler.
func (h handler) Box(txt string, f font.Font) (width, height, depth vg.Length) {
	face := h.Fonts.Lookup(f, f.Size)
	_, height, depth = h.Plain.Box("", f)
	return widthOf(face, txt), height, depth
}

// Draw implements text.Handler.
func (h handler) Draw(c vg.Canvas, txt string, s text.Style, at vg.Point) {
	txt = norm.NFC.String(strings.ReplaceAll(txt, "\n", " "))
	if txt == "" {
		return
	}
	face := h.Fonts.Lookup(s.Font, s.Font.Size)
	c.SetColor(s.Color)
	if s.Rotation != 0 {
		c.Push()
		defer c.Pop()
		c.Rotate(s.Rotation)
	}
	sin, cos := math.Sincos(s.Rotation)
	x, y := vg.Length(sin)*at.Y+vg.Length(cos)*at.X, vg.Length(cos)*at.Y-vg.Length(sin)*at.X
	y += s.Height(txt)*vg.Length(s.YAlign) - face.Extents().Ascent + s.Font.Size
	c.FillString(face, vg.Point{X: x + vg.Length(s.XAlign)*widthOf(face, txt), Y: y}, txt)
}

// widthOf returns the width of a text, with boxes for missing letters.
func widthOf(face font.Face, txt string) (width vg.Length) {
	for _, p := range pieces(face, norm.NFC.String(txt)) {
		width += p.width
	}
	return width
}

// piece is a text without missing letters, or one missing letter.
type piece struct {
	text  string
	lacks rune // the missing letter, or 0
	width vg.Length
}

// pieces divides a text. Missing marks above letters and joiners between letters are left out.
func pieces(face font.Face, txt string) (all []piece) {
	txt = strings.ToValidUTF8(txt, "\ufffd")
	has := func(text string) {
		if text != "" {
			all = append(all, piece{text: text, width: face.Width(text)})
		}
	}
	from := 0
	for i, r := range txt {
		if glyph, err := face.Face.GlyphIndex(nil, r); err == nil && glyph != 0 {
			continue
		}
		has(txt[from:i])
		from = i + len(string(r))
		if !unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
			all = append(all, piece{text: string(r), lacks: r, width: face.Font.Size})
		}
	}
	has(txt[from:])
	return all
}

// bitmap is a canvas for PNG. It shows a missing letter as a box with the number of the letter, such as 4E2D.
type bitmap struct{ vg.CanvasSizer }

// FillString implements vg.Canvas.
func (c bitmap) FillString(face font.Face, at vg.Point, txt string) {
	for _, p := range pieces(face, printable.Line(txt)) {
		switch {
		case p.lacks == 0:
			c.CanvasSizer.FillString(face, at, p.text)
		case !unicode.IsSpace(p.lacks):
			c.box(face, at, p.lacks)
		}
		at.X += p.width
	}
}

// box draws a box with the hexadecimal digits of a letter, in two lines.
func (c bitmap) box(face font.Face, at vg.Point, letter rune) {
	digits := fmt.Sprintf("%04X", letter)
	if len(digits) > 4 {
		digits = fmt.Sprintf("%06X", letter)
	}
	size := face.Font.Size
	small := ownText().Fonts.Lookup(face.Font, 0.8*size/vg.Length(len(digits)/2))
	low, side := at.Y-0.16*size, 0.92*size
	var frame vg.Path
	frame.Move(vg.Point{X: at.X + 0.04*size, Y: low})
	for _, corner := range []vg.Point{{X: 0.04*size + side, Y: 0}, {X: 0.04*size + side, Y: side},
		{X: 0.04 * size, Y: side}} {
		frame.Line(vg.Point{X: at.X + corner.X, Y: low + corner.Y})
	}
	frame.Close()
	c.SetLineWidth(0.3)
	c.SetLineDash(nil, 0)
	c.Stroke(frame)
	for i, line := range []string{digits[len(digits)/2:], digits[:len(digits)/2]} {
		x := at.X + (size-small.Width(line))/2
		c.CanvasSizer.FillString(small, vg.Point{X: x, Y: low + 0.09*size + vg.Length(i)*0.43*size}, line)
	}
}

// letters returns the style of black text with a size and alignments.
func letters(size vg.Length, x text.XAlignment, y text.YAlignment) text.Style {
	return text.Style{
		Color: color.Black, Font: font.From(sans, size),
		XAlign: x, YAlign: y, Handler: ownText(),
	}
}
