package patches

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/dataset/images"
	"github.com/coppice-ldl/coppice/internal/num"
)

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
