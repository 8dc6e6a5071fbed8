package network

import (
	"fmt"
	"math"
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

// The words of other settings.
const (
	none    = "none" // no list, no shape
	row     = "row"  // the shape 1×1×features
	max2d   = "max"
	average = "average"
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

// Settings lists the settings of the field that of returns. features are the kinds that the algorithm
// takes, of which the first is the default.
func Settings[C any](of func(*C) *Config, features ...string) param.Table[C] {
	return append(param.Table[C]{
		param.Word("features", kinds(features), func(c *C) *string { return &of(c).Features }, features...),
		param.Text("hidden", "number of ReLU units in each hidden layer (only with features mlp or conv)", listForm, none, checkList,
			func(c *C) *string { return &of(c).Hidden }).Says("128 with features mlp or conv, else none"),
		param.Float("dropout", "fraction of the hidden units that a training step drops; the others are multiplied by 1/(1-dropout). Validation, leaf updates and predictions drop none",
			0, math.Nextafter(1, 0), 0, func(c *C) *float64 { return &of(c).Dropout }).Says("0.5 with hidden layers, else 0"),
		param.Bool("layer_norm", "layer normalisation after each hidden layer and each convolution (Ba et al. 2016)", false,
			func(c *C) *bool { return &of(c).LayerNorm }),
		param.Text("shape", "shape of the image that a sample's features form, such as 1x8x8 for 64 features; row: 1x1xFEATURES (only with features conv)",
			"CHANNELSxHEIGHTxWIDTH, row or none", none, checkShape, func(c *C) *string { return &of(c).Shape }).Says("with features conv the shape of the dataset (--shape), else none"),
		param.Bool("flip", "mirror each image left to right with probability 1/2 in a training step (only with features conv)", false, func(c *C) *bool { return &of(c).Flip }),
		param.Int("shift", "maximum random shift of an image in a training step, in pixels, both horizontally and vertically (only with features conv)", 0, maxSize, 0,
			func(c *C) *int { return &of(c).Shift }),
		param.Int("crop", "side of the square that the network reads from an image. In training steps its place is random, otherwise the middle; 0: the whole image (only with features conv)",
			0, maxSide, 0, func(c *C) *int { return &of(c).Crop }),
		param.Text("channels", "number of output channels of each convolution; convolutions come before the hidden layers (only with features conv)", listForm, none, checkList,
			func(c *C) *string { return &of(c).Channels }).Says("16,32 with features conv, else none"),
		param.Int("kernel", "side of the square kernel of a convolution, in pixels (only with features conv)", 0, maxSize, 0,
			func(c *C) *int { return &of(c).Kernel }).Says("3 with features conv, else 0"),
		param.Int("stride", "stride of a convolution, in pixels (only with features conv)", 0, maxSize, 0, func(c *C) *int { return &of(c).Stride }).Says("1 with features conv, else 0"),
		param.Int("padding", "zero padding on each side of the input of a convolution, in pixels (only with features conv)", 0, maxSize-1, 0,
			func(c *C) *int { return &of(c).Padding }).Says("(kernel - 1)/2 with features conv, else 0"),
		param.Int("pool", "side of the square pooling window after a convolution; 1: no pooling (only with features conv)", 0, maxSize, 0,
			func(c *C) *int { return &of(c).Pool }).Says("2 with features conv, else 0"),
		param.Word("pooling", "value of a pooling window: its maximum (max) or its mean (average)", func(c *C) *string { return &of(c).Pooling }, max2d, average),
	}, append(rateSettings(of), InitSettings(func(c *C) *Initial { return &of(c).Initial })...)...)
}

// kinds describes the setting features.
func kinds(words []string) string {
	says := map[string]string{
		Linear: "linear (no hidden layers)", MLP: "mlp (hidden layers)", Conv: "conv (convolutions on images, then hidden layers)",
	}
	var all []string
	for _, w := range words {
		all = append(all, says[w])
	}
	return "function of the features: " + strings.Join(all, ", ")
}

// listForm says what a list looks like.
const listForm = "whole numbers such as 128 or 256,128, or none"

// mostLayers bounds the numbers of a list.
const mostLayers = 32

var errMany = fmt.Errorf("the list has more than %d layers", mostLayers)

// parseList reads a list of numbers; none has none.
func parseList(text string) ([]int, error) {
	if text == none {
		return nil, nil
	}
	parts := strings.Split(text, ",")
	if len(parts) > mostLayers {
		return nil, errMany
	}
	return parseNumbers(parts)
}

func checkList(text string) error {
	_, err := parseList(text)
	return err
}

func checkShape(text string) error {
	if text == none || text == row {
		return nil
	}
	_, err := dataset.ParseShape(text)
	return err
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
		return c.checkLinear()
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

func (c *Config) checkLinear() error {
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
		return param.Errorf("shape", "features conv needs the shape of a sample, which the dataset does not have: give shape, such as 1x8x8 for 64 features, or read the data with --shape")
	case c.Channels == none:
		return param.Errorf("channels", "features conv needs at least one convolution: give its number of channels")
	case c.Padding >= c.Kernel:
		return param.Errorf("padding", "a padding of %d pixels must be less than the side of the kernel, %d, or some outputs would read nothing", c.Padding, c.Kernel)
	}
	return nil
}
