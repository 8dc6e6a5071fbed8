package ldlf

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
)

// The words that settings take.
const (
	presetAuto  = "auto"
	presetPaper = "paper"

	optimizerSGD  = "sgd"
	optimizerAdam = "adam"

	initXavier = "xavier"
	initNormal = "normal"
	initHe     = "he"
)

// The bounds of a forest's shape, in settings and in models.
const (
	maxTrees   = 1000
	minDepth   = 2
	maxDepth   = 20
	maxOutputs = 1 << 20
)

// Config holds the settings of a job, which settings describes.
type Config struct {
	Preset             string
	Trees              int
	Depth              int
	Outputs            int
	Bias               bool
	Scaling            string
	BatchSize          int
	Optimizer          string
	LearningRate       float64
	LearningRateStep   int
	LearningRateDecay  float64
	Warmup             int
	Cosine             bool
	Momentum           float64
	WeightDecay        float64
	Init               string
	InitStd            float64
	LeafIterations     int
	LeafBatches        int
	LeafFirst          bool
	ValidationFraction float64
	ValidationMargin   float64
	Patience           int
	Refit              bool
	Shrink             bool
	Steps              int
	Network            network.Config
	Strategy           string
	ResetMomentum      bool
	OwnUnits           bool
}

// check returns a *param.Error for the first setting that contradicts another.
func (c *Config) check() error {
	if splits := splitNodes(c.Depth); c.Outputs < splits {
		return param.Errorf("outputs", "got %d outputs, but a tree of depth %[3]d has %[2]d split nodes: give at least %[4]d outputs, or a smaller depth",
			c.Outputs, splits, c.Depth, splits)
	}
	if c.Refit && c.ValidationFraction == 0 {
		return param.Errorf("refit", "needs a validation_fraction above 0: validation finds the number of steps of the second training")
	}
	if c.Shrink && c.ValidationFraction == 0 {
		return param.Errorf("shrink", "needs a validation_fraction above 0: the weight of the mean distribution is chosen on validation samples")
	}
	if c.Init == initNormal && c.InitStd == 0 {
		return param.Errorf("init_std", "must be above 0 with init normal, because all leaves stay equal if all parameters start at 0")
	}
	if c.Init == initXavier && c.InitStd != 0 {
		return param.Errorf("init_std", "needs init normal: with xavier the bound follows from the number of features")
	}
	if err := c.Network.Check(); err != nil {
		return err
	}
	if err := c.checkStrategy(); err != nil {
		return err
	}
	return c.checkStart()
}

// checkStart returns a *param.Error where the first Θ does not go with the feature function.
func (c *Config) checkStart() error {
	switch deep := c.Network.Deep(); {
	case deep && c.Init != initHe:
		return param.Errorf("init", "%s needs features linear; with features mlp and conv, init must be he", c.Init)
	case deep && c.InitStd != 0:
		return param.Errorf("init_std", "needs features linear: with he the standard deviation follows from each layer's inputs")
	case !deep && c.Init == initHe:
		return param.Errorf("init", "he needs features mlp or conv")
	}
	return nil
}
