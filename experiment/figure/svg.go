package figure

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/coppice-ldl/coppice/internal/printable"
)

// fontFamily lists the fonts of an SVG document. They have the same width as Liberation Sans, if a text has a width.
const fontFamily = "Liberation Sans,Arimo,Arial,Helvetica,sans-serif"

// SVG writes the figure as an SVG document. If the reader lacks Liberation Sans, texts have another font without
// serifs, but the same width.
func (f *Figure) SVG(w io.Writer) error {
	_, err := fmt.Fprintf(w, "<?xml version=\"1.0\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "+
		"xmlns:xlink=\"http://www.w3.org/1999/xlink\" font-family=\"%s\" %s</svg>\n", fontFamily, f.svg(false))
	return err
}

// Element returns the figure as an element of an HTML page. Its colours and fonts are classes, which Style defines. name
// is read to people who cannot see the figure.
func (f *Figure) Element(name string) string {
	return fmt.Sprintf(`<svg class="figure" role="img" aria-label="%s" %s</svg>`, html.EscapeString(printable.Line(name)), f.svg(true))
}

// svg returns the rest of the opening tag of the figure, and what is in the element.
func (f *Figure) svg(classes bool) string {
	c := &svg{width: f.width, height: f.height, classes: classes, states: make([]svgState, 1)}
	fmt.Fprintf(&c.b, "width=\"%spt\" height=\"%[2]spt\" viewBox=\"0 0 %[1]s %[2]s\">\n", svgNumber(f.width),
		svgNumber(f.height))
	vg.Initialize(c)
	f.draw(draw.New(c))
	return c.b.String()
}

// svg is a canvas that writes SVG. It has no attribute style, which a Content-Security-Policy may forbid.
type svg struct {
	b             bytes.Buffer
	width, height vg.Length
	classes       bool       // true if classes give the colours
	states        []svgState // the last one counts
}

type svgState struct {
	color  color.Color
	width  vg.Length
	dashes []vg.Length
	groups int // that Pop closes
}

func (c *svg) state() *svgState { return &c.states[len(c.states)-1] }

// Size implements vg.CanvasSizer.
func (c *svg) Size() (width, height vg.Length) { return c.width, c.height }

// SetLineWidth implements vg.Canvas.
func (c *svg) SetLineWidth(width vg.Length) { c.state().width = width }

// SetLineDash implements vg.Canvas. No figure has an offset.
func (c *svg) SetLineDash(pattern []vg.Length, _ vg.Length) { c.state().dashes = pattern }

// SetColor implements vg.Canvas.
func (c *svg) SetColor(colour color.Color) { c.state().color = colour }

// Rotate implements vg.Canvas. The lower left corner is fixed. Angles of SVG are clockwise.
func (c *svg) Rotate(radians float64) {
	c.group(fmt.Sprintf("rotate(%s 0 %s)", svgNumber(vg.Length(-radians*180/math.Pi)), svgNumber(c.height)))
}

// Translate implements vg.Canvas.
func (c *svg) Translate(by vg.Point) {
	c.group(fmt.Sprintf("translate(%s %s)", svgNumber(by.X), svgNumber(-by.Y)))
}

// Scale implements vg.Canvas. The lower left corner is fixed.
func (c *svg) Scale(x, y float64) {
	c.group(fmt.Sprintf("translate(0 %[1]s) scale(%[2]v %[3]v) translate(0 -%[1]s)", svgNumber(c.height), x, y))
}

func (c *svg) group(transform string) {
	fmt.Fprintf(&c.b, "<g transform=\"%s\">\n", transform)
	c.state().groups++
}

// Push implements vg.Canvas.
func (c *svg) Push() {
	c.states = append(c.states, *c.state())
	c.state().groups = 0
}

// Pop implements vg.Canvas.
func (c *svg) Pop() {
	c.b.WriteString(strings.Repeat("</g>\n", c.state().groups))
	c.states = c.states[:len(c.states)-1]
}

// Stroke implements vg.Canvas.
func (c *svg) Stroke(path vg.Path) {
	s := c.state()
	if s.width <= 0 {
		return
	}
	fmt.Fprintf(&c.b, `<path%s stroke-width="%s"`, c.colour(true), svgNumber(s.width))
	if len(s.dashes) > 0 {
		var lengths []string
		for _, d := range s.dashes {
			lengths = append(lengths, svgNumber(d))
		}
		fmt.Fprintf(&c.b, ` stroke-dasharray="%s"`, strings.Join(lengths, " "))
	}
	c.finish(path)
}

// Fill implements vg.Canvas.
func (c *svg) Fill(path vg.Path) {
	fmt.Fprintf(&c.b, "<path%s", c.colour(false))
	c.finish(path)
}

