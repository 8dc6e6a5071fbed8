// Package patches makes rows of images whose pixels have classes: a row is a small square of an
// image, a patch, and its class is that of the pixel at its centre. A model of such rows labels
// whole images, pixel by pixel.
package patches

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/images"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Set is images with a map of classes each. It gives the same at each reading.
type Set interface {
	// Name describes the set, for messages; it may be empty.
	Name() string
	// Len is the number of images.
	Len() int
	// NameOf is the name of image i.
	NameOf(i int) string
	// Image reads image i; all have as many channels as Channels says.
	Image(i int) (*images.Image, error)
	// Map reads the classes of image i, whose size is the image's.
	Map(i int) (*images.Map, error)
	// Channels is the number of channels of the images.
	Channels() int
}

// Cut says how images are cut into patches.
type Cut struct {
	Size   int // pixels along a side
	Stride int // pixels from a patch to the next, to the right and down
}

// maxSide bounds the sides of patches and the steps between them.
const maxSide = 1024

// Check returns an error if no image can be cut so.
func (c Cut) Check() error {
	switch {
	case c.Size < 1 || c.Size > maxSide:
		return fmt.Errorf("the side of a patch is %d pixels, want 1 to %d", c.Size, maxSide)
	case c.Stride < 1 || c.Stride > maxSide:
		return fmt.Errorf("the stride is %d pixels, want 1 to %d", c.Stride, maxSide)
	}
	return nil
}

// along is how many patches fit along a side of so many pixels.
func (c Cut) along(side int) int {
	if side < c.Size {
		return 0
	}
	return (side-c.Size)/c.Stride + 1
}

// centre is where the pixel is, from the left and from the top of a patch, whose class it has.
func (c Cut) centre() int { return c.Size / 2 }

