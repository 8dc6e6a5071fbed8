// Package network has feature functions of several layers: what algorithms that train a
// gradient.Descent put in the place of a linear function. A Network is a list of Layers:
//
//	Dense        y = Wᵀx + b
//	Convolution  the same on each k×k window of an image
//	ReLU         max(0, x);  Logistic: 1/(1 + exp(-x))
//	Pool         the greatest value, or the mean, of each window
//	Dropout      in training: some values are 0, the others grow
//	Augment      in training: images are mirrored and moved
//	Crop         in training any window of an image, else the one in the middle
//	Norm         layer normalisation (Ba et al. 2016)
//
// Config is what a spec says of a network; it makes the layers. DESIGN.md says in which order
// sums are taken, and what a model file has of a network.
package network

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
)

// The kinds of feature functions: the words of the setting features.
const (
	Linear = "linear"
	MLP    = "mlp"
	Conv   = "conv"
)

// Config is what a spec says of a feature function. It is a field of an algorithm's Config.
type Config struct {
	Features  string
	Hidden    string // a list
	Channels  string // a list
	Kernel    int
	Stride    int
	Padding   int
	Pool      int
	Pooling   string
	Dropout   float64
	LayerNorm bool
	Shape     string
	Flip      bool
	Shift     int
	Crop      int
	Freeze    string // a list of layers
	Rates     string // a list of layers with factors
	Initial   Initial
}

// maxSize bounds the sides of windows.
const maxSize = 31

// Settings lists the settings of a field of C. The function of returns the field. features are the kinds that the
// algorithm takes; the first kind is the default.
func Settings[C any](of func(*C) *Config, features ...string) param.Table[C] {
	return append(param.Table[C]{
		param.Word("features", kinds(features), func(c *C) *string { return &of(c).Features }, features...),
		param.Text("hidden", "number of ReLU units in each hidden layer (only with features mlp or conv)", listForm,
			none, checkList,
			func(c *C) *string { return &of(c).Hidden }).Says("128 with features mlp or conv, else none"),
		param.Float("dropout", "fraction of the hidden units that a training step drops; the others are multiplied by "+
			"1/(1-dropout). Validation, leaf updates and predictions drop none",
			0, math.Nextafter(1, 0), 0, func(c *C) *float64 {
				return &of(c).Dropout
			}).Says("0.5 with hidden layers, else 0; auto with features mlp and at least 20,000 samples: 0"),
		param.Bool("layer_norm", "layer normalisation after each hidden layer and each convolution (Ba et al. 2016)", false,
			func(c *C) *bool { return &of(c).LayerNorm }),
		param.Text("shape", "shape of the image that a sample's features form, such as 1x8x8 for 64 features; row: "+
			"1x1xFEATURES (only with features conv)",
			"CHANNELSxHEIGHTxWIDTH, row or none", none, checkShape, func(c *C) *string {
				return &of(c).Shape
			}).Says("with features conv the shape of the dataset (--shape), else none"),
		param.Bool("flip",
			"mirror each image left to right with probability 1/2 in a training step (only with features conv)", false,
			func(c *C) *bool {
				return &of(c).Flip
			}),
		param.Int("shift", "maximum random shift of an image in a training step, in pixels, both horizontally and "+
			"vertically (only with features conv)", 0, maxSize, 0,
			func(c *C) *int { return &of(c).Shift }),
		param.Int("crop", "side of the square that the network reads from an image. In training steps its place is random, "+
			"otherwise the middle; 0: the whole image (only with features conv)",
			0, maxSide, 0, func(c *C) *int { return &of(c).Crop }),
		param.Text("channels", "number of output channels of each convolution; convolutions come before the hidden layers "+
			"(only with features conv)", listForm, none, checkList,
			func(c *C) *string { return &of(c).Channels }).Says("16,32 with features conv, else none"),
		param.Int("kernel", "side of the square kernel of a convolution, in pixels (only with features conv)", 0, maxSize, 0,
			func(c *C) *int { return &of(c).Kernel }).Says("3 with features conv, else 0"),
		param.Int("stride", "stride of a convolution, in pixels (only with features conv)", 0, maxSize, 0, func(c *C) *int {
			return &of(c).Stride
		}).Says("1 with features conv, else 0"),
		param.Int("padding", "zero padding on each side of the input of a convolution, in pixels (only with features conv)",
			0, maxSize-1, 0,
			func(c *C) *int { return &of(c).Padding }).Says("(kernel - 1)/2 with features conv, else 0"),
		param.Int("pool", "side of the square pooling window after a convolution; 1: no pooling (only with features conv)", 0,
			maxSize, 0,
			func(c *C) *int { return &of(c).Pool }).Says("2 with features conv, else 0"),
		param.Word("pooling", "value of a pooling window: its maximum (max) or its mean (average)", func(c *C) *string {
			return &of(c).Pooling
		}, max2d, average),
		param.Text("freeze", "layers whose parameters are not trained, such as convolution1,hidden1 (only with features "+
			"mlp or conv)", "names of layers, such as hidden1 or convolution1,output, or none",
			none, checkFreeze, func(c *C) *string { return &of(c).Freeze }),
		param.Text("rates", "factors of the learning rate for single layers, such as hidden1:0.1,output:2 (only with "+
			"features mlp or conv)", "LAYER:FACTOR,LAYER:FACTOR,... or none",
			none, checkRates, func(c *C) *string { return &of(c).Rates }),
	}, InitSettings(func(c *C) *Initial { return &of(c).Initial })...)
}

