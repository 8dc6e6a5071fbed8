package figure

import (
	"image"
	pixels "image/draw"
	"io"
	"sync"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgpdf"
)

// equalFiles makes equal figures equal files; see also shapes.DrawImage.
var equalFiles = sync.OnceFunc(func() {
	fpdf.SetDefaultCatalogSort(true)
	fpdf.SetDefaultCreationDate(time.Unix(0, 0).UTC())
	fpdf.SetDefaultModificationDate(time.Unix(0, 0).UTC())
})

// PDF writes the figure as a PDF page of its size. Letters are shapes, because the fonts of a PDF of this package have
// only the letters of western Europe. Letters that the font lacks are boxes with their numbers.
func (f *Figure) PDF(w io.Writer) error {
	equalFiles()
	c := vgpdf.New(f.width, f.height)
	f.draw(draw.New(bitmap{shapes{c, make(map[int]bool)}}))
	_, err := c.WriteTo(w)
	return err
}

// shapes is a canvas that fills the outlines of letters. The font has all letters.
type shapes struct {
	vg.CanvasSizer
	widths map[int]bool // of the pictures, in pixels
}

// DrawImage implements vg.Canvas. A PDF has its pictures in the order of their widths, and pictures of a width in any
// order. So transparent columns make all widths different. The first row is at the bottom of a PDF.
func (c shapes) DrawImage(at vg.Rectangle, picture image.Image) {
	from := picture.Bounds()
	width := from.Dx()
	for c.widths[width] {
		width++
	}
	c.widths[width] = true
	wide := image.NewNRGBA(image.Rect(0, 0, width, from.Dy()))
	for y := range from.Dy() {
		pixels.Draw(wide, image.Rect(0, y, width, y+1), picture, image.Pt(from.Min.X, from.Max.Y-1-y), pixels.Src)
	}
	at.Max.X += at.Size().X * vg.Length(width-from.Dx()) / vg.Length(from.Dx())
	c.CanvasSizer.DrawImage(at, wide)
}

// FillString implements vg.Canvas.
func (c shapes) FillString(face font.Face, at vg.Point, text string) {
	var buffer sfnt.Buffer
	units := face.Face.UnitsPerEm()
	scale := face.Font.Size / vg.Length(units)
	var all vg.Path
	for i, letter := range text {
		index, err := face.Face.GlyphIndex(&buffer, letter)
		if err != nil {
			continue
		}
		// With as many pixels as units, coordinates are units. They point down.
		outline, err := face.Face.LoadGlyph(&buffer, index, fixed.I(int(units)), nil)
		if err != nil {
			continue
		}
		from := at.X + face.Width(text[:i])
		point := func(p fixed.Point26_6) vg.Point {
			return vg.Point{X: from + vg.Length(p.X)/64*scale, Y: at.Y - vg.Length(p.Y)/64*scale}
		}
		for _, s := range outline {
			switch p := s.Args; s.Op {
			case sfnt.SegmentOpMoveTo:
				if len(all) > 0 {
					all.Close()
				}
				all.Move(point(p[0]))
			case sfnt.SegmentOpLineTo:
				all.Line(point(p[0]))
			case sfnt.SegmentOpQuadTo:
				all.QuadTo(point(p[0]), point(p[1]))
			case sfnt.SegmentOpCubeTo:
				all.CubeTo(point(p[0]), point(p[1]), point(p[2]))
			}
		}
	}
	if len(all) > 0 {
		all.Close()
		c.Fill(all)
	}
}
