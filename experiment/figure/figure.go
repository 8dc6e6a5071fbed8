// Package figure draws the figures of reports and papers: critical differences, lines (learning curves, sweeps, cumulative
// scores), distributions, confusion matrices and colour maps. A figure depends only on its data. It is 84 mm wide, for one
// column of a page, and its letters are readable at 60 mm. Series also differ without colours.
//
// Figures with axes are charts (chart.go): a chart has layers of points, and chooses ticks, sizes and positions itself.
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

// SVG writes the figure as an SVG document. If the reader lacks Liberation Sans, texts have another font without serifs, but
// the same width.
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

// printableCanvas removes control characters from texts, because XML cannot have them.
type printableCanvas struct{ vg.CanvasSizer }

// FillString implements vg.Canvas.
func (c printableCanvas) FillString(f font.Face, at vg.Point, text string) {
	c.CanvasSizer.FillString(f, at, printable.Line(text))
}

// svgText matches a text in the output of vgsvg. Its groups are the two parts of the style, the size of the letters and
// the text.
var svgText = regexp.MustCompile(`(<text [^>]*?style="[^"]*?font-family:Liberation Sans)(;[^"]*?font-size:([0-9.]+)px[^"]*")>([^<]*)</text>`)

// anyFont adds other fonts and the width to a text element.
func anyFont(element string) string {
	m := svgText.FindStringSubmatch(element)
	size, err := strconv.ParseFloat(m[3], 64)
	if err != nil || m[4] == "" {
		return element
	}
	width := letters(vg.Length(size), 0, 0).Width(html.UnescapeString(m[4]))
	return fmt.Sprintf(`%s,Arimo,Arial,Helvetica,sans-serif%s textLength="%.5g" lengthAdjust="spacingAndGlyphs">%s</text>`, m[1], m[2], width.Points(), m[4])
}

// PNG writes the figure as a PNG image with 300 dots per inch. Letters that the font lacks are boxes with their numbers.
func (f *Figure) PNG(w io.Writer) error {
	c := vgimg.NewWith(vgimg.UseWH(f.width, f.height), vgimg.UseDPI(dotsPerInch))
	f.draw(draw.New(bitmap{c}))
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(w)
	return err
}

// Element returns the figure as an element of an HTML page: the SVG without the head of the document.
func (f *Figure) Element() (string, error) {
	var b bytes.Buffer
	if err := f.SVG(&b); err != nil {
		return "", err
	}
	at := bytes.Index(b.Bytes(), []byte("<svg"))
	return string(bytes.TrimSpace(b.Bytes()[max(0, at):])), nil
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
