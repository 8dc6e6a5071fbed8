package network

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
)

// SettingInitFrom is the setting that names weights. A client that submits a job puts their digest
// (Weights.Digest) in the place of a file or of a model.
const SettingInitFrom = "init_from"

// Initial says where the first parameters of a network come from, beside a seed. It is a field of
// a Config.
type Initial struct {
	From   string // the digest of a file of Weights, or none
	Layers string // the layers that are taken, or all
}

// all is the word of init_layers for every layer that the weights have.
const all = "all"

// maxFrom bounds the text of init_from: the path of a file, before it is a digest.
const maxFrom = 4096

// InitSettings lists the settings of the field that of returns.
func InitSettings[C any](of func(*C) *Initial) param.Table[C] {
	return param.Table[C]{
		param.Text(SettingInitFrom, "initial weights: a model file, an .npz file with one array for each tensor of a layer, or a model on the cluster",
			"a file, the name or the digest of a model on the cluster, or none", none, checkFrom, func(c *C) *string { return &of(c).From }),
		param.Text("init_layers", "layers that start from the weights of init_from, such as convolution1,hidden1; the others start at random. all: every layer that init_from has", "names of layers, such as hidden1 or convolution1,output, or all",
			all, checkInitLayers, func(c *C) *string { return &of(c).Layers }),
	}
}

func checkFrom(text string) error {
	if text == "" || len(text) > maxFrom {
		return fmt.Errorf("want 1 to %d characters", maxFrom)
	}
	return nil
}

func checkInitLayers(text string) error {
	if text == none {
		return errors.New("no layer would start from the weights: omit init_from")
	}
	return checkFreeze(text)
}

// Digest returns the digest of the weights; "": all layers are drawn.
func (c *Initial) Digest() string {
	if c.From == none {
		return ""
	}
	return c.From
}

// Check returns a *param.Error where the settings contradict each other.
func (c *Initial) Check() error {
	switch {
	case c.From == none && c.Layers != all:
		return param.Errorf("init_layers", "needs init_from, which names the weights")
	case c.From != none && !isDigest(c.From):
		return param.Errorf(SettingInitFrom, "%.80q is not the digest of uploaded weights; only coppice train reads files and models, and only for a single job", c.From)
	}
	return nil
}

// isDigest reports whether text is a SHA-256 in lower-case hex.
func isDigest(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// Fits returns an error if the bytes of the weights are not of a network of these layers: a
// *param.Error, or one that wraps ErrWeights.
func (c *Initial) Fits(layers []Layer, file []byte) error {
	_, err := c.take(layers, file)
	return err
}

// Give has a function, which is a Network, begin with the weights that the bytes are of; without
// init_from it does nothing. Errors are those of Fits.
func (c *Initial) Give(f gradient.Function, file []byte) (err error) {
	if c.From != none {
		n := f.(*Network)
		n.Given, err = c.take(n.Layers, file)
	}
	return err
}

// Memory is about what the bytes of the weights, and what is read of them, take beside a trainer.
func (c *Initial) Memory(f *Network) int64 {
	if c.From == none {
		return 0
	}
	return 2 * 4 * int64(gradient.Parameters(f))
}

// take returns the tensors that begin with given values, by name.
func (c *Initial) take(layers []Layer, file []byte) (map[string][]float32, error) {
	w, err := DecodeWeights(file)
	if err != nil {
		return nil, err
	}
	var own []gradient.Layer
	for _, l := range layers {
		own = append(own, l.Layout()...)
	}
	if err := c.checkNames(own, w); err != nil {
		return nil, err
	}
	taken := make(map[string][]float32)
	for _, t := range own {
		given := w.find(t.Name)
		if given == nil || !c.takes(layerOf(t.Name)) {
			continue
		}
		if !slices.Equal(given.Dims, t.Dims) {
			return nil, param.Errorf(SettingInitFrom, "%s has the shape %s in the weights but %s in this network; list the layers to use in init_layers", t.Name, times(given.Dims), times(t.Dims))
		}
		taken[t.Name] = given.F32
	}
	if len(taken) == 0 {
		return nil, param.Errorf(SettingInitFrom, "the weights have no layer of this network: the weights have %s, the network has %s", strings.Join(w.layers(), ", "), strings.Join(layersOf(own), ", "))
	}
	return taken, nil
}

// takes reports whether init_layers has a layer.
func (c *Initial) takes(layer string) bool {
	return c.Layers == all || slices.Contains(strings.Split(c.Layers, ","), layer)
}

// checkNames returns an error about a layer of init_layers that the network or the weights lack.
func (c *Initial) checkNames(own []gradient.Layer, w *Weights) error {
	if c.Layers == all {
		return nil
	}
	for name := range strings.SplitSeq(c.Layers, ",") {
		if known := layersOf(own); !slices.Contains(known, name) {
			return param.Errorf("init_layers", "layer %q does not exist; the layers are %s", name, strings.Join(known, ", "))
		}
		if known := w.layers(); !slices.Contains(known, name) {
			return param.Errorf("init_layers", "the weights have no layer %q; their layers are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// layersOf returns the names of the layers that have tensors, in their order.
func layersOf(tensors []gradient.Layer) (names []string) {
	for _, t := range tensors {
		if name := layerOf(t.Name); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
