package images

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"strconv"
)

// Map has a class for each pixel: pixel (x, y) has Classes[y·Width + x].
type Map struct {
	Height, Width int
	Classes       []Class
}

// Class is the value of a pixel in a map: a number of a palette, a level of grey, or a colour.
type Class uint32

// colour marks a Class that is red, green and blue.
const colour Class = 1 << 24

// String names a class: its number, or a colour such as #ff8000.
func (c Class) String() string {
	if c < colour {
		return strconv.Itoa(int(c))
	}
	return fmt.Sprintf("#%06x", uint32(c-colour))
}

// parseColour reads a colour as String writes it.
func parseColour(name string) (c color.RGBA, ok bool) {
	if len(name) != 7 || name[0] != '#' {
		return c, false
	}
	v, err := strconv.ParseUint(name[1:], 16, 32)
	return color.RGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 0xff}, err == nil
}

// ReadMap reads a map from a PNG file: with a palette, grey, or in colours of 8 bits a channel, of
// which transparency does not count. JPEG files lose exact values and are refused.
func ReadMap(in io.ReadSeeker) (*Map, error) { return readMap(in, MaxPixels) }

func readMap(in io.ReadSeeker, most int) (*Map, error) {
	d, err := newDecoder(in, most)
	if err != nil {
		return nil, err
	}
	if d.kind == &jpegFiles {
		return nil, fmt.Errorf("the map is a JPEG file, which does not store classes exactly; want a PNG file: %w", ErrFormat)
	}
	img, err := d.decode()
	if err != nil {
		return nil, err
	}
	if by, err := d.orientation(); err != nil {
		return nil, err
	} else if by != upright {
		return nil, fmt.Errorf("the map has an orientation (EXIF), so its pixels are shown in another order than stored: "+
			"save the map without orientation: %w", ErrFormat)
	}
	at := classAt(img)
	if at == nil {
		return nil, fmt.Errorf("the map has an unsupported kind of colour; want a palette, grey levels, or colours of 8 "+
			"bits for each channel: %w", ErrFormat)
	}
	b := img.Bounds()
	m := &Map{b.Dy(), b.Dx(), make([]Class, 0, b.Dx()*b.Dy())}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			m.Classes = append(m.Classes, at(x, y))
		}
	}
	return m, nil
}

// classAt returns a function that reads the class of a pixel; nil: pixels are of another type.
func classAt(img image.Image) func(x, y int) Class {
	ofColour := func(r, g, b uint8) Class { return colour | Class(r)<<16 | Class(g)<<8 | Class(b) }
	switch img := img.(type) {
	case *image.Paletted:
		return func(x, y int) Class { return Class(img.ColorIndexAt(x, y)) }
	case *image.Gray:
		return func(x, y int) Class { return Class(img.GrayAt(x, y).Y) }
	case *image.Gray16:
		return func(x, y int) Class { return Class(img.Gray16At(x, y).Y) }
	case *image.RGBA:
		return func(x, y int) Class { c := img.RGBAAt(x, y); return ofColour(c.R, c.G, c.B) }
	case *image.NRGBA:
		return func(x, y int) Class { c := img.NRGBAAt(x, y); return ofColour(c.R, c.G, c.B) }
	}
	return nil
}

// maxPalette is how many classes a palette has.
const maxPalette = 256

// Palette says how classes are written: which number of a palette each of them has.
type Palette struct {
	index  []uint8 // by class
	colors color.Palette
}

// NewPalette makes the palette of classes with these names. A class whose name is a number has
// that number, if all have; otherwise they are numbered in their order. Colours that are names
// are kept, and the others are spread.
func NewPalette(names []string) (*Palette, error) {
	if len(names) < 1 || len(names) > maxPalette {
		return nil, fmt.Errorf("cannot write a map of %d classes: the palette of a PNG file has 1 to %d colours", len(names),
			maxPalette)
	}
	p := &Palette{index: numbers(names)}
	for i := range p.index {
		for len(p.colors) <= int(p.index[i]) {
			p.colors = append(p.colors, spread(len(p.colors)))
		}
		if c, ok := parseColour(names[i]); ok {
			p.colors[p.index[i]] = c
		}
	}
	return p, nil
}

// numbers returns the numbers that are names, or 0, 1, ... where one is none.
func numbers(names []string) []uint8 {
	index, order := make([]uint8, len(names)), make([]uint8, len(names))
	whole := true
	seen := map[uint64]bool{}
	for i, name := range names {
		v, err := strconv.ParseUint(name, 10, 8)
		whole = whole && err == nil && !seen[v]
		seen[v], index[i], order[i] = true, uint8(v), uint8(i)
	}
	if !whole {
		return order
	}
	return index
}

// spread returns colour i of 256 that differ well, the first ones most: the bits of i, three at a
// time, become the bits of red, green and blue, from the highest down. Colour 0 is black.
func spread(i int) color.RGBA {
	c := color.RGBA{A: 0xff}
	for bit := 7; i > 0; bit, i = bit-1, i>>3 {
		c.R |= uint8(i&1) << bit
		c.G |= uint8(i>>1&1) << bit
		c.B |= uint8(i>>2&1) << bit
	}
	return c
}

// Write writes a map of height x width pixels as a PNG file; classes has the number of each
// pixel's class among the names.
func (p *Palette) Write(w io.Writer, height, width int, classes []uint8) error {
	img := image.NewPaletted(image.Rect(0, 0, width, height), p.colors)
	for i, c := range classes {
		img.Pix[i] = p.index[c]
	}
	return png.Encode(w, img)
}

// WriteGrey writes an image of one channel as a PNG file of 16 bits a pixel. Numbers below 0 and
// above 1 are cut off.
func WriteGrey(w io.Writer, m *Image) error {
	img := image.NewGray16(image.Rect(0, 0, m.Width, m.Height))
	for i, v := range m.Pixels[:m.Height*m.Width] {
		level := uint16(float64(max(0, min(1, float64(v)))*0xffff) + 0.5)
		img.Pix[2*i], img.Pix[2*i+1] = uint8(level>>8), uint8(level)
	}
	return png.Encode(w, img)
}
