package network

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
)

// maxFactor bounds what a layer's learning rate is multiplied by.
const maxFactor = 1000

// rateSettings lists the settings of what layers' learning rates are multiplied by.
func rateSettings[C any](of func(*C) *Config) param.Table[C] {
	return param.Table[C]{
		param.Text("freeze", "layers whose parameters are not trained, such as convolution1,hidden1 (only with features mlp or conv)", "names of layers, such as hidden1 or convolution1,output, or none",
			none, checkFreeze, func(c *C) *string { return &of(c).Freeze }),
		param.Text("rates", "factors of the learning rate for single layers, such as hidden1:0.1,output:2 (only with features mlp or conv)", "LAYER:FACTOR,LAYER:FACTOR,... or none",
			none, checkRates, func(c *C) *string { return &of(c).Rates }),
	}
}

// layerFactor is what the learning rate of a layer is multiplied by.
type layerFactor struct {
	layer  string
	factor float64
}

// parseFreeze reads a list of layers, whose factor is 0.
func parseFreeze(text string) (list []layerFactor, err error) {
	if text == none {
		return nil, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		if name == "" {
			return nil, errLayer
		}
		list = append(list, layerFactor{name, 0})
	}
	return list, nil
}

// parseRates reads a list of layers with factors.
func parseRates(text string) (list []layerFactor, err error) {
	if text == none {
		return nil, nil
	}
	for item := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(item, ":")
		if name == "" || !found {
			return nil, errLayer
		}
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || !(x > 0 && x <= maxFactor) || strings.Trim(value, "0123456789.eE+-") != "" {
			return nil, fmt.Errorf("%q: want a number above 0 and at most %d", value, maxFactor)
		}
		list = append(list, layerFactor{name, x})
	}
	return list, nil
}

var errLayer = fmt.Errorf("want LAYER or LAYER:FACTOR, but the name of a layer or its factor is missing")

func checkFreeze(text string) error {
	list, err := parseFreeze(text)
	return orTwice(list, err)
}

func checkRates(text string) error {
	list, err := parseRates(text)
	return orTwice(list, err)
}

// orTwice returns the error, or one about a layer that comes twice.
func orTwice(list []layerFactor, err error) error {
	seen := make(map[string]bool)
	for _, x := range list {
		if seen[x.layer] {
			return fmt.Errorf("the list has %q twice", x.layer)
		}
		seen[x.layer] = true
	}
	return err
}

// factors returns the layers that freeze and rates name; settings were checked.
func (c *Config) factors() (frozen, rated []layerFactor) {
	frozen, err := parseFreeze(c.Freeze)
	if err == nil {
		rated, err = parseRates(c.Rates)
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
		for _, l := range layers {
			for _, t := range l.Layout() {
				if layerOf(t.Name) == x.layer {
					by[t.Name] = x.factor
				}
			}
		}
	}
	return by
}

// layerOf returns the name of a tensor's layer: hidden1 of hidden1.norm.bias.
func layerOf(tensor string) string {
	name, _, _ := strings.Cut(tensor, ".")
	return name
}

// fitsRates returns a *param.Error for a layer that does not exist, or is named by both settings.
func (c *Config) fitsRates(layers []Layer) error {
	var known []string
	exists := make(map[string]bool)
	for _, l := range layers {
		for _, t := range l.Layout() {
			if name := layerOf(t.Name); !exists[name] {
				exists[name], known = true, append(known, name)
			}
		}
	}
	frozen, rated := c.factors()
	for _, s := range []struct {
		setting string
		list    []layerFactor
	}{{"freeze", frozen}, {"rates", rated}} {
		for _, x := range s.list {
			if !exists[x.layer] {
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
