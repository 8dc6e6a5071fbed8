package images

import (
	"fmt"
	"image"
	"io"
)

// The numbers of channels that images are read with.
const (
	Grey = 1
	RGB  = 3
)

// Image is numbers from 0 (black) to 1, channel by channel, each row of pixels after the one
// above it: pixel (x, y) of channel c is Pixels[(c·Height + y)·Width + x].
type Image struct {
	Channels, Height, Width int
	Pixels                  []float32
	// Turned is true if the image is stored in another orientation than it is shown in.
	Turned bool
}

// Read reads a PNG or JPEG image with so many channels, Grey or RGB, in its own size. Transparent
// pixels are blended with black, and an image is turned as its camera noted (the tag Orientation of EXIF).
func Read(in io.ReadSeeker, channels int) (*Image, error) {
	return read(in, Image{Channels: channels}, MaxPixels)
}

// ReadSized is Read, resized to so many pixels by the mean of the area that each of them covers.
func ReadSized(in io.ReadSeeker, channels, height, width int) (*Image, error) {
	return read(in, Image{Channels: channels, Height: height, Width: width}, MaxPixels)
}

// read reads an image in the size of wanted, or in its own if that has none.
func read(in io.ReadSeeker, wanted Image, most int) (*Image, error) {
	if wanted.Channels != Grey && wanted.Channels != RGB {
		return nil, fmt.Errorf("images are read with 1 channel (grey) or 3 channels (red, green, blue), not with %d", wanted.Channels)
	}
	d, err := newDecoder(in, most)
	if err != nil {
		return nil, err
	}
	decoded, err := d.decode()
	if err != nil {
		return nil, err
	}
	src, ok := decoded.(image.RGBA64Image)
	if !ok {
		return nil, fmt.Errorf("the pixels of the image have an unknown type: %w", ErrFormat)
	}
	by, err := d.orientation()
	if err != nil {
		return nil, err
	}
	if by != upright {
		src, wanted.Turned = &turned{src, by}, true
	}
	size := src.Bounds().Size()
	if wanted.Height == 0 {
		wanted.Height, wanted.Width = size.Y, size.X
	}
	wanted.Pixels = make([]float32, wanted.Channels*wanted.Height*wanted.Width)
	if size.Y == wanted.Height && size.X == wanted.Width {
		wanted.copyFrom(src)
	} else {
		newResizer(&wanted, size).run(src)
	}
	return &wanted, nil
}

// copyFrom takes over the pixels of an image of the same size.
func (m *Image) copyFrom(src image.RGBA64Image) {
	row, area := make([]uint16, m.Channels*m.Width), m.Height*m.Width
	for y := range m.Height {
		levels(row, src, y, m.Channels)
		for c := range m.Channels {
			for x := range m.Width {
				m.Pixels[c*area+y*m.Width+x] = share(row[x*m.Channels+c])
			}
		}
	}
}

// levels reads row y of an image: the levels of a pixel's channels stand together.
func levels(dst []uint16, src image.RGBA64Image, y, channels int) {
	from := src.Bounds().Min
	for i := 0; i < len(dst); i += channels {
		p := src.RGBA64At(from.X+i/channels, from.Y+y)
		if channels == Grey {
			// .299 R + .587 G + .114 B (ITU-R BT.601), as in image/color
			dst[i] = uint16((19595*uint32(p.R) + 38470*uint32(p.G) + 7471*uint32(p.B) + 1<<15) >> 16)
		} else {
			dst[i], dst[i+1], dst[i+2] = p.R, p.G, p.B
		}
	}
}

// share is a level of 16 bits as a number from 0 to 1.
func share(level uint16) float32 { return float32(float64(level) / 0xffff) }
