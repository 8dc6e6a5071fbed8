// Package figure draws the pictures of reports and papers: critical differences, lines (learning
// curves, sweeps, cumulative scores), distributions, confusion matrices and colour maps. A
// picture is a function of its data; it is made for one column of a page, 84 mm wide, with letters
// that can still be read at 60 mm, and each series differs from the others without colour.
package figure

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"regexp"
	"strconv"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/coppice-ldl/coppice/internal/printable"
)

// ErrData is what errors about data that cannot be drawn wrap.
var ErrData = errors.New("the figure cannot be drawn")

// columnWidth is the width of all figures; dotsPerInch are those of PNG.
const (
	columnWidth = 84 * vg.Millimeter
	dotsPerInch = 300
)

// Figure is a picture that is ready to be drawn.
type Figure struct {
	width, height vg.Length
	draw          func(draw.Canvas)
}

// SVG writes the figure as a whole SVG document. Its texts are texts, in Liberation Sans where the
// reader has that, else in another font without serifs, and as wide as in Liberation Sans.
func (f *Figure) SVG(w io.Writer) error {
	c := vgsvg.New(f.width, f.height)
	f.draw(draw.New(printableCanvas{c}))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return err
	}
	_, err := io.WriteString(w, svgText.ReplaceAllStringFunc(b.String(), anyFont))
	return err
}

// printableCanvas is a canvas whose texts have no control characters: XML cannot hold them.
type printableCanvas struct{ vg.CanvasSizer }

// FillString implements vg.Canvas.
func (c printableCanvas) FillString(f font.Face, at vg.Point, text string) {
	c.CanvasSizer.FillString(f, at, printable.Line(text))
}

// svgText finds a text of vgsvg, with what stands before its style, the size of its letters and
// what it says.
var svgText = regexp.MustCompile(`(<text [^>]*?style="[^"]*?font-family:Liberation Sans)(;[^"]*?font-size:([0-9.]+)px[^"]*")>([^<]*)</text>`)

// anyFont lets a text be in another font than Liberation Sans and keep its width.
func anyFont(element string) string {
	m := svgText.FindStringSubmatch(element)
	size, err := strconv.ParseFloat(m[3], 64)
	if err != nil || m[4] == "" {
		return element
	}
	width := letters(vg.Length(size), 0, 0).Width(html.UnescapeString(m[4]))
	return fmt.Sprintf(`%s,Arimo,Arial,Helvetica,sans-serif%s textLength="%.5g" lengthAdjust="spacingAndGlyphs">%s</text>`, m[1], m[2], width.Points(), m[4])
}

// PNG writes the figure as a PNG picture of 300 dots an inch. See Boxed.
func (f *Figure) PNG(w io.Writer) error {
	c := vgimg.NewWith(vgimg.UseWH(f.width, f.height), vgimg.UseDPI(dotsPerInch))
	f.draw(draw.New(bitmap{c}))
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(w)
	return err
}

// Element returns the figure as an element of an HTML page: the SVG without what stands before
// it in a document.
func (f *Figure) Element() (string, error) {
	var b bytes.Buffer
	if err := f.SVG(&b); err != nil {
		return "", err
	}
	at := bytes.Index(b.Bytes(), []byte("<svg"))
	return string(bytes.TrimSpace(b.Bytes()[max(0, at):])), nil
}

// finite returns an error that names what, if a value is not finite.
func finite(what string, values []float64) error {
	for i, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s: value %d (counted from 0) is %v, want a finite number: %w", what, i, v, ErrData)
		}
	}
	return nil
}
