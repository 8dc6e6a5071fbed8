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
	param.Word("preset", "auto adapts the defaults to the dataset and stops early; paper uses the values of the paper and the solver of its authors",
		func(c *Config) *string { return &c.Preset }, presetAuto, presetPaper),
	param.Int("trees", "number of trees in the forest", 1, maxTrees, 5, func(c *Config) *int { return &c.Trees }).InPaper(),
	param.Int("depth", "depth of each tree; a tree has 2^(depth-1) leaves", minDepth, maxDepth, 7, func(c *Config) *int { return &c.Depth }).InPaper(),
	param.Int("outputs", "number of outputs of the feature function, at least 2^(depth-1)-1: one for each split node of a tree", 1, maxOutputs, leastOutputs,
		func(c *Config) *int { return &c.Outputs }).
		Says("64, or 2^(depth-1) if that is greater").InPaper(),
	param.Bool("bias", "give the feature function a bias", true, func(c *Config) *bool { return &c.Bias }),
}, network.Settings(func(c *Config) *network.Config { return &c.Network }, network.Linear, network.MLP, network.Conv), param.Table[Config]{
	param.Word("scaling", "scaling of each feature, fitted on the training samples: none, standard (mean 0, standard deviation 1) or minmax (0 to 1)",
		func(c *Config) *string { return &c.Scaling }, scaling.Kinds...).
		Says("auto: standard if at least 20 % of the feature values are non-zero, else none; paper: none"),
	param.Int("batch_size", "number of samples in a mini-batch", 1, 1<<20, 128, func(c *Config) *int { return &c.BatchSize }).Preset(presetPaper, 64).
		Says("auto: 128, with a network 64; paper: 64"),
	param.Word("optimizer", "sgd (with momentum) or adam (β2 0.999, ε 1e-8)", func(c *Config) *string { return &c.Optimizer }, optimizerSGD, optimizerAdam).
		Says("sgd; auto with a network: adam"),
	param.Float("learning_rate", "initial learning rate", 1e-12, 1e6, 2, func(c *Config) *float64 { return &c.LearningRate }).
		Preset(presetPaper, 0.1).Says("auto: 2, with a network 0.1; paper: 0.1; with adam: 0.001"),
	param.Int("learning_rate_step", "number of steps between two reductions of the learning rate by learning_rate_decay; 0: no reductions", 0, 1<<40, 0,
		func(c *Config) *int { return &c.LearningRateStep }).Preset(presetPaper, 10_000),
	param.Float("learning_rate_decay", "factor that multiplies the learning rate every learning_rate_step steps", 1e-6, 1, 0.5,
		func(c *Config) *float64 { return &c.LearningRateDecay }),
	param.Int("warmup", "number of first steps over which the learning rate grows linearly from near 0 to its full value; 0: no warm-up", 0, 1<<40, 0, func(c *Config) *int { return &c.Warmup }),
	param.Bool("cosine", "lower the learning rate to 0 over all steps, along half a cosine", false, func(c *Config) *bool { return &c.Cosine }),
	param.Float("momentum", "momentum of sgd, or β1 of adam", 0, 0.9999, 0.9, func(c *Config) *float64 { return &c.Momentum }),
	param.Float("weight_decay", "weight decay of all parameters, the bias included: weight_decay·Θ is added to the gradient", 0, 1, 1e-5,
		func(c *Config) *float64 { return &c.WeightDecay }).Preset(presetPaper, 0).
		Says("auto: 1e-5, with a network 0.001 (3e-4 if less than 20 % of the feature values are non-zero); paper: 0"),
	param.Word("init", "initial values of the parameters Θ of the splits: xavier (uniform within ±sqrt(3/features)) or normal (standard deviation init_std); for a network only he (normal, standard deviation sqrt(2/inputs) in each layer). Biases start at 0",
		func(c *Config) *string { return &c.Init }, initXavier, initNormal, initHe).
		Preset(presetAuto, initNormal).Says("auto: normal; paper: xavier; with a network: he"),
	param.Float("init_std", "standard deviation of the parameters' initial values with init normal; 0 with xavier", 0, 1e6, 0, func(c *Config) *float64 { return &c.InitStd }).
		Says("auto: 1/sqrt(mean number of non-zeros of a sample), with a network 0"),
	param.Int("leaf_iterations", "number of iterations in an update of the leaves (Eq. 12 of Shen et al. 2017)", 1, 1000, 20, func(c *Config) *int { return &c.LeafIterations }).InPaper(),
	param.Int("leaf_batches", "number of mini-batches between two leaf updates; an update uses the samples of these mini-batches", 1, maxWindow, mostLeafBatches,
		func(c *Config) *int { return &c.LeafBatches }).
		Says("auto: number of samples / batch_size (about one pass over the samples), but within 10 to 100, with a network within 50 to 1000; paper: 100").InPaper(),
	param.Bool("leaf_first", "start with a leaf update; without it, all leaves are uniform at first, and the gradient is 0", true,
		func(c *Config) *bool { return &c.LeafFirst }).Preset(presetPaper, false),
	param.Float("validation_fraction", "fraction of the training samples kept for validation and early stopping, at least 20 samples; 0: no early stopping", 0, 0.5, 0.2,
		func(c *Config) *float64 { return &c.ValidationFraction }).Preset(presetPaper, 0).
		Says("auto: 0.2, with a network 0.1; paper: 0"),
	param.Float("validation_margin", "number of standard errors by which the validation loss must improve to reset the patience. The model with the lowest loss is kept in any case",
		0, 100, 0, func(c *Config) *float64 { return &c.ValidationMargin }),
	param.Int("patience", "number of validations without improvement after which training stops", 1, 1e9, 10, func(c *Config) *int { return &c.Patience }).
		Says("10; auto with a network: 15"),
	param.Bool("refit", "train again on all training samples, validation samples included, for the best number of steps", true,
		func(c *Config) *bool { return &c.Refit }).Preset(presetPaper, false),
	param.Bool("shrink", "at the end, mix the mean label distribution into the leaves, with the weight (0, 1/2 or 1) of the lowest validation loss", true,
		func(c *Config) *bool { return &c.Shrink }).Preset(presetPaper, false).LeftOut(presetPaper),
	param.Int("steps", "maximum number of gradient steps; early stopping may end training earlier", 1, 1<<40, 25_000, func(c *Config) *int { return &c.Steps }).InPaper(),
}, strategySettings)
