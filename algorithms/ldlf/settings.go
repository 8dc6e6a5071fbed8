package ldlf

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
)

// setting binds a described parameter to its field of Config.
type setting struct {
	algorithms.Param
	field func(*Config) any // *int, *float64, *bool or *string
}

// settings lists what a spec may say, in the order of help texts.
var settings = []setting{
	word("preset", "auto fits the dataset and stops early; paper is the paper's and its authors' solver",
		"auto", func(c *Config) any { return &c.Preset }, presetAuto, presetPaper),
	whole("trees", "trees of the forest", "5", 1, 1000, func(c *Config) any { return &c.Trees }),
	whole("depth", "depth of a tree: 2^(depth-1) leaves", "7", 2, 20, func(c *Config) any { return &c.Depth }),
	whole("outputs", "output units of the feature function, at least the 2^(depth-1)-1 split nodes of a tree",
		"64, or 2^(depth-1) where that is more", 1, 1<<20, func(c *Config) any { return &c.Outputs }),
	flag("bias", "the feature function has a bias", "true", func(c *Config) any { return &c.Bias }),
	word("scaling", "scaling of features: none, standard (mean 0, deviation 1) or minmax (0 to 1)",
		"auto: standard if at least 20 % of the entries are non-zero, else none; paper: none",
		func(c *Config) any { return &c.Scaling }, scalingNone, scalingStandard, scalingMinMax),
	whole("batch_size", "rows of a mini-batch", "auto: 128; paper: 64", 1, 1<<20, func(c *Config) any { return &c.BatchSize }),
	word("optimizer", "sgd (with momentum) or adam (β2 0.999, ε 1e-8)", "sgd",
		func(c *Config) any { return &c.Optimizer }, optimizerSGD, optimizerAdam),
	real("learning_rate", "learning rate of the first step", "auto: 2; paper: 0.1; with adam: 0.001", 1e-12, 1e6,
		func(c *Config) any { return &c.LearningRate }),
	whole("learning_rate_step", "steps after which the learning rate is multiplied by learning_rate_decay; 0: never",
		"auto: 0; paper: 10000", 0, 1<<40, func(c *Config) any { return &c.LearningRateStep }),
	real("learning_rate_decay", "factor of the learning rate every learning_rate_step steps", "0.5", 1e-6, 1,
		func(c *Config) any { return &c.LearningRateDecay }),
	real("momentum", "momentum of sgd; β1 of adam", "0.9", 0, 0.9999, func(c *Config) any { return &c.Momentum }),
	real("weight_decay", "decay of every parameter, the bias included: the gradient gains weight_decay·Θ", "auto: 1e-5; paper: 0", 0, 1,
		func(c *Config) any { return &c.WeightDecay }),
	word("init", "first Θ: xavier, uniform within ±sqrt(3/features), or normal with deviation init_std; the bias begins at 0",
		"auto: normal; paper: xavier", func(c *Config) any { return &c.Init }, initXavier, initNormal),
	real("init_std", "deviation of the first Θ with init normal; 0 with xavier", "auto: 1/sqrt(mean non-zeros of a row)", 0, 1e6,
		func(c *Config) any { return &c.InitStd }),
	whole("leaf_iterations", "iterations of Eq. 12 in a leaf update", "20", 1, 1000, func(c *Config) any { return &c.LeafIterations }),
	whole("leaf_batches", "mini-batches between leaf updates, on which the update works", "auto: about an epoch, 10 to 100; paper: 100", 1, maxWindow,
		func(c *Config) any { return &c.LeafBatches }),
	flag("leaf_first", "begin with a leaf update instead of steps that a uniform q leaves without gradient", "auto: true; paper: false",
		func(c *Config) any { return &c.LeafFirst }),
	real("validation_fraction", "share of the training rows (at least 20 rows) kept for early stopping; 0: no early stopping",
		"auto: 0.2; paper: 0", 0, 0.5, func(c *Config) any { return &c.ValidationFraction }),
	real("validation_margin", "standard errors by which a validation must be better to reset the patience; the least loss is kept whatever it is", "0", 0, 100, func(c *Config) any { return &c.ValidationMargin }),
	whole("patience", "validations without improvement after which training stops", "10", 1, 1e9,
		func(c *Config) any { return &c.Patience }),
	flag("refit", "train once more, on the validation rows too, for as many steps as were best", "auto: true; paper: false",
		func(c *Config) any { return &c.Refit }),
	whole("steps", "gradient steps at most; early stopping may end before", "25000", 1, 1<<40,
		func(c *Config) any { return &c.Steps }),
}

func whole(name, doc, def string, lo, hi float64, field func(*Config) any) setting {
	return setting{algorithms.Param{Name: name, Kind: algorithms.Int, Doc: doc, Default: def, Min: lo, Max: hi}, field}
}

func real(name, doc, def string, lo, hi float64, field func(*Config) any) setting {
	return setting{algorithms.Param{Name: name, Kind: algorithms.Float, Doc: doc, Default: def, Min: lo, Max: hi}, field}
}

func flag(name, doc, def string, field func(*Config) any) setting {
	return setting{algorithms.Param{Name: name, Kind: algorithms.Bool, Doc: doc, Default: def}, field}
}

func word(name, doc, def string, field func(*Config) any, words ...string) setting {
	return setting{algorithms.Param{Name: name, Kind: algorithms.Word, Doc: doc, Default: def, Words: words}, field}
}

// set writes a given value, of the type that its kind has in algorithms.Values.
func (s *setting) set(c *Config, value any) error {
	switch p := s.field(c).(type) {
	case *int:
		if v, ok := value.(int64); ok {
			*p = int(v)
			return nil
		}
	case *float64:
		if v, ok := value.(float64); ok {
			*p = v
			return nil
		}
	case *bool:
		if v, ok := value.(bool); ok {
			*p = v
			return nil
		}
	case *string:
		if v, ok := value.(string); ok {
			*p = v
			return nil
		}
	}
	return paramError(s.Name, "a %T is not %s", value, s.wanted())
}

// check reports a value outside the setting's range.
func (s *setting) check(c *Config) error {
	switch p := s.field(c).(type) {
	case *int:
		if v := float64(*p); v < s.Min || v > s.Max {
			return paramError(s.Name, "%d is not %s", *p, s.wanted())
		}
	case *float64:
		if math.IsNaN(*p) || *p < s.Min || *p > s.Max {
			return paramError(s.Name, "%v is not %s", *p, s.wanted())
		}
	case *string:
		if !slices.Contains(s.Words, *p) {
			return paramError(s.Name, "%q is not %s", *p, s.wanted())
		}
	}
	return nil
}

// wanted says what would be right.
func (s *setting) wanted() string {
	switch s.Kind {
	case algorithms.Int:
		return fmt.Sprintf("a whole number from %.0f to %.0f", s.Min, s.Max)
	case algorithms.Float:
		return fmt.Sprintf("a number from %v to %v", s.Min, s.Max)
	case algorithms.Bool:
		return "true or false"
	}
	return "one of " + strings.Join(s.Words, ", ")
}
