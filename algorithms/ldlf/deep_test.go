package ldlf

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit"
)

// drawn is the field Initial where all layers are drawn.
var drawn = network.Initial{From: "none", Layers: "all"}

// deepConfig is a forest on a network with two hidden layers.
func deepConfig() *Config {
	c := smallConfig()
	c.Network.Features, c.Network.Hidden, c.Network.Dropout, c.Network.LayerNorm = network.MLP, "6,5", 0.25, true
	c.Init, c.InitStd, c.Optimizer, c.LearningRate, c.Scaling = initHe, 0, optimizerAdam, 0.02, scaling.Standard
	c.ValidationFraction, c.Patience = 0.2, 2
	return c
}

// imageConfig is a forest on a network with two convolutions.
func imageConfig() *Config {
	c := deepConfig()
	c.Network = network.Config{
		Features: network.Conv, Hidden: "5", Shape: "row", Channels: "3,2", Kernel: 3, Stride: 1, Padding: 1, Pool: 1,
		Pooling: "max", Dropout: 0.5,
		Freeze: "none", Rates: "none", Initial: drawn,
	}
	return c
}

// TestDeepDefaults: a network has defaults of its own, in preset auto, and none of them where a
// setting is given.
func TestDeepDefaults(t *testing.T) {
	c := resolve(t, param.Values{"features": "mlp"}, yeast)
	want := network.Config{Features: "mlp", Hidden: "128", Channels: "none", Shape: "none", Pooling: "max", Dropout: 0.5,
		Freeze: "none", Rates: "none", Initial: drawn}
	if c.Network != want || c.BatchSize != 64 || c.Optimizer != optimizerAdam || c.LearningRate != 1e-3 ||
		c.WeightDecay != 1e-3 || !c.LeafFirst ||
		c.LeafBatches != 50 || c.ValidationFraction != 0.1 || c.Patience != 15 || !c.Refit || c.Init != initHe ||
		c.InitStd != 0 || c.Scaling != scaling.Standard {
		t.Errorf("mlp: %+v", c)
	}
	c = resolve(t, param.Values{"features": "conv", "shape": "1x4x6", "batch_size": int64(7), "kernel": int64(5),
		"hidden": "none"}, yeast)
	want = network.Config{Features: "conv", Hidden: "none", Channels: "16,32", Shape: "1x4x6", Kernel: 5, Stride: 1,
		Padding: 2, Pool: 2, Pooling: "max", Freeze: "none", Rates: "none", Initial: drawn}
	if c.Network != want || c.LeafBatches != (yeast.Rows+6)/7 {
		t.Errorf("conv: %+v", c)
	}
	images := *yeast
	images.Shape = dataset.Shape{Channels: 2, Height: 3, Width: 4}
	c = resolve(t, param.Values{"features": "conv", "pool": int64(1)}, &images)
	if c.Network.Shape != "2x3x4" {
		t.Errorf("images: %+v", c)
	}
	c = resolve(t, param.Values{"features": "mlp", "preset": "paper"}, &images)
	if c.Optimizer != optimizerSGD || c.LearningRate != 0.1 || c.BatchSize != 64 || c.Network.Hidden != "128" ||
		c.ValidationFraction != 0 {
		t.Errorf("paper: %+v", c)
	}
}

