package ldlf

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
)

// denseShare is the share of non-zero entries from which preset auto
// standardises: mostly binary features are harmed by it.
const denseShare = 0.2

// validationMin is the least number of rows that early stopping validates on.
const validationMin = 20

// leastOutputs are the output units of trees that need no more.
const leastOutputs = 64

// Preset auto updates the leaves, and validates, about once a pass over the rows: within these
// bounds.
const (
	leastLeafBatches = 10
	mostLeafBatches  = 100
)

// adamRate is the learning rate with Adam where none is given: the presets'
// rates are SGD's.
const adamRate = 0.001

// What preset auto has with a network in the place of a linear function.
const (
	deepBatch      = 64
	deepRate       = 0.1 // of SGD
	deepDecay      = 1e-3
	sparseDecay    = 3e-4 // where less than denseShare of the entries are non-zero
	deepValidation = 0.1
	deepPatience   = 15
	leastWindow    = 50   // leaf_batches: at least so many,
	mostWindow     = 1000 // and more where the window would not have all rows, up to so many
)

// fillDeep sets what a network has in the place of the defaults of a linear function, and was not
// given.
func (c *Config) fillDeep(given param.Values, m *dataset.Manifest) {
	c.Network.Fill(given, m)
	if !c.Network.Deep() {
		return
	}
	param.StandIn(given, "init", &c.Init, initHe)
	param.StandIn(given, "init_std", &c.InitStd, 0)
	if c.Preset != presetAuto {
		return
	}
	param.StandIn(given, "batch_size", &c.BatchSize, deepBatch)
	param.StandIn(given, "optimizer", &c.Optimizer, optimizerAdam)
	if c.Optimizer == optimizerSGD {
		param.StandIn(given, "learning_rate", &c.LearningRate, deepRate)
	}
	param.StandIn(given, "weight_decay", &c.WeightDecay, deepDecay)
	if m.Density() < denseShare {
		param.StandIn(given, "weight_decay", &c.WeightDecay, sparseDecay)
	}
	param.StandIn(given, "validation_fraction", &c.ValidationFraction, deepValidation)
	param.StandIn(given, "patience", &c.Patience, deepPatience)
	if c.BatchSize >= 1 {
		param.StandIn(given, "leaf_batches", &c.LeafBatches, min(max(leastWindow, (m.Rows+c.BatchSize-1)/c.BatchSize), mostWindow))
	}
}

// fill computes what depends on the data or on other settings and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	c.fillDeep(given, m)
	c.fillStrategy(given)
	if !given.Has("scaling") && c.Preset == presetAuto && m.Density() >= denseShare {
		c.Scaling = scaling.Standard
	}
	if !given.Has("outputs") && !c.OwnUnits && c.Depth >= minDepth && c.Depth <= maxDepth {
		c.Outputs = max(leastOutputs, 1<<(c.Depth-1))
	}
	if !given.Has("leaf_batches") && c.Preset == presetAuto && c.BatchSize >= 1 && !c.Network.Deep() {
		c.LeafBatches = min(max(leastLeafBatches, m.Rows/c.BatchSize), mostLeafBatches)
	}
	if !given.Has("refit") && c.ValidationFraction == 0 {
		c.Refit = false
	}
	if !given.Has("shrink") && c.ValidationFraction == 0 {
		c.Shrink = false
	}
	if !given.Has("learning_rate") && c.Optimizer == optimizerAdam {
		c.LearningRate = adamRate
	}
	if !given.Has("init") && given.Has("init_std") && c.InitStd > 0 && !c.Network.Deep() {
		c.Init = initNormal
	}
	if !given.Has("init_std") && c.Init == initNormal {
		c.InitStd = 1 / math.Sqrt(max(1, meanNonZeros(m)))
	}
}

func meanNonZeros(m *dataset.Manifest) float64 {
	if m.Rows == 0 {
		return 0
	}
	return float64(m.NonZeros) / float64(m.Rows)
}

// checkSize refuses a forest whose parameters no partial could carry.
func checkSize(c *Config, m *dataset.Manifest) error {
	if err := c.Network.Fits(m, c.Bias, outputLayer(c.Outputs)); err != nil {
		return err
	}
	z := newSizes(c, m.Features, m.Labels)
	if z.theta() > maxValues {
		return param.Errorf("outputs", "the feature function would have %d parameters (%d features × %d outputs), at most %d are possible",
			z.theta(), m.Features, c.Outputs, maxValues)
	}
	if z.q() > maxValues {
		return param.Errorf("depth", "the leaves would hold %d values (%d trees × %d leaves × %d labels), at most %d are possible",
			z.q(), c.Trees, z.leaves, m.Labels, maxValues)
	}
	return nil
}