// kinds describes the setting features.
func kinds(words []string) string {
	says := map[string]string{
		Linear: "linear (no hidden layers)", MLP: "mlp (hidden layers)",
		Conv: "conv (convolutions on images, then hidden layers)",
	}
	var all []string
	for _, w := range words {
		all = append(all, says[w])
	}
	return "function of the features: " + strings.Join(all, ", ")
}

// The defaults of networks.
const (
	defaultHidden   = "128"
	defaultDropout  = 0.5
	defaultChannels = "16,32"
	defaultKernel   = 3
	defaultPool     = 2
)

// Deep reports whether the feature function is a network.
func (c *Config) Deep() bool { return c.Features == MLP || c.Features == Conv }

// Fill sets what was not given and follows from the kind of the feature function, or from the
// dataset.
func (c *Config) Fill(given param.Values, m *dataset.Manifest) {
	if !c.Deep() {
		return
	}
	param.StandIn(given, "hidden", &c.Hidden, defaultHidden)
	if c.Hidden != none {
		param.StandIn(given, "dropout", &c.Dropout, defaultDropout)
	}
	if c.Features != Conv {
		return
	}
	if m.Shape != (dataset.Shape{}) {
		param.StandIn(given, "shape", &c.Shape, m.Shape.String())
	}
	param.StandIn(given, "channels", &c.Channels, defaultChannels)
	param.StandIn(given, "kernel", &c.Kernel, defaultKernel)
	param.StandIn(given, "stride", &c.Stride, 1)
	param.StandIn(given, "padding", &c.Padding, max(0, c.Kernel-1)/2)
	param.StandIn(given, "pool", &c.Pool, defaultPool)
}

// Check returns a *param.Error for the first setting that contradicts the kind of the feature
// function.
func (c *Config) Check() error {
	if err := c.Initial.Check(); err != nil {
		return err
	}
	if !c.Deep() {
		const why = "needs features mlp or conv, because a linear function has no layers"
		switch {
		case c.Hidden != none:
			return param.Errorf("hidden", why)
		case c.Dropout != 0:
			return param.Errorf("dropout", why)
		case c.LayerNorm:
			return param.Errorf("layer_norm", why)
		case c.Freeze != none:
			return param.Errorf("freeze", why)
		case c.Rates != none:
			return param.Errorf("rates", why)
		case c.Initial.From != none:
			return param.Errorf(SettingInitFrom, why)
		}
		return c.checkNoImages()
	}
	if c.Hidden == none && c.Features == MLP {
		return param.Errorf("hidden", "features mlp needs at least one hidden layer: give its number of units")
	}
	if c.Hidden == none && c.Dropout != 0 {
		return param.Errorf("dropout", "needs hidden layers, but hidden is none")
	}
	if c.Features == MLP {
		return c.checkNoImages()
	}
	return c.checkConv()
}

// checkNoImages refuses settings of convolutions where there are none.
func (c *Config) checkNoImages() error {
	for _, s := range []struct {
		name  string
		given bool
	}{
		{"shape", c.Shape != none}, {"channels", c.Channels != none}, {"kernel", c.Kernel != 0}, {"stride", c.Stride != 0},
		{"padding", c.Padding != 0}, {"pool", c.Pool != 0}, {"pooling", c.Pooling != max2d},
		{"flip", c.Flip}, {"shift", c.Shift != 0}, {"crop", c.Crop != 0},
	} {
		if s.given {
			return param.Errorf(s.name, "needs features conv")
		}
	}
	return nil
}

func (c *Config) checkConv() error {
	for _, s := range []struct {
		name  string
		value int
	}{{"kernel", c.Kernel}, {"stride", c.Stride}, {"pool", c.Pool}} {
		if s.value == 0 {
			return param.Errorf(s.name, "must be at least 1 with features conv")
		}
	}
	switch {
	case c.Shape == none:
		return param.Errorf("shape", "features conv needs the shape of a sample, which the dataset does not have: give "+
			"shape, such as {shape:1x8x8} for 64 features, or read the data with {shape}")
	case c.Channels == none:
		return param.Errorf("channels", "features conv needs at least one convolution: give its number of channels")
	case c.Padding >= c.Kernel:
		return param.Errorf("padding", "a padding of %d pixels must be less than the side of the kernel, %d, or some "+
			"outputs would read nothing", c.Padding, c.Kernel)
	}
	return nil
}

