package ldlf

import (
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
)

// The words that settings take.
const (
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

// The words of the setting strategy: which trees a mini-batch trains (section 4.3 and Fig. 4 of
// Shen et al. 2017 compare joint training with "learned alternatively").
const (
	strategyJoint  = "joint"
	strategyRotate = "rotate"
	strategyRandom = "random-tree"
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

// settings lists what a spec may say, in the order of help texts. The defaults of preset paper
// come from section 4 of the paper. The defaults of preset auto were chosen by inner validation
// (docs/design/defaults.md).
var settings = slices.Concat(param.Table[Config]{
	param.Word("preset", "auto adapts the defaults to the dataset and stops early; paper uses the values of the paper "+
		"and the solver of its authors",
		func(c *Config) *string { return &c.Preset }, param.Auto, param.Paper),
	param.Int("trees", "number of trees in the forest", 1, maxTrees, 5, func(c *Config) *int {
		return &c.Trees
	}).InPaper(),
	param.Int("depth", "depth of each tree; a tree has 2^(depth-1) leaves", minDepth, maxDepth, 7, func(c *Config) *int {
		return &c.Depth
	}).InPaper(),
	param.Int("outputs", "number of outputs of the feature function, at least 2^(depth-1)-1: one for each split node of "+
		"a tree", 1, maxOutputs, leastOutputs,
		func(c *Config) *int { return &c.Outputs }).
		Says("64, or 2^(depth-1) if that is greater; auto with at least 1,000 samples, or 20,000 with features mlp: 128 " +
			"for each 5 trees, at least 2^(depth-1)").InPaper(),
	param.Bool("bias", "give the feature function a bias", true, func(c *Config) *bool { return &c.Bias }),
}, network.Settings(func(c *Config) *network.Config {
	return &c.Network
}, network.Linear, network.MLP, network.Conv), param.Table[Config]{

	scaling.Setting(func(c *Config) *string { return &c.Scaling }),
	param.Int("batch_size", "number of samples in a mini-batch", 1, 1<<20, 128, func(c *Config) *int {
		return &c.BatchSize
	}).Preset(param.Paper, 64).
		Says("auto: 128, with features mlp and fewer than 20,000 samples 64, with features conv 64; paper: 64"),
	param.Word("optimizer", "sgd (with momentum) or adam (β2 0.999, ε 1e-8)", func(c *Config) *string {
		return &c.Optimizer
	}, optimizerSGD, optimizerAdam).
		Says("sgd; auto with a network: adam"),
	param.Float("learning_rate", "initial learning rate", 1e-12, 1e6, 2, func(c *Config) *float64 {
		return &c.LearningRate
	}).
		Preset(param.Paper, 0.1).Says("auto: 2, with at least 1,000 samples outputs / 32, with at least 20,000 samples " +
		"outputs / 16, with a network 0.1; paper: 0.1; with adam: 0.001; auto with adam and at least 20,000 samples, but " +
		"not with features conv: 0.02"),
	param.Int("learning_rate_step", "number of steps between two reductions of the learning rate by "+
		"learning_rate_decay; 0: no reductions", 0, 1<<40, 0,
		func(c *Config) *int { return &c.LearningRateStep }).Preset(param.Paper, 10_000),
	param.Float("learning_rate_decay", "factor that multiplies the learning rate every learning_rate_step steps",
		1e-6, 1, 0.5,
		func(c *Config) *float64 { return &c.LearningRateDecay }),
	param.Int("warmup", "number of first steps over which the learning rate grows linearly from near 0 to its full "+
		"value; 0: no warm-up", 0, 1<<40, 0, func(c *Config) *int {
		return &c.Warmup
	}),
	param.Bool("cosine", "lower the learning rate to 0 over all steps, along half a cosine", false, func(c *Config) *bool {
		return &c.Cosine
	}).
		Says("auto: true with at least 20,000 samples, but not with features conv or learning_rate_step above 0, else false"),
	param.Float("momentum", "momentum of sgd, or β1 of adam", 0, 0.9999, 0.9, func(c *Config) *float64 {
		return &c.Momentum
	}),
	param.Float("weight_decay", "weight decay of all parameters, the bias included: weight_decay·Θ is added to the "+
		"gradient", 0, 1, 1e-5,
		func(c *Config) *float64 { return &c.WeightDecay }).Preset(param.Paper, 0).
		Says("auto: 1e-5 (0.00128 / outputs with at least 1,000 samples and over 128 outputs), with a network 0.001 (3e-4 " +
			"on sparse samples). With at least 20,000 samples, but not with features conv: 0; paper: 0"),
	param.Word("init", "initial values of the parameters Θ of the splits: xavier (uniform within ±sqrt(3/features)) or "+
		"normal (standard deviation init_std); for a network only he (normal, standard deviation sqrt(2/inputs) in each "+
		"layer). Biases start at 0",
		func(c *Config) *string { return &c.Init }, initXavier, initNormal, initHe).
		Preset(param.Auto, initNormal).Says("auto: normal; paper: xavier; with a network: he"),
	param.Float("init_std", "standard deviation of the parameters' initial values with init normal; 0 with xavier", 0, 1e6,
		0, func(c *Config) *float64 {
			return &c.InitStd
		}).
		Says("auto: 1/sqrt(mean number of non-zeros of a sample), with a network 0"),
	param.Int("leaf_iterations", "number of iterations in an update of the leaves (Eq. 12 of Shen et al. 2017)", 1, 1000,
		20, func(c *Config) *int {
			return &c.LeafIterations
		}).InPaper(),
	param.Int("leaf_batches", "number of mini-batches between two leaf updates; an update uses the samples of these "+
		"mini-batches", 1, maxWindow, mostLeafBatches,
		func(c *Config) *int { return &c.LeafBatches }).
		Says("auto: number of samples / batch_size (about one pass over the samples), but within 10 to 100, with a network " +
			"within 50 to 500; paper: 100").InPaper(),
	param.Bool("leaf_first",
		"start with a leaf update; without it, all leaves are uniform at first, and the gradient is 0", true,
		func(c *Config) *bool { return &c.LeafFirst }).Preset(param.Paper, false),
	param.Float("validation_fraction", "fraction of the training samples kept for validation and early stopping, at "+
		"least 20 samples; 0: no early stopping", 0, 0.5, 0.2,
		func(c *Config) *float64 { return &c.ValidationFraction }).Preset(param.Paper, 0).
		Says("auto: 0.2, with a network 0.1, and at most 10,000 samples except with features conv; paper: 0"),
	param.Float("validation_margin", "number of standard errors by which the validation loss must improve to reset the "+
		"patience. The model with the lowest loss is kept in any case",
		0, 100, 0, func(c *Config) *float64 { return &c.ValidationMargin }),
	param.Int("patience", "number of validations without improvement after which training stops", 1, 1e9, 10,
		func(c *Config) *int {
			return &c.Patience
		}).
		Says("10; auto: with a network 15, with at least 20,000 samples, but not with features conv, 1000"),
	param.Bool("refit", "train again on all training samples, validation samples included, for the best number of steps",
		true,
		func(c *Config) *bool {
			return &c.Refit
		}).Preset(param.Paper, false).Says("auto: true with fewer than 20,000 samples or features conv, else false, and " +
		"false if validation_fraction is 0; paper: false"),
	param.Bool("shrink", "at the end, mix the mean label distribution into the leaves, with the weight (0, 1/2 or 1) of "+
		"the lowest validation loss", true,
		func(c *Config) *bool { return &c.Shrink }).Preset(param.Paper, false).LeftOut(param.Paper),
	param.Int("steps", "maximum number of gradient steps; early stopping may end training earlier", 1, 1<<40, 25_000,
		func(c *Config) *int {
			return &c.Steps
		}).
		Says("25000; auto with at least 20,000 samples, but not with features conv: number of samples / 8, but within 7000 " +
			"to 40000, with features mlp within 10000 to 40000").InPaper(),
	param.Word("strategy", "trees that a mini-batch trains: joint (all trees), rotate (one tree for leaf_batches "+
		"mini-batches and a leaf update, then the next tree) or random-tree (a random tree for each mini-batch)",
		func(c *Config) *string { return &c.Strategy }, strategyJoint, strategyRotate, strategyRandom),
	param.Bool("reset_momentum", "with strategy rotate, set the optimizer's moments to 0 before the next tree is trained",
		false, func(c *Config) *bool {
			return &c.ResetMomentum
		}).
		Says("true with strategy rotate, else false"),
	param.Bool("own_units", "give each tree outputs of its own; outputs is then trees × 2^(depth-1)", false,
		func(c *Config) *bool {
			return &c.OwnUnits
		}),
})

// validationMin is the least number of rows that early stopping validates on.
const validationMin = 20

// leastOutputs is the number of output units if the trees need no larger number.
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
	sparseDecay    = 3e-4 // if features are mostly 0: scaling.Rule
	deepValidation = 0.1
	deepPatience   = 15
	leastWindow    = 50  // leaf_batches: at least so many,
	mostWindow     = 500 // and more if the window would not have all rows, up to so many
)

// What preset auto has of a linear function with someRows or more: more output units, so that trees share fewer. The
// more units there are, the smaller are their gradients.
const (
	someRows     = 1000
	someOutputs  = 128
	treesPerSome = 5        // that share someOutputs: with more trees to a unit, more trees would be less accurate
	someRate     = 1.0 / 32 // of sgd, for each output unit
	someDecay    = 1e-5     // with someOutputs
)

// What preset auto has with manyRows or more. The learning rate falls to 0 over all steps, and no validation ends
// training.
const (
	manyRows       = 20_000
	manyRate       = 1.0 / 16 // of sgd, for each output unit
	manyAdamRate   = 0.02
	manyPatience   = 1000
	mostValidation = 10_000 // rows
	rowsPerStep    = 8
	leastSteps     = 7000
	leastDeepSteps = 10_000
	mostSteps      = 40_000
)

// fill computes what depends on the data or on other settings and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	c.fillDeep(given, m)
	if c.Strategy == strategyRotate {
		param.StandIn(given, "reset_momentum", &c.ResetMomentum, true)
	}
	if c.OwnUnits && c.Depth >= minDepth && c.Depth <= maxDepth && c.Trees >= 1 && c.Trees <= maxTrees &&
		c.ownOutputs() <= maxOutputs {
		param.StandIn(given, "outputs", &c.Outputs, c.ownOutputs())
	}
	if c.Preset == param.Auto {
		param.StandIn(given, "scaling", &c.Scaling, scaling.Rule(m))
	}
	if !given.Has("outputs") && !c.OwnUnits && c.Depth >= minDepth && c.Depth <= maxDepth {
		c.Outputs = max(leastOutputs, 1<<(c.Depth-1))
	}
	if !given.Has("leaf_batches") && c.Preset == param.Auto && c.BatchSize >= 1 && !c.Network.Deep() {
		c.LeafBatches = min(max(leastLeafBatches, m.Rows/c.BatchSize), mostLeafBatches)
	}
	if c.Optimizer == optimizerAdam {
		param.StandIn(given, "learning_rate", &c.LearningRate, adamRate)
	}
	if c.Preset == param.Auto {
		c.fillMany(given, m)
	}
	if !given.Has("refit") && c.ValidationFraction == 0 {
		c.Refit = false
	}
	if !given.Has("shrink") && c.ValidationFraction == 0 {
		c.Shrink = false
	}
	if !given.Has("init") && given.Has("init_std") && c.InitStd > 0 && !c.Network.Deep() {
		c.Init = initNormal
	}
	if !given.Has("init_std") && c.Init == initNormal {
		c.InitStd = 1 / math.Sqrt(max(1, float64(m.NonZeros)/float64(max(1, m.Rows))))
	}
}