// places calls f with the left and top pixel of each patch of an image, row by row.
func (c Cut) places(height, width int, f func(left, top int) error) error {
	for y := range c.along(height) {
		for x := range c.along(width) {
			if err := f(x*c.Stride, y*c.Stride); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyPatch sets dst to a patch of an image, channel by channel.
func (c Cut) copyPatch(dst []float64, m *images.Image, left, top int) {
	for channel := range m.Channels {
		for y := range c.Size {
			from := (channel*m.Height+top+y)*m.Width + left
			for x, v := range m.Pixels[from : from+c.Size] {
				dst[(channel*c.Size+y)*c.Size+x] = float64(v)
			}
		}
	}
}

// shape is that of patches.
func (c Cut) shape(channels int) dataset.Shape {
	return dataset.Shape{Channels: channels, Height: c.Size, Width: c.Size}
}

// errSmall says that no patch fits.
var errSmall = errors.New("no patch fits into the image")

// Options says which patches are rows.
type Options struct {
	Cut
	// Ignore lists classes, by name, whose pixels are the centre of no row.
	Ignore []string
	// Progress, if set, is called after each map that New reads; its error ends New.
	Progress func(done, of int) error
}

// maxClasses bounds the classes of a set.
const maxClasses = 256

// Patches are the patches of a set of images, with what a pass over its maps found.
type Patches struct {
	set     Set
	cut     Cut
	ignored map[images.Class]bool
	names   []string
	number  map[images.Class]int // of a class, its place in names
	rows    []int                // by image
}

// New reads all maps of a set and returns its patches.
func New(set Set, o Options) (*Patches, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	p := &Patches{set: set, cut: o.Cut, ignored: map[images.Class]bool{}, number: map[images.Class]int{}}
	found := map[images.Class]bool{}
	for i := range set.Len() {
		m, err := set.Map(i)
		if err == nil && o.along(m.Height)*o.along(m.Width) == 0 {
			err = fmt.Errorf("the image has %d x %d pixels (width x height), and is smaller than a patch of %d x %d: %w",
				m.Width, m.Height, o.Size, o.Size, errSmall)
		}
		if err == nil {
			err = p.look(m, found, o.Ignore)
		}
		if err != nil {
			return nil, fmt.Errorf("%sthe map of %s: %w", prefix(set), set.NameOf(i), err)
		}
		if o.Progress != nil {
			if err := o.Progress(i+1, set.Len()); err != nil {
				return nil, err
			}
		}
	}
	return p, p.order(found, o.Ignore)
}

// look counts the rows of a map and notes their classes.
func (p *Patches) look(m *images.Map, found map[images.Class]bool, ignore []string) error {
	rows, at := 0, p.cut.centre()
	err := p.cut.places(m.Height, m.Width, func(left, top int) error {
		class := m.Classes[(top+at)*m.Width+left+at]
		if !found[class] {
			if found[class] = true; len(found) > maxClasses+len(ignore) {
				return fmt.Errorf("the maps have more than %d classes; want one value for each class", maxClasses)
			}
			if slices.Contains(ignore, class.String()) {
				p.ignored[class] = true
			}
		}
		if !p.ignored[class] {
			rows++
		}
		return nil
	})
	p.rows = append(p.rows, rows)
	return err
}

// order sorts the classes that were found and numbers them.
func (p *Patches) order(found map[images.Class]bool, ignore []string) error {
	var classes []images.Class
	for class := range found {
		if !p.ignored[class] {
			classes = append(classes, class)
		}
	}
	if len(p.ignored) < len(ignore) {
		return fmt.Errorf("%sthe classes to ignore are %v, but only %d of these classes occur", prefix(p.set), ignore,
			len(p.ignored))
	}
	if len(classes) == 0 {
		return fmt.Errorf("%sno pixel of the maps has a class", prefix(p.set))
	}
	slices.Sort(classes)
	for i, class := range classes {
		p.number[class] = i
		p.names = append(p.names, class.String())
	}
	return nil
}

// Images is the number of images.
func (p *Patches) Images() int { return p.set.Len() }

// Rows returns the patches of images [from, to) as rows of classes, image by image, each image
// row by row. The group of a row is the name of its image.
func (p *Patches) Rows(from, to int) dataset.Source { return &source{p, from, to} }

type source struct {
	*Patches
	from, to int // images
}

// Info implements dataset.Source.
func (s *source) Info() dataset.Info {
	shape := s.cut.shape(s.set.Channels())
	info := dataset.Info{
		File: s.set.Name(), Features: shape.Size(), Shape: shape, Labels: len(s.names), LabelNames: s.names,
		LabelType: dataset.LabelType{Classes: true}, HasGroups: true,
	}
	for _, n := range s.rows[s.from:s.to] {
		info.Rows += n
	}
	return info
}

// Scan implements dataset.Source.
func (s *source) Scan(f func(*dataset.Row) error) error {
	row := dataset.Row{Values: make([]float64, s.Info().Features), Labels: make([]float64, len(s.names))}
	for i := s.from; i < s.to; i++ {
		if err := s.scanImage(i, &row, f); err != nil {
			return err
		}
	}
	return nil
}

// scanImage calls f with the rows of an image.
func (s *source) scanImage(i int, row *dataset.Row, f func(*dataset.Row) error) error {
	row.Group = s.set.NameOf(i)
	img, classes, err := s.read(i)
	if err != nil {
		return fmt.Errorf("%simage %s: %w", prefix(s.set), row.Group, err)
	}
	at := s.cut.centre()
	return s.cut.places(img.Height, img.Width, func(left, top int) error {
		class := classes.Classes[(top+at)*img.Width+left+at]
		if s.ignored[class] {
			return nil
		}
		number, known := s.number[class]
		if !known {
			return fmt.Errorf("%simage %s: its map changed while it was read: %w", prefix(s.set), row.Group, dataset.ErrChanged)
		}
		clear(row.Labels)
		row.Labels[number] = 1
		s.cut.copyPatch(row.Values, img, left, top)
		if err := f(row); err != nil {
			return err
		}
		row.Number++
		return nil
	})
}

// read reads an image and its map.
func (s *source) read(i int) (*images.Image, *images.Map, error) {
	img, err := s.set.Image(i)
	if err != nil {
		return nil, nil, err
	}
	classes, err := s.set.Map(i)
	if err != nil {
		return nil, nil, err
	}
	if img.Height != classes.Height || img.Width != classes.Width {
		return nil, nil, fmt.Errorf("the image has %d x %d pixels (width x height), but its map has %d x %d", img.Width,
			img.Height, classes.Width, classes.Height)
	}
	return img, classes, nil
}

func prefix(set Set) string {
	if set.Name() == "" {
		return ""
	}
	return set.Name() + ": "
}

// Whole returns a row without labels for each pixel of an image, row by row: the patch of so many
// pixels along a side with that pixel at its centre. Beyond its borders the image is mirrored.
func Whole(m *images.Image, size int) (dataset.Source, error) {
	c := Cut{Size: size, Stride: 1}
	if err := c.Check(); err != nil {
		return nil, err
	}
	return &whole{c, mirrored(m, c.centre(), size-1-c.centre())}, nil
}

type whole struct {
	cut   Cut
	image *images.Image // with its mirrored borders
}

// Info implements dataset.Source.
func (w *whole) Info() dataset.Info {
	shape := w.cut.shape(w.image.Channels)
	return dataset.Info{
		Rows: w.cut.along(w.image.Height) * w.cut.along(w.image.Width), Features: shape.Size(), Shape: shape,
	}
}

// Scan implements dataset.Source.
func (w *whole) Scan(f func(*dataset.Row) error) error {
	row := dataset.Row{Values: make([]float64, w.Info().Features)}
	return w.cut.places(w.image.Height, w.image.Width, func(left, top int) error {
		w.cut.copyPatch(row.Values, w.image, left, top)
		if err := f(&row); err != nil {
			return err
		}
		row.Number++
		return nil
	})
}

// mirrored returns an image with so many more pixels before and after each row and column, which
// mirror those inside: ... 2 1 0 1 2 ...
func mirrored(m *images.Image, before, after int) *images.Image {
	big := &images.Image{Channels: m.Channels, Height: m.Height + before + after, Width: m.Width + before + after}
	big.Pixels = make([]float32, 0, big.Channels*big.Height*big.Width)
	for c := range m.Channels {
		for y := range big.Height {
			from := (c*m.Height + mirror(y-before, m.Height)) * m.Width
			for x := range big.Width {
				big.Pixels = append(big.Pixels, m.Pixels[from+mirror(x-before, m.Width)])
			}
		}
	}
	return big
}

// mirror returns the place, from 0 to n - 1, that place i beyond them mirrors.
func mirror(i, n int) int {
	if n == 1 {
		return 0
	}
	period := 2 * (n - 1)
	i = ((i % period) + period) % period
	return min(i, period-i)
}

// CheckModel returns the side of the patches that a model reads, whose features have a shape. It
// returns an error if the shape is no patch.
func CheckModel(s dataset.Shape) (size int, err error) {
	switch {
	case s == dataset.Shape{}:
		return 0, fmt.Errorf("the model does not read patches: it was trained on samples without a shape")
	case s.Height != s.Width || s.Channels != images.Grey && s.Channels != images.RGB:
		return 0, fmt.Errorf("the model does not read patches: its samples are images of %v, want square images with 1 or "+
			"3 channels", s)
	}
	return s.Height, Cut{Size: s.Height, Stride: 1}.Check()
}

// The images of the set of textures: divided into Voronoi cells, each of one of the textures. A
// cell of texture k is a wave of textureWave pixels at an angle of k·45°, with a phase and an
// offset of its own.
const (
	TextureImages = 60
	textureSide   = 64
	textureCells  = 12
	textureKinds  = 4
	textureWave   = 4
	cellOffset    = 0.5 // deviation of the offset of a cell
	pixelNoise    = 0.5 // deviation of the noise of a pixel
)

// Textures returns TextureImages grey images of 64 x 64 pixels with the texture of each pixel. Their
// tones are sin(2π ((x cos θ + y sin θ)/4 + phase)) with θ = texture · 45°, plus an offset of the cell and
// noise, both N(0, .5²): one pixel says nothing about its texture. An image depends on the seed and its number only.
func Textures(seed uint64) Set { return textures{num.NewKey(seed, "textures")} }

type textures struct{ key num.Key }

// Name implements Set.
func (textures) Name() string { return "" }

// Len implements Set.
func (textures) Len() int { return TextureImages }

// NameOf implements Set.
func (textures) NameOf(i int) string { return fmt.Sprintf("%02d", i) }

// Channels implements Set.
func (textures) Channels() int { return images.Grey }

// Image implements Set.
func (t textures) Image(i int) (*images.Image, error) {
	s := num.NewStream(t.key, uint64(i), 0)
	cells := drawCells(s)
	m := &images.Image{Channels: images.Grey, Height: textureSide, Width: textureSide}
	for y := range textureSide {
		for x := range textureSide {
			tone := nearest(&cells, float64(x), float64(y)).tone(float64(x), float64(y))
			m.Pixels = append(m.Pixels, float32(tone+float64(pixelNoise*s.Normal())))
		}
	}
	return m, nil
}

// Map implements Set.
func (t textures) Map(i int) (*images.Map, error) {
	cells := drawCells(num.NewStream(t.key, uint64(i), 0))
	m := &images.Map{Height: textureSide, Width: textureSide}
	for y := range textureSide {
		for x := range textureSide {
			m.Classes = append(m.Classes, images.Class(nearest(&cells, float64(x), float64(y)).texture))
		}
	}
	return m, nil
}

// cell is a Voronoi cell: the pixels to which its centre is the nearest.
type cell struct {
	x, y, phase, offset float64
	texture             int
}

func drawCells(s *num.Stream) (cells [textureCells]cell) {
	for i := range cells {
		cells[i] = cell{
			x: textureSide * s.Float64(), y: textureSide * s.Float64(), phase: s.Float64(), offset: cellOffset * s.Normal(),
			texture: int(s.Uint64n(textureKinds)),
		}
	}
	return cells
}

// nearest returns the cell of a pixel; of equally near ones the first.
func nearest(cells *[textureCells]cell, x, y float64) *cell {
	best, least := 0, math.Inf(1)
	for i := range cells {
		dx, dy := cells[i].x-x, cells[i].y-y
		if d := float64(dx*dx) + float64(dy*dy); d < least {
			best, least = i, d
		}
	}
	return &cells[best]
}

// tone is that of a pixel of the cell without its noise.
func (c *cell) tone(x, y float64) float64 {
	sin, cos := num.SinCos2Pi(float64(c.texture) / 8)
	along := float64(x*cos) + float64(y*sin)
	wave, _ := num.SinCos2Pi(float64(along/textureWave) + c.phase)
	return wave + c.offset
}

// toneRange is the range of tones, -toneRange to toneRange, that Shown keeps; beyond it are fewer
// than one pixel in 10^7.
const toneRange = 5

// Shown returns a generated image with tones from 0 to 1, for a file.
func Shown(m *images.Image) *images.Image {
	shown := &images.Image{Channels: m.Channels, Height: m.Height, Width: m.Width}
	for _, v := range m.Pixels {
		shown.Pixels = append(shown.Pixels, float32((float64(v)+toneRange)/(2*toneRange)))
	}
	return shown
}
