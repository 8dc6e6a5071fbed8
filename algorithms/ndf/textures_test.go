package ndf_test

import (
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The images of textures: 60 of 64 × 64 pixels, divided into 12 Voronoi cells of 4 classes. A cell
// of class c is a wave of 4 pixels at an angle of c·45°, with a phase and an offset of its own.
const (
	images      = 60
	side        = 64
	cells       = 12
	textures    = 4
	wavelength  = 4
	cellOffset  = 0.5 // deviation of the offset of a cell
	pixelNoise  = 0.5 // deviation of the noise of a pixel
	patch       = 9   // pixels along a side
	patchStride = 2

	alongSide      = (side-patch)/patchStride + 1
	patchesOfImage = alongSide * alongSide
)

// image is an image with the class of each pixel.
type image struct {
	tone  [side][side]float64
	class [side][side]int
}

// cell is a Voronoi cell.
type cell struct {
	x, y, phase, offset float64
	class               int
}

// drawImage draws an image; all random numbers are a function of seed and its number.
func drawImage(seed uint64, number int) *image {
	s := num.NewStream(num.NewKey(seed, "textures"), uint64(number), 0)
	var list [cells]cell
	for i := range list {
		list[i] = cell{
			x: side * s.Float64(), y: side * s.Float64(), phase: s.Float64(), offset: cellOffset * s.Normal(), class: int(s.Uint64n(textures)),
		}
	}
	g := new(image)
	for y := range side {
		for x := range side {
			c := nearest(&list, float64(x), float64(y))
			sin, cos := num.SinCos2Pi(float64(c.class) / 8)
			wave, _ := num.SinCos2Pi(fraction((float64(x)*cos+float64(y)*sin)/wavelength + c.phase))
			g.class[y][x] = c.class
			g.tone[y][x] = wave + c.offset + pixelNoise*s.Normal()
		}
	}
	return g
}

func fraction(x float64) float64 {
	for x >= 1 {
		x--
	}
	for x < 0 {
		x++
	}
	return x
}

func nearest(list *[cells]cell, x, y float64) *cell {
	best, least := 0, 1e9
	for i := range list {
		dx, dy := list[i].x-x, list[i].y-y
		if d := dx*dx + dy*dy; d < least {
			best, least = i, d
		}
	}
	return &list[best]
}

// patches is the source of the patches of all images; a row has the class of its patch's centre.
type patches uint64

// Info implements dataset.Source.
func (patches) Info() dataset.Info {
	return dataset.Info{
		Rows: images * patchesOfImage, Features: patch * patch, Labels: textures, LabelType: dataset.LabelType{Classes: true},
		LabelNames: []string{"0", "1", "2", "3"},
	}
}

// Scan implements dataset.Source.
func (p patches) Scan(f func(*dataset.Row) error) error {
	row := dataset.Row{Values: make([]float64, patch*patch), Labels: make([]float64, textures)}
	for n := range images {
		g := drawImage(uint64(p), n)
		for y := 0; y+patch <= side; y += patchStride {
			for x := 0; x+patch <= side; x += patchStride {
				for i := range row.Values {
					row.Values[i] = g.tone[y+i/patch][x+i%patch]
				}
				clear(row.Labels)
				row.Labels[g.class[y+patch/2][x+patch/2]] = 1
				if err := f(&row); err != nil {
					return err
				}
				row.Number++
			}
		}
	}
	return nil
}