// hasMany reports whether a dataset has the rows from which on preset auto differs. Convolutions were not tried.
func (c *Config) hasMany(m *dataset.Manifest) bool {
	return m.Rows >= manyRows && c.Network.Features != network.Conv
}

// fillMany sets what preset auto has with some and with many rows, and was not given.
func (c *Config) fillMany(given param.Values, m *dataset.Manifest) {
	deep, many := c.Network.Deep(), c.hasMany(m)
	if !many && (deep || m.Rows < someRows) {
		return
	}
	if !c.OwnUnits && c.Depth >= minDepth && c.Depth <= maxDepth && c.Trees >= 1 && c.Trees <= maxTrees {
		param.StandIn(given, "outputs", &c.Outputs, max(someOutputs*((c.Trees+treesPerSome-1)/treesPerSome), 1<<(c.Depth-1)))
	}
	rate, decay := someRate*float64(c.Outputs), someDecay*min(1, someOutputs/float64(max(1, c.Outputs)))
	if many {
		rate, decay = manyRate*float64(c.Outputs), 0
	}
	switch {
	case c.Optimizer == optimizerAdam && many:
		rate = manyAdamRate
	case c.Optimizer == optimizerAdam || deep:
		rate = c.LearningRate
	}
	param.StandIn(given, "learning_rate", &c.LearningRate, rate)
	param.StandIn(given, "weight_decay", &c.WeightDecay, decay)
	if !many {
		return
	}
	least := leastSteps
	if deep {
		least = leastDeepSteps
		param.StandIn(given, "dropout", &c.Network.Dropout, 0)
	}
	if c.LearningRateStep == 0 {
		param.StandIn(given, "cosine", &c.Cosine, true)
	}
	param.StandIn(given, "steps", &c.Steps, min(max(least, m.Rows/rowsPerStep), mostSteps))
	param.StandIn(given, "patience", &c.Patience, manyPatience)
	param.StandIn(given, "refit", &c.Refit, false)
	param.StandIn(given, "validation_fraction", &c.ValidationFraction,
		min(c.ValidationFraction, mostValidation/float64(m.Rows)))
}

