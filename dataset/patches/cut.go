package patches

import (
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/images"
)

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
