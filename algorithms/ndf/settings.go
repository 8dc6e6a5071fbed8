package ndf

import "github.com/coppice-ldl/coppice/algorithms/kit/param"

// settings lists what a spec may say, in the order of help texts. The supplement names neither sizes nor a
// solver. Preset auto has a share and an l1 that were chosen on training rows of the digits (DESIGN.md).
var settings = param.Table[Config]{
	param.Word("preset", "auto has the best settings that were measured and predicts by soft routing; paper routes a sample to one leaf of a tree, as the paper does",
		func(c *Config) *string { return &c.Preset }, presetAuto, presetPaper),
	param.Int("trees", "trees of the forest", 1, maxTrees, 10, func(c *Config) *int { return &c.Trees }),
	param.Int("max_depth", "greatest depth of a tree: the root has depth 0, a node at this depth is a leaf", 1, maxDepth, 5,
		func(c *Config) *int { return &c.MaxDepth }),
	param.Int("min_samples", "samples, copies counted, that a node needs to be split", 2, 1<<26, 10, func(c *Config) *int { return &c.MinSamples }),
	param.Float("sampling_ratio", "draws, with replacement, of each tree's bootstrap sample for each training sample", 0.0001, 1, 1,
		func(c *Config) *float64 { return &c.SamplingRatio }),
	param.Float("share", "fraction of the features that the network of a node reads, drawn for each node", 0.000001, 1, 0.7,
		func(c *Config) *float64 { return &c.Share }).Preset(presetPaper, 0.5),
	param.Text("hidden", "hidden units of the network of a node: a number (0: a perceptron), a range such as 4-16 to draw from, "+
		"or adaptive: a twentieth of the node's samples, 2 to 32 (adaptive-N: at most N)",
		"a number up to 512, a range such as 4-16, adaptive or adaptive-N", "8", checkHidden, func(c *Config) *string { return &c.Hidden }),
	param.Int("starts", "random networks of a node, of which the one of the highest Q is trained", 1, maxStarts, 5, func(c *Config) *int { return &c.Starts }),
	param.Int("iters", "steps of Adam on the network of a node", 0, 2000, 100, func(c *Config) *int { return &c.Iters }),
	param.Float("learning_rate", "learning rate of Adam", 1e-12, 1e3, 0.05, func(c *Config) *float64 { return &c.LearningRate }),
	param.Float("l1", "factor of the ℓ1 norm of a network's weights, without biases, in Q_Reg, where log Q counts for each sample", 0, 1e3, 1e-3,
		func(c *Config) *float64 { return &c.L1 }).Preset(presetPaper, 1e-4),
	param.Int("batch_above", "samples of a node above which its steps take mini-batches", 1, 1<<26, 4096, func(c *Config) *int { return &c.BatchAbove }),
	param.Int("batch_size", "samples of a mini-batch", 1, 1<<26, 1024, func(c *Config) *int { return &c.BatchSize }),
	param.Word("routing", "routing of predictions: hard (to one leaf of a tree) or soft (to all, weighted by the networks' outputs)",
		func(c *Config) *string { return &c.Routing }, routingHard, routingSoft).Preset(presetAuto, routingSoft).Says("auto: soft; paper: hard").InPaper(),
}
