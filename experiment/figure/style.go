package figure

import (
	"fmt"
	"html"
	"image/color"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/coppice-ldl/coppice/experiment/figure/svg"
	"github.com/coppice-ldl/coppice/internal/printable"
)

// fontFamily lists the fonts of an SVG document. They have the same width as Liberation Sans, if a text has a width.
const fontFamily = "Liberation Sans,Arimo,Arial,Helvetica,sans-serif"

// SVG writes the figure as an SVG document. If the reader lacks Liberation Sans, texts have another font without
// serifs, but the same width.
func (f *Figure) SVG(w io.Writer) error {
	_, err := fmt.Fprintf(w, "<?xml version=\"1.0\"?>\n%s\n", f.svg(`xmlns="http://www.w3.org/2000/svg" `+
		`xmlns:xlink="http://www.w3.org/1999/xlink" font-family="`+fontFamily+`"`, nil))
	return err
}

// Element returns the figure as an element of an HTML page. Its colours and fonts are classes, which Style defines.
// Programs read its name to people who cannot see the figure.
func (f *Figure) Element(name string) string {
	return f.svg(`class="figure" role="img" aria-label="`+html.EscapeString(printable.Line(name))+`"`, classOf)
}

func (f *Figure) svg(attributes string, class func(color.Color, bool) string) string {
	c := svg.New(svg.Options{Width: f.width, Height: f.height, Class: class,
		TextWidth: func(face font.Face, text string) vg.Length { return letters(face.Font.Size, 0, 0).Width(text) }})
	f.draw(draw.New(c))
	return c.Element(attributes)
}

// classOf returns the class of a colour in Style, or an empty text if no class has the colour.
func classOf(c color.Color, line bool) (class string) {
	r, g, b, _ := c.RGBA()
	series := slices.IndexFunc(seriesColours, func(s color.Color) bool {
		r2, g2, b2, _ := s.RGBA()
		return r == r2 && g == g2 && b == b2
	})
	switch {
	case series > 0:
		class = fmt.Sprint("f-series-", series)
	case r != g || g != b:
		return ""
	case r == 0xFFFF:
		class = "f-paper"
	case r > 0: // a mixture of black and white
		class = fmt.Sprint("f-", min(95, max(5, 5*math.Round(float64(0xFFFF-r)/0xFFFF*20))))
	}
	if line {
		class = strings.TrimSpace("f-line " + class)
	}
	return class
}

// Style returns a style sheet for the elements of figures. Their colours are the custom properties --figure-ink,
// --figure-paper, and --figure-series-1 and so on, which it does not set.
func Style() string {
	var b strings.Builder
	rule := func(selector, format string, args ...any) {
		fmt.Fprintf(&b, "%s { %s }\n", selector, fmt.Sprintf(format, args...))
	}
	first, others, _ := strings.Cut(fontFamily, ",")
	rule("svg.figure", "fill: var(--figure-ink); font-family: %q,%s;", first, others)
	rule(`.figure [class^="f-"]`, "fill: var(--f);")
	rule(".figure .f-line", "fill: none; stroke: var(--f, var(--figure-ink));")
	rule(".figure .f-paper", "--f: var(--figure-paper);")
	for i := range seriesColours[1:] {
		rule(fmt.Sprint(".figure .f-series-", i+1), "--f: var(--figure-series-%d);", i+1)
	}
	for percent := 5; percent < 100; percent += 5 {
		rule(fmt.Sprint(".figure .f-", percent),
			"--f: color-mix(in srgb, var(--figure-ink) %d%%, var(--figure-paper));", percent)
	}
	return b.String()
}
