package ndf

import "github.com/coppice-ldl/coppice/algorithms/kit/param"

// settings lists what a spec may say, in the order of help texts. The supplement names neither sizes nor a
// solver. Preset auto has a share and an l1 that were chosen on training rows of the digits (DESIGN.md).
var settings = param.Table[Config]{
	param.Word("preset", "auto uses soft routing and the values with the best measured results. paper routes each sample to one leaf of a tree",
		func(c *Config) *string { return &c.Preset }, presetAuto, presetPaper),
	param.Int("trees", "number of trees in the forest", 1, maxTrees, 10, func(c *Config) *int { return &c.Trees }),
	param.Int("max_depth", "maximum depth of a tree; the root has depth 0, and every node at the maximum depth is a leaf", 1, maxDepth, 5,
		func(c *Config) *int { return &c.MaxDepth }),
	param.Int("min_samples", "minimum number of samples in a node that is split, repeated bootstrap draws included", 2, 1<<26, 10, func(c *Config) *int { return &c.MinSamples }),
	param.Float("sampling_ratio", "size of each tree's bootstrap sample, as a fraction of the training samples", 0.0001, 1, 1,
		func(c *Config) *float64 { return &c.SamplingRatio }),
	param.Float("share", "fraction of the features that the network of a node reads; each node draws its features at random", 0.000001, 1, 0.7,
		func(c *Config) *float64 { return &c.Share }).Preset(presetPaper, 0.5),
	param.Text("hidden", "number of hidden units of a node's network: a number (0: a perceptron), a range such as 4-16 from which the number is drawn, "+
		"or adaptive: a twentieth of the node's samples, from 2 to 32 (with adaptive-N at most N)",
		"a number up to 512, a range such as 4-16, adaptive or adaptive-N", "8", checkHidden, func(c *Config) *string { return &c.Hidden }),
	param.Int("starts", "number of random networks that a node starts with; only the network with the lowest loss is trained", 1, maxStarts, 5, func(c *Config) *int { return &c.Starts }),
	param.Int("iters", "number of steps of Adam for the network of a node", 0, 2000, 100, func(c *Config) *int { return &c.Iters }),
	param.Float("learning_rate", "learning rate of Adam", 1e-12, 1e3, 0.05, func(c *Config) *float64 { return &c.LearningRate }),
	param.Float("l1", "factor of the ℓ1 penalty on the weights of a node's network, biases excluded. The penalty is added to the node's loss, the mean cross-entropy of its samples", 0, 1e3, 1e-3,
		func(c *Config) *float64 { return &c.L1 }).Preset(presetPaper, 1e-4),
	param.Int("batch_above", "number of samples in a node above which its steps use mini-batches", 1, 1<<26, 4096, func(c *Config) *int { return &c.BatchAbove }),
	param.Int("batch_size", "number of samples in a mini-batch", 1, 1<<26, 1024, func(c *Config) *int { return &c.BatchSize }),
	param.Word("routing", "routing of a sample in predictions: hard (to one leaf of a tree) or soft (to all leaves, weighted by the networks' outputs)",
		func(c *Config) *string { return &c.Routing }, routingHard, routingSoft).Preset(presetAuto, routingSoft).Says("auto: soft; paper: hard").InPaper(),
}