// resolve returns the settings of a job.
func resolve(t *testing.T, given param.Values, m *dataset.Manifest) *Config {
	t.Helper()
	r, err := New().Resolve(given, m)
	if err != nil {
		t.Fatal(err)
	}
	c, err := settings.Parse(r.Params)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestDeepErrors: what does not go together is refused, with the setting's name.
func TestDeepErrors(t *testing.T) {
	conv := func(more ...any) param.Values {
		v := param.Values{"features": "conv", "shape": "1x4x6"}
		for i := 0; i < len(more); i += 2 {
			v[more[i].(string)] = more[i+1]
		}
		return v
	}
	for _, c := range []struct {
		given      param.Values
		name, text string
	}{
		{param.Values{"hidden": "64"}, "hidden", "a linear function has no layers"},
		{param.Values{"dropout": 0.5}, "dropout", "a linear function has no layers"},
		{param.Values{"layer_norm": true}, "layer_norm", "a linear function has no layers"},
		{param.Values{"kernel": int64(3)}, "kernel", "needs features conv"},
		{param.Values{"init": "he"}, "init", "needs features mlp or conv"},
		{param.Values{"features": "mlp", "shape": "1x4x6"}, "shape", "needs features conv"},
		{param.Values{"features": "mlp", "pooling": "average"}, "pooling", "needs features conv"},
		{param.Values{"features": "mlp", "hidden": "none"}, "hidden", "needs at least one hidden layer"},
		{param.Values{"features": "mlp", "hidden": "64,x"}, "hidden", `"x" is not a whole number from 1 to 65536`},
		{param.Values{"features": "mlp", "hidden": "64,"}, "hidden", `"" is not a whole number`},
		{param.Values{"features": "mlp", "hidden": strings.Repeat("65536,", 30) + "65536"}, "hidden",
			"more than 134217728 parameters"},
		{param.Values{"features": "mlp", "dropout": 1.0}, "dropout", "a number from 0 to below 1"},
		{param.Values{"features": "mlp", "dropout": -0.1}, "dropout", "a number from 0 to below 1"},
		{param.Values{"features": "mlp", "init": "xavier"}, "init", "needs features linear"},
		{param.Values{"features": "mlp", "init_std": 0.1}, "init_std", "needs features linear"},
		{param.Values{"features": "mlp", "flip": true}, "flip", "needs features conv"},
		{conv("crop", int64(5)), "crop", "a square of 5x5 does not fit in an image of 4x6"},
		{conv("shift", int64(6)), "shift", "a shift of 6 pixels would leave nothing of an image of 4x6"},
		{param.Values{"freeze": "output"}, "freeze", "a linear function has no layers"},
		{param.Values{"features": "mlp", "freeze": "hidden2,output"}, "freeze",
			`layer "hidden2" does not exist; the layers are hidden1, output`},
		{param.Values{"features": "mlp", "freeze": "output,output"}, "freeze", `the list has "output" twice`},
		{param.Values{"features": "mlp", "rates": "output:0"}, "rates", `"0": want a number above 0`},
		{param.Values{"features": "mlp", "rates": "output"}, "rates", "the name of a layer or its factor is missing"},
		{param.Values{"features": "mlp", "rates": "output:2", "freeze": "output"}, "rates",
			"layer output is also listed in freeze"},
		{param.Values{"features": "conv"}, "shape", "needs the shape of a sample"},
		{conv("shape", "1x8x8"), "shape", "the shape 1x8x8 has 64 values, but the dataset has 24 features"},
		{conv("shape", "8x8"), "shape", "want CHANNELSxHEIGHTxWIDTH"},
		{conv("pool", int64(5)), "pool", "pooling windows of 5x5 leave nothing of the 4x6 outputs of convolution 1"},
		{conv("pool", int64(3)), "pool", "pooling windows of 3x3 leave nothing of the 1x2 outputs of convolution 2"},
		{conv("kernel", int64(7), "padding", int64(1)), "kernel",
			"a kernel of 7x7 pixels does not fit in the 4x6 input of convolution 1"},
		{conv("padding", int64(3)), "padding", "must be less than the side of the kernel, 3"},
		{conv("channels", "none"), "channels", "needs at least one convolution"},
		{conv("channels", "2,65536", "kernel", int64(31), "padding", int64(30)), "channels",
			"convolution 2 would need more than 16777216 values"},
		{conv("stride", int64(0)), "stride", "at least 1"},
		{conv("hidden", "none", "dropout", 0.5), "dropout", "hidden is none"},
	} {
		_, err := New().Resolve(c.given, yeast)
		var wrong *param.Error
		if !errors.As(err, &wrong) || wrong.Name != c.name || !strings.Contains(wrong.Reason.String(), c.text) {
			t.Errorf("%v: error %v, want %s: %s", c.given, err, c.name, c.text)
		}
	}
}

// TestShapeOfImages: a shape that is not the shape of the dataset's images is refused. The error about
// layers that do not fit says that channels may be last.
func TestShapeOfImages(t *testing.T) {
	images := *yeast
	images.Shape = dataset.Shape{Channels: 6, Height: 2, Width: 2}
	for _, c := range []struct {
		given param.Values
		text  string
	}{
		{param.Values{"features": "conv", "shape": "2x6x2"},
			"shape: the images of the dataset have the shape 6x2x2 (channels x height x width), not 2x6x2"},
		{param.Values{"features": "conv"}, "pool: pooling windows of 2x2 leave nothing of the 1x1 outputs of convolution " +
			"2; the images of the dataset have 6 channels of 2x2 pixels: if the channels are last, use numpy.moveaxis"},
		{param.Values{"features": "conv", "pool": int64(1)}, ""},
		{param.Values{"features": "conv", "pool": int64(1), "shape": "6x2x2"}, ""},
		{param.Values{"features": "conv", "kernel": int64(1), "padding": int64(0), "pool": int64(1), "shape": "row"}, ""},
		{param.Values{"features": "conv", "kernel": int64(3), "padding": int64(0), "shape": "row"},
			"does not fit in the 1x24 input of convolution 1 with a padding of 0 pixels"},
	} {
		_, err := New().Resolve(c.given, &images)
		if (err == nil) != (c.text == "") || err != nil && (!strings.Contains(err.Error(), c.text) ||
			c.given["shape"] == "row" && strings.Contains(err.Error(), "moveaxis")) {
			t.Errorf("%v: error %v, want %s", c.given, err, c.text)
		}
	}
}

// TestDeepLearns: a tree of one split on a network fits what one on a linear function cannot: labels
// that follow from the sign of the product of two features.
func TestDeepLearns(t *testing.T) {
	testkit.WithoutRace(t)
	p := makeProblem(8, 400, 2, 2, 1)
	for i := range p.n {
		share := float32(0.1)
		if p.x[2*i]*p.x[2*i+1] > 0 {
			share = 0.9
		}
		p.d[2*i], p.d[2*i+1] = share, 1-share
	}
	m, d := p.data(4, false, dataset.Split{})
	loss := func(c *Config) float64 {
		c.ValidationFraction, c.LeafFirst, c.Steps, c.BatchSize = 0, true, 600, 64
		c.Trees, c.Depth, c.Outputs = 1, 2, 1
		tr, k := start(t, jobOf(c, 3), m)
		drive(t, tr, k, d, 1, func(*trainer) {})
		return meanDivergence(predictAll(modelOf(t, tr), d), d, 2)
	}
	deep := deepConfig()
	deep.Network.Hidden, deep.Network.Dropout, deep.Network.LayerNorm = "16", 0, false
	if linear, network := loss(smallConfig()), loss(deep); !(network < linear/3) {
		t.Errorf("K-L %v, of a linear function %v", network, linear)
	}
}

// TestFreeze: frozen layers keep their bytes, biases and normalisation too, and the others move.
func TestFreeze(t *testing.T) {
	p := makeProblem(8, 200, 5, 3, 1)
	c := deepConfig()
	c.Network.Freeze, c.Network.Rates, c.Warmup, c.Cosine, c.ValidationFraction = "hidden1,output",
		"hidden2:0.5", 5, true, 0
	m, d := p.data(4, false, dataset.Split{})
	tr, k := start(t, jobOf(c, 3), m)
	first := slices.Clone(tr.Theta())
	drive(t, tr, k, d, 1, func(*trainer) {})
	at := 0
	for _, l := range tr.Function.Layout() {
		frozen := !strings.HasPrefix(l.Name, "hidden2")
		if same := slices.Equal(first[at:at+l.Size()], tr.Theta()[at:at+l.Size()]); same != frozen {
			t.Errorf("%s: the same is %v", l.Name, same)
		}
		at += l.Size()
	}
}