// Output is the last layer of a network.
type Output struct {
	Units int
	Start Start
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

// Fits returns a *param.Error where the layers do not go with one another or with the data.
func (c *Config) Fits(m *dataset.Manifest, biased bool, o Output) error {
	if !c.Deep() {
		return nil
	}
	if c.Features == Conv {
		s := c.image(m.Features)
		if s.Size() != m.Features {
			return param.Errorf("shape", "the shape %v has %d values, but the dataset has %d features", s, s.Size(), m.Features)
		}
		if images := Shape(m.Shape); images != s && images != (Shape{}) && c.Shape != row {
			return param.Errorf("shape", "the images of the dataset have the shape %v (channels x height x width), not %v; "+
				"leave shape out, or transpose the images", images, s)
		}
		if c.Shift >= s.Height && c.Shift >= s.Width {
			return param.Errorf("shift", "a shift of %d pixels would leave nothing of an image of %dx%d", c.Shift,
				s.Height, s.Width)
		}
		if c.Crop > s.Height || c.Crop > s.Width {
			return param.Errorf("crop", "a square of %dx%d does not fit in an image of %dx%d", c.Crop, c.Crop, s.Height, s.Width)
		}
		if c.Crop > 0 {
			_, s = (&Crop{Of: s, Side: c.Crop}).Shapes()
		}
		if err := c.fitsImages(s); err != nil {
			var wrong *param.Error
			if images := m.Shape; errors.As(err, &wrong) && c.Shape != row && images.Width <= 4 && images.Channels > 4 {
				err = param.Errorf(wrong.Name, "%s; the images of the dataset have %d channels of %dx%d pixels: if the channels "+
					"are last, use numpy.moveaxis(images, -1, 1)",
					wrong.Reason, images.Channels, images.Height, images.Width)
			}
			return err
		}
	}
	n, layers := 0, c.Layers(m.Features, biased, o)
	for _, l := range layers {
		if n += parameters(l); n > MaxValues {
			return param.Errorf("hidden", "the network would have more than %d parameters, which is not possible: its first "+
				"layers alone have %d", MaxValues, n)
		}
	}
	return c.fitsRates(layers)
}

// fitsImages follows an image through the convolutions.
func (c *Config) fitsImages(s Shape) error {
	for i, channels := range c.list(c.Channels) {
		l := &Convolution{From: s, Outputs: channels, Size: c.Kernel, Stride: c.Stride, Padding: c.Padding}
		if !l.fits() {
			return param.Errorf("kernel", "a kernel of %dx%d pixels does not fit in the %dx%d input of convolution %d with a "+
				"padding of %d pixels",
				c.Kernel, c.Kernel, s.Height, s.Width, i+1, c.Padding)
		}
		if !l.bounded() {
			return param.Errorf("channels", "convolution %d would need more than %d values for one sample of shape %v, which "+
				"is not possible", i+1, maxRow, s)
		}
		if _, s = l.Shapes(); s.Height < c.Pool || s.Width < c.Pool {
			return param.Errorf("pool", "pooling windows of %dx%d leave nothing of the %dx%d outputs of convolution %d", c.Pool,
				c.Pool, s.Height, s.Width, i+1)
		}
		_, s = (&Pool{Of: s, Size: c.Pool}).Shapes()
	}
	return nil
}

// fitsRates returns a *param.Error for a layer that does not exist, or is named by both settings.
func (c *Config) fitsRates(layers []Layer) error {
	known := layersOf(layoutOf(layers))
	frozen, rated := c.factors()
	for _, s := range []struct {
		setting string
		list    []layerFactor
	}{{"freeze", frozen}, {"rates", rated}} {
		for _, x := range s.list {
			if !slices.Contains(known, x.layer) {
				return param.Errorf(s.setting, "layer %q does not exist; the layers are %s", x.layer, strings.Join(known, ", "))
			}
		}
	}
	for _, x := range rated {
		for _, y := range frozen {
			if x.layer == y.layer {
				return param.Errorf("rates", "layer %s is also listed in freeze", x.layer)
			}
		}
	}
	return nil
}

// factors returns the layers that freeze and rates name; settings were checked.
func (c *Config) factors() (frozen, rated []layerFactor) {
	frozen, err := parseFactors(c.Freeze, false)
	if err == nil {
		rated, err = parseFactors(c.Rates, true)
	}
	if err != nil {
		panic("network: rates that were not checked")
	}
	return frozen, rated
}

// Factors returns what the learning rates of a network's tensors are multiplied by, by name, for
// gradient.Rule. The tensors of a layer begin with its name.
func (c *Config) Factors(layers []Layer) map[string]float64 {
	if !c.Deep() {
		return nil
	}
	by := make(map[string]float64)
	frozen, rated := c.factors()
	for _, x := range append(frozen, rated...) {
		for _, t := range layoutOf(layers) {
			if layerOf(t.Name) == x.layer {
				by[t.Name] = x.factor
			}
		}
	}
	return by
}
