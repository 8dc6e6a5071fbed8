package ldlf

import (
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
)

// settings lists what a spec may say, in the order of help texts. The defaults of preset paper
// are those of the paper's section 4; those of auto were chosen by inner validation
// (docs/design/defaults.md).
var settings = slices.Concat(param.Table[Config]{
	param.Word("preset", "auto fits the dataset and stops early; paper is the paper's and its authors' solver",
		func(c *Config) *string { return &c.Preset }, presetAuto, presetPaper),
	param.Int("trees", "trees of the forest", 1, maxTrees, 5, func(c *Config) *int { return &c.Trees }).InPaper(),
	param.Int("depth", "depth of a tree: 2^(depth-1) leaves", minDepth, maxDepth, 7, func(c *Config) *int { return &c.Depth }).InPaper(),
	param.Int("outputs", "output units of the feature function, at least the 2^(depth-1)-1 split nodes of a tree", 1, maxOutputs, leastOutputs,
		func(c *Config) *int { return &c.Outputs }).
		Says("64, or 2^(depth-1) where that is more").InPaper(),
	param.Bool("bias", "the feature function has a bias", true, func(c *Config) *bool { return &c.Bias }),
}, network.Settings(func(c *Config) *network.Config { return &c.Network }, network.Linear, network.MLP, network.Conv), param.Table[Config]{
	param.Word("scaling", "scaling of features by the training samples: none, standard (mean 0, standard deviation 1) or minmax (0 to 1)",
		func(c *Config) *string { return &c.Scaling }, scaling.Kinds...).
		Says("auto: standard if at least 20 % of the entries are non-zero, else none; paper: none"),
	param.Int("batch_size", "samples of a mini-batch", 1, 1<<20, 128, func(c *Config) *int { return &c.BatchSize }).Preset(presetPaper, 64).
		Says("auto: 128, of a network 64; paper: 64"),
	param.Word("optimizer", "sgd (with momentum) or adam (β2 0.999, ε 1e-8)", func(c *Config) *string { return &c.Optimizer }, optimizerSGD, optimizerAdam).
		Says("sgd; auto with a network: adam"),
	param.Float("learning_rate", "learning rate of the first step", 1e-12, 1e6, 2, func(c *Config) *float64 { return &c.LearningRate }).
		Preset(presetPaper, 0.1).Says("auto: 2, of a network 0.1; paper: 0.1; with adam: 0.001"),
	param.Int("learning_rate_step", "steps after which the learning rate is multiplied by learning_rate_decay; 0: never", 0, 1<<40, 0,
		func(c *Config) *int { return &c.LearningRateStep }).Preset(presetPaper, 10_000),
	param.Float("learning_rate_decay", "factor of the learning rate every learning_rate_step steps", 1e-6, 1, 0.5,
		func(c *Config) *float64 { return &c.LearningRateDecay }),
	param.Int("warmup", "steps in which the learning rate grows evenly to what it would be without; 0: none", 0, 1<<40, 0, func(c *Config) *int { return &c.Warmup }),
	param.Bool("cosine", "the learning rate falls to 0 at the step of number steps, as half a cosine does", false, func(c *Config) *bool { return &c.Cosine }),
	param.Float("momentum", "momentum of sgd; β1 of adam", 0, 0.9999, 0.9, func(c *Config) *float64 { return &c.Momentum }),
	param.Float("weight_decay", "decay of every parameter, the bias included: the gradient gains weight_decay·Θ", 0, 1, 1e-5,
		func(c *Config) *float64 { return &c.WeightDecay }).Preset(presetPaper, 0).
		Says("auto: 1e-5, of a network 0.001, and 3e-4 where less than 20 % of the entries are non-zero; paper: 0"),
	param.Word("init", "first Θ: xavier, uniform within ±sqrt(3/features), or normal with standard deviation init_std; of a network he, normal with standard deviation sqrt(2/inputs) in each layer; biases begin at 0",
		func(c *Config) *string { return &c.Init }, initXavier, initNormal, initHe).
		Preset(presetAuto, initNormal).Says("auto: normal; paper: xavier; of a network he"),
	param.Float("init_std", "standard deviation of the first Θ with init normal; 0 with xavier", 0, 1e6, 0, func(c *Config) *float64 { return &c.InitStd }).
		Says("auto: 1/sqrt(mean non-zeros of a sample), of a network 0"),
	param.Int("leaf_iterations", "iterations of Eq. 12 in a leaf update", 1, 1000, 20, func(c *Config) *int { return &c.LeafIterations }).InPaper(),
	param.Int("leaf_batches", "mini-batches between leaf updates, on which the update works", 1, maxWindow, mostLeafBatches,
		func(c *Config) *int { return &c.LeafBatches }).
		Says("auto: samples / batch_size, about a pass over the samples, 10 to 100, of a network 50 to 1000; paper: 100").InPaper(),
	param.Bool("leaf_first", "begin with a leaf update instead of steps that a uniform q leaves without gradient", true,
		func(c *Config) *bool { return &c.LeafFirst }).Preset(presetPaper, false),
	param.Float("validation_fraction", "fraction of the training samples (at least 20 samples) kept for early stopping; 0: no early stopping", 0, 0.5, 0.2,
		func(c *Config) *float64 { return &c.ValidationFraction }).Preset(presetPaper, 0).
		Says("auto: 0.2, of a network 0.1; paper: 0"),
	param.Float("validation_margin", "standard errors by which a validation must be better to reset the patience; the least loss is kept whatever it is",
		0, 100, 0, func(c *Config) *float64 { return &c.ValidationMargin }),
	param.Int("patience", "validations without improvement after which training stops", 1, 1e9, 10, func(c *Config) *int { return &c.Patience }).
		Says("10; auto with a network: 15"),
	param.Bool("refit", "train once more, on the validation samples too, for as many steps as were best", true,
		func(c *Config) *bool { return &c.Refit }).Preset(presetPaper, false),
	param.Bool("shrink", "mix the mean label distribution into the leaves at the end, by the weight of 0, 1/2 and 1 that has the least loss on the validation samples", true,
		func(c *Config) *bool { return &c.Shrink }).Preset(presetPaper, false).LeftOut(presetPaper),
	param.Int("steps", "gradient steps at most; early stopping may end before", 1, 1<<40, 25_000, func(c *Config) *int { return &c.Steps }).InPaper(),
}, strategySettings)
