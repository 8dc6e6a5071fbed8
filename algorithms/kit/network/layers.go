package network

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
)

// Output is the last layer of a network.
type Output struct {
	Units int
	Start Start
}

// Layers returns the layers of a network for rows of so many features, which Fits has not refused.
// The feature function is a network.
func (c *Config) Layers(features int, biased bool, o Output) []Layer {
	b := &builder{shape: Flat(features), biased: biased}
	if c.Features == Conv {
		b.shape = c.image(features)
		if c.Flip || c.Shift > 0 {
			b.add(&Augment{Of: b.shape, Flip: c.Flip, Shift: c.Shift})
		}
		if c.Crop > 0 {
			b.add(&Crop{Of: b.shape, Side: c.Crop})
		}
		for _, channels := range c.list(c.Channels) {
			b.convolution(channels, c.Kernel, c.Stride, c.Padding)
			c.activate(b)
			if c.Pool > 1 {
				b.pool(c.Pool, c.Pooling == average)
			}
		}
	}
	for _, units := range c.list(c.Hidden) {
		b.dense(units)
		c.activate(b)
		if c.Dropout > 0 {
			b.dropout(c.Dropout)
		}
	}
	b.output(o.Units, o.Start)
	return b.layers
}

// activate adds what follows the weights of a layer.
func (c *Config) activate(b *builder) {
	if c.LayerNorm {
		b.norm()
	}
	b.relu()
}

// list returns the numbers of a list that was checked.
func (c *Config) list(text string) []int {
	n, err := parseList(text)
	if err != nil {
		panic("network: a list that was not checked: " + text)
	}
	return n
}

// image returns the shape of a row that was checked.
func (c *Config) image(features int) Shape {
	if c.Shape == row {
		return Shape{1, 1, features}
	}
	s, err := dataset.ParseShape(c.Shape)
	if err != nil {
		panic("network: a shape that was not checked: " + c.Shape)
	}
	return Shape(s)
}

// MaxValues bounds Θ: what one value of a round can hold (512 MiB). maxRow bounds what a layer
// makes of one row, and what a convolution reads for it, position by position (64 MiB).
const (
	MaxValues = 1 << 27
	maxRow    = 1 << 24
)

// Fits returns a *param.Error where the layers do not go with one another or with the data.
func (c *Config) Fits(m *dataset.Manifest, biased bool, o Output) error {
	if !c.Deep() {
		return nil
	}
	if c.Features == Conv {
		if s := c.image(m.Features); s.Size() != m.Features {
			return param.Errorf("shape", "the shape %v has %d values, but the dataset has %d features", s, s.Size(), m.Features)
		}
		if s := c.image(m.Features); c.Shift >= s.Height && c.Shift >= s.Width {
			return param.Errorf("shift", "a shift of %d pixels would leave nothing of an image of %dx%d", c.Shift, s.Height, s.Width)
		}
		s := c.image(m.Features)
		if c.Crop > s.Height || c.Crop > s.Width {
			return param.Errorf("crop", "a square of %dx%d does not fit in an image of %dx%d", c.Crop, c.Crop, s.Height, s.Width)
		}
		if c.Crop > 0 {
			_, s = (&Crop{Of: s, Side: c.Crop}).Shapes()
		}
		if err := c.fitsImages(s); err != nil {
			return err
		}
	}
	n, layers := 0, c.Layers(m.Features, biased, o)
	for _, l := range layers {
		if n += parameters(l); n > MaxValues {
			return param.Errorf("hidden", "the network would have more than %d parameters, which is not possible: its first layers alone have %d", MaxValues, n)
		}
	}
	return c.fitsRates(layers)
}

// fitsImages follows an image through the convolutions.
func (c *Config) fitsImages(s Shape) error {
	for i, channels := range c.list(c.Channels) {
		l := &Convolution{From: s, Outputs: channels, Size: c.Kernel, Stride: c.Stride, Padding: c.Padding}
		if !l.fits() {
			return param.Errorf("kernel", "a kernel of %dx%d pixels does not fit in the %dx%d input of convolution %d with a padding of %d pixels",
				c.Kernel, c.Kernel, s.Height, s.Width, i+1, c.Padding)
		}
		if !l.bounded() {
			return param.Errorf("channels", "convolution %d would need more than %d values for one sample of shape %v, which is not possible", i+1, maxRow, s)
		}
		if _, s = l.Shapes(); s.Height < c.Pool || s.Width < c.Pool {
			return param.Errorf("pool", "pooling windows of %dx%d leave nothing of the %dx%d outputs of convolution %d", c.Pool, c.Pool, s.Height, s.Width, i+1)
		}
		_, s = (&Pool{Of: s, Size: c.Pool}).Shapes()
	}
	return nil
}

// fits reports whether a window fits in the image with its padding.
func (l *Convolution) fits() bool {
	return l.From.Height+2*l.Padding >= l.Size && l.From.Width+2*l.Padding >= l.Size
}

// bounded reports whether what a row needs is within maxRow.
func (l *Convolution) bounded() bool {
	_, to := l.Shapes()
	return to.Size() <= maxRow && l.reads()*to.Area() <= maxRow
}