// fillDeep sets what a network has in the place of the defaults of a linear function, and was not
// given.
func (c *Config) fillDeep(given param.Values, m *dataset.Manifest) {
	c.Network.Fill(given, m)
	if !c.Network.Deep() {
		return
	}
	param.StandIn(given, "init", &c.Init, initHe)
	param.StandIn(given, "init_std", &c.InitStd, 0)
	if c.Preset != param.Auto {
		return
	}
	if !c.hasMany(m) {
		param.StandIn(given, "batch_size", &c.BatchSize, deepBatch)
	}
	param.StandIn(given, "optimizer", &c.Optimizer, optimizerAdam)
	if c.Optimizer == optimizerSGD {
		param.StandIn(given, "learning_rate", &c.LearningRate, deepRate)
	}
	param.StandIn(given, "weight_decay", &c.WeightDecay, deepDecay)
	if scaling.Rule(m) == scaling.None {
		param.StandIn(given, "weight_decay", &c.WeightDecay, sparseDecay)
	}
	param.StandIn(given, "validation_fraction", &c.ValidationFraction, deepValidation)
	param.StandIn(given, "patience", &c.Patience, deepPatience)
	if c.BatchSize >= 1 {
		param.StandIn(given, "leaf_batches", &c.LeafBatches, min(max(leastWindow, (m.Rows+c.BatchSize-1)/c.BatchSize),
			mostWindow))
	}
}