// FillString implements vg.Canvas. Control characters are removed, because XML cannot have them.
func (c *svg) FillString(f font.Face, at vg.Point, text string) {
	text = printable.Line(text)
	fmt.Fprintf(&c.b, `<text%s x="%s" y="%s" font-size="%s"`, c.colour(false), svgNumber(at.X), svgNumber(c.height-at.Y),
		svgNumber(f.Font.Size))
	if text != "" {
		fmt.Fprintf(&c.b, ` textLength="%s" lengthAdjust="spacingAndGlyphs"`,
			svgNumber(letters(f.Font.Size, 0, 0).Width(text)))
	}
	fmt.Fprintf(&c.b, ">%s</text>\n", html.EscapeString(text))
}

// DrawImage implements vg.Canvas.
func (c *svg) DrawImage(at vg.Rectangle, img image.Image) {
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(fmt.Errorf("an image of a figure cannot be encoded: %w", err)) // it has no pixels
	}
	size := at.Size()
	fmt.Fprintf(&c.b, "<image x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" xlink:href=\"data:image/png;base64,%s\"/>\n",
		svgNumber(at.Min.X), svgNumber(c.height-at.Max.Y), svgNumber(size.X), svgNumber(size.Y),
		base64.StdEncoding.EncodeToString(b.Bytes()))
}

// finish writes the rest of the element of a path.
func (c *svg) finish(path vg.Path) {
	c.b.WriteString(` d="`)
	for i := range path {
		p := &path[i]
		switch p.Type {
		case vg.MoveComp:
			c.point('M', p.Pos)
		case vg.LineComp:
			c.point('L', p.Pos)
		case vg.ArcComp:
			c.arc(p, i == 0)
		case vg.CurveComp:
			command := byte('C')
			if len(p.Control) == 1 {
				command = 'Q'
			}
			for _, control := range append(slices.Clone(p.Control), p.Pos) {
				c.point(command, control)
				command = ' '
			}
		case vg.CloseComp:
			c.b.WriteByte('Z')
		}
	}
	c.b.WriteString("\"/>\n")
}

// point writes a command of a path and its point.
func (c *svg) point(command byte, at vg.Point) {
	c.b.WriteByte(command)
	c.b.WriteString(svgNumber(at.X) + " " + svgNumber(c.height-at.Y))
}

// arc writes an arc as two, because one arc cannot be a full circle.
func (c *svg) arc(p *vg.PathComp, first bool) {
	on := func(angle float64) vg.Point {
		sin, cos := math.Sincos(angle)
		return vg.Point{X: p.Pos.X + p.Radius*vg.Length(cos), Y: p.Pos.Y + p.Radius*vg.Length(sin)}
	}
	command, sweep := byte('L'), 0
	if first {
		command = 'M'
	}
	if p.Angle < 0 { // clockwise
		sweep = 1
	}
	c.point(command, on(p.Start))
	for _, part := range []float64{0.5, 1} {
		fmt.Fprintf(&c.b, "A%[1]s %[1]s 0 0 %[2]d ", svgNumber(p.Radius), sweep)
		c.point(' ', on(p.Start+float64(part*p.Angle)))
	}
}

// svgNumber writes a length in points, to a hundredth.
func svgNumber(v vg.Length) string {
	return strconv.FormatFloat(math.Round(float64(v)*100)/100+0, 'f', -1, 64)
}

// colour returns the attributes of an element for the colour of the state. A class is stronger than the other
// attributes, which count in a page without Style.
func (c *svg) colour(line bool) string {
	r, g, b, _ := c.state().color.RGBA()
	hex, attributes := fmt.Sprintf("#%02X%02X%02X", r>>8, g>>8, b>>8), ""
	black := hex == "#000000"
	if line {
		attributes = fmt.Sprintf(` fill="none" stroke="%s"`, hex)
	} else if !black {
		attributes = fmt.Sprintf(` fill="%s"`, hex)
	}
	series := slices.IndexFunc(seriesColours, func(s color.Color) bool {
		r2, g2, b2, _ := s.RGBA()
		return r == r2 && g == g2 && b == b2
	})
	class := ""
	switch {
	case !c.classes || !black && series < 0 && (r != g || g != b): // no class has the colour
		return attributes
	case black:
	case hex == "#FFFFFF":
		class = "f-paper"
	case series >= 0:
		class = fmt.Sprint("f-series-", series)
	default: // a mixture of black and white
		class = fmt.Sprint("f-", min(95, max(5, 5*math.Round(float64(0xFFFF-r)/0xFFFF*20))))
	}
	if line {
		class = strings.TrimSpace("f-line " + class)
	}
	if class == "" {
		return attributes
	}
	return fmt.Sprintf(` class="%s"%s`, class, attributes)
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
