// Package svg writes SVG without an attribute style, which a Content-Security-Policy may forbid.
package svg

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/png"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"

	"github.com/coppice-ldl/coppice/internal/printable"
)

// Canvas is a canvas that writes SVG.
type Canvas struct {
	Options
	b      bytes.Buffer
	states []state // the last one counts
}

// Options say how a canvas writes.
type Options struct {
	Width, Height vg.Length
	// TextWidth returns the width that a text gets, whatever font a reader has.
	TextWidth func(f font.Face, text string) vg.Length
	// Class returns the class of a colour of lines or areas, or an empty text. nil: there are no classes. A class is
	// stronger than the other attributes, which count where the class is not defined.
	Class func(c color.Color, line bool) string
}

// New returns an empty canvas.
func New(o Options) *Canvas {
	c := &Canvas{Options: o, states: make([]state, 1)}
	vg.Initialize(c)
	return c
}

// Element returns the element svg with further attributes.
func (c *Canvas) Element(attributes string) string {
	width, height := number(c.Width), number(c.Height)
	return fmt.Sprintf("<svg %s width=\"%spt\" height=\"%spt\" viewBox=\"0 0 %[2]s %[3]s\">\n%[4]s</svg>", attributes,
		width, height, c.b.String())
}

// state is what counts for the next element.
type state struct {
	color  color.Color
	width  vg.Length
	dashes []vg.Length
	groups int // that Pop closes
}

func (c *Canvas) last() *state { return &c.states[len(c.states)-1] }

// Size implements vg.CanvasSizer.
func (c *Canvas) Size() (width, height vg.Length) { return c.Width, c.Height }

// SetLineWidth implements vg.Canvas.
func (c *Canvas) SetLineWidth(width vg.Length) { c.last().width = width }

// SetLineDash implements vg.Canvas. No figure has an offset.
func (c *Canvas) SetLineDash(pattern []vg.Length, _ vg.Length) { c.last().dashes = pattern }

// SetColor implements vg.Canvas.
func (c *Canvas) SetColor(colour color.Color) { c.last().color = colour }

// Rotate implements vg.Canvas. The lower left corner is fixed. Angles of SVG are clockwise.
func (c *Canvas) Rotate(radians float64) {
	c.group(fmt.Sprintf("rotate(%s 0 %s)", number(vg.Length(-radians*180/math.Pi)), number(c.Height)))
}

// Translate implements vg.Canvas.
func (c *Canvas) Translate(by vg.Point) {
	c.group(fmt.Sprintf("translate(%s %s)", number(by.X), number(-by.Y)))
}

// Scale implements vg.Canvas. The lower left corner is fixed.
func (c *Canvas) Scale(x, y float64) {
	c.group(fmt.Sprintf("translate(0 %[1]s) scale(%[2]v %[3]v) translate(0 -%[1]s)", number(c.Height), x, y))
}

func (c *Canvas) group(transform string) {
	fmt.Fprintf(&c.b, "<g transform=\"%s\">\n", transform)
	c.last().groups++
}

// Push implements vg.Canvas.
func (c *Canvas) Push() {
	c.states = append(c.states, *c.last())
	c.last().groups = 0
}

// Pop implements vg.Canvas.
func (c *Canvas) Pop() {
	c.b.WriteString(strings.Repeat("</g>\n", c.last().groups))
	c.states = c.states[:len(c.states)-1]
}

// Stroke implements vg.Canvas.
func (c *Canvas) Stroke(path vg.Path) {
	s := c.last()
	if s.width <= 0 {
		return
	}
	fmt.Fprintf(&c.b, `<path%s stroke-width="%s"`, c.colour(true), number(s.width))
	if len(s.dashes) > 0 {
		var lengths []string
		for _, d := range s.dashes {
			lengths = append(lengths, number(d))
		}
		fmt.Fprintf(&c.b, ` stroke-dasharray="%s"`, strings.Join(lengths, " "))
	}
	c.finish(path)
}

// Fill implements vg.Canvas.
func (c *Canvas) Fill(path vg.Path) {
	fmt.Fprintf(&c.b, "<path%s", c.colour(false))
	c.finish(path)
}

// FillString implements vg.Canvas. Control characters are removed, because XML cannot have them.
func (c *Canvas) FillString(f font.Face, at vg.Point, text string) {
	text = printable.Line(text)
	fmt.Fprintf(&c.b, `<text%s x="%s" y="%s" font-size="%s"`, c.colour(false), number(at.X), number(c.Height-at.Y),
		number(f.Font.Size))
	if text != "" {
		fmt.Fprintf(&c.b, ` textLength="%s" lengthAdjust="spacingAndGlyphs"`,
			number(c.TextWidth(f, text)))
	}
	fmt.Fprintf(&c.b, ">%s</text>\n", html.EscapeString(text))
}

// DrawImage implements vg.Canvas.
func (c *Canvas) DrawImage(at vg.Rectangle, img image.Image) {
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(fmt.Errorf("an image cannot be encoded: %w", err)) // it has no pixels
	}
	size := at.Size()
	fmt.Fprintf(&c.b, "<image x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" xlink:href=\"data:image/png;base64,%s\"/>\n",
		number(at.Min.X), number(c.Height-at.Max.Y), number(size.X), number(size.Y),
		base64.StdEncoding.EncodeToString(b.Bytes()))
}

// finish writes the rest of the element of a path.
func (c *Canvas) finish(path vg.Path) {
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
func (c *Canvas) point(command byte, at vg.Point) {
	c.b.WriteByte(command)
	c.b.WriteString(number(at.X) + " " + number(c.Height-at.Y))
}

// arc writes an arc as two, because one arc cannot be a full circle.
func (c *Canvas) arc(p *vg.PathComp, first bool) {
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
		fmt.Fprintf(&c.b, "A%[1]s %[1]s 0 0 %[2]d ", number(p.Radius), sweep)
		c.point(' ', on(p.Start+float64(part*p.Angle)))
	}
}

// number writes a length in points, to a hundredth.
func number(v vg.Length) string {
	return strconv.FormatFloat(math.Round(float64(v)*100)/100+0, 'f', -1, 64)
}

// colour returns the attributes of an element for the colour of the state.
func (c *Canvas) colour(line bool) (attributes string) {
	own := c.last().color
	r, g, b, _ := own.RGBA()
	switch hex := fmt.Sprintf("#%02X%02X%02X", r>>8, g>>8, b>>8); {
	case line:
		attributes = fmt.Sprintf(` fill="none" stroke="%s"`, hex)
	case hex != "#000000":
		attributes = fmt.Sprintf(` fill="%s"`, hex)
	}
	if c.Class != nil {
		if class := c.Class(own, line); class != "" {
			attributes = ` class="` + class + `"` + attributes
		}
	}
	return attributes
}