// ownOutputs returns the output units of trees that share none.
func (c *Config) ownOutputs() int { return c.Trees << (c.Depth - 1) }

// check returns a *param.Error for the first setting that contradicts another.
func (c *Config) check() error {
	if own := c.ownOutputs(); c.OwnUnits && own > maxOutputs {
		return param.Errorf("own_units", "needs %d outputs, which is %d trees × 2^(depth-1), but at most %d are possible: "+
			"give fewer trees, or a smaller depth", own, c.Trees, maxOutputs)
	}
	if splits := splitNodes(c.Depth); c.Outputs < splits {
		return param.Errorf("outputs", "got %d outputs, but a tree of depth %[3]d has %[2]d split nodes: give at least "+
			"%[4]d outputs, or a smaller depth",
			c.Outputs, splits, c.Depth, splits)
	}
	if c.Refit && c.ValidationFraction == 0 {
		return param.Errorf("refit", "needs a validation_fraction above 0: validation finds the number of steps of the "+
			"second training")
	}
	if c.Shrink && c.ValidationFraction == 0 {
		return param.Errorf("shrink", "needs a validation_fraction above 0: the weight of the mean distribution is chosen "+
			"on validation samples")
	}
	if c.Init == initNormal && c.InitStd == 0 {
		return param.Errorf("init_std", "must be above 0 with init normal, because all leaves stay equal if all parameters "+
			"start at 0")
	}
	if c.Init == initXavier && c.InitStd != 0 {
		return param.Errorf("init_std", "needs init normal: with xavier the bound follows from the number of features")
	}
	if err := c.Network.Check(); err != nil {
		return err
	}
	if c.ResetMomentum && c.Strategy != strategyRotate {
		return param.Errorf("reset_momentum", "needs strategy rotate")
	}
	if c.OwnUnits && c.Outputs != c.ownOutputs() {
		return param.Errorf("outputs", "must be %d with own_units, which is %d trees × 2^(depth-1)", c.ownOutputs(), c.Trees)
	}
	switch deep := c.Network.Deep(); {
	case deep && c.Init != initHe:
		return param.Errorf("init", "%s needs features linear; with features mlp and conv, init must be he", c.Init)
	case deep && c.InitStd != 0:
		return param.Errorf("init_std", "needs features linear: with he the standard deviation follows from each layer's "+
			"inputs")
	case !deep && c.Init == initHe:
		return param.Errorf("init", "he needs features mlp or conv")
	}
	return nil
}

// checkSize refuses a forest whose parameters no partial could carry.
func checkSize(c *Config, m *dataset.Manifest) error {
	if err := c.Network.Fits(m, c.Bias, outputLayer(c.Outputs)); err != nil {
		return err
	}
	z := newSizes(c, m.Features, m.Labels)
	if z.parameters > maxValues {
		return param.Errorf("outputs", "the feature function would have %d parameters (%d features × %d outputs), at most "+
			"%d are possible",
			z.parameters, m.Features, c.Outputs, maxValues)
	}
	if z.q() > maxValues {
		return param.Errorf("depth", "the leaves would hold %d values (%d trees × %d leaves × %d labels), at most %d are "+
			"possible",
			z.q(), c.Trees, z.leaves, m.Labels, maxValues)
	}
	return nil
}

// maxWindow is the greatest number of mini-batches of a unit; see the setting
// leaf_batches.
const maxWindow = 1e6
