package patches

import (
	"fmt"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/images"
)

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
		return 0, fmt.Errorf("the model does not read patches: its samples are images of %v, want square images with 1 or 3 channels", s)
	}
	return s.Height, Cut{Size: s.Height, Stride: 1}.Check()
}
