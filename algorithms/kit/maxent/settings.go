package maxent

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/lbfgs"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
)

// validationMin is the least number of rows that early stopping validates on.
const validationMin = 20

// Settings are what all fits have in common.
type Settings struct {
	Preset             string
	Bias               bool
	Scaling            string
	Iterations         int
	ValidationFraction float64
	ValidationInterval int
	Patience           int
}

// The courses of the decay.
const (
	DecayPath  = "path"
	DecayFixed = "fixed"
)

// Search are the settings of L-BFGS.
type Search struct {
	Tolerance, Ftol float64
	Decay           string
	FirstDecay      float64 // of a path
	Refit           bool
}

// First lists the settings that stand first in the table of an algorithm, whose Config has Settings: paper
// and scaled say what the preset paper is, and how features are scaled where the setting is not given.
func First[C any](of func(*C) *Settings, paper, scaled string, bias *param.Of[C, bool]) param.Table[C] {
	return param.Table[C]{
		param.Word("preset", "auto adapts the defaults to the dataset and stops early; paper uses "+paper,
			func(c *C) *string {
				return &of(c).Preset
			}, param.Auto, param.Paper),
		bias,
		scaling.Setting(func(c *C) *string { return &of(c).Scaling }).Says(scaled),
	}
}

// Last lists the settings that stand last in the table of a fit by L-BFGS.
func Last[C any](of func(*C) *Settings, search func(*C) *Search) param.Table[C] {
	return append(param.Table[C]{
		param.Int("iterations", "maximum number of L-BFGS iterations; tolerance, ftol or early stopping may end training "+
			"earlier", 1, 1<<40, 1000,
			func(c *C) *int { return &of(c).Iterations }).Preset(param.Paper, 300),
		param.Float("tolerance", "stop if no element of the gradient has a greater absolute value; 0: stop only if the "+
			"gradient is exactly 0", 0, 1e6, 1e-7,
			func(c *C) *float64 { return &search(c).Tolerance }),
		param.Float("ftol", "stop if an iteration lowers the loss by at most this fraction of the loss (of 1 if the loss "+
			"is below 1); 0: never", 0, 1, 0,
			func(c *C) *float64 { return &search(c).Ftol }),
	}, append(Stopping(of, "auto: 0.1, with decay path and fewer than 1,000 samples up to 0.2, and with at least 500 "+
		"samples per feature at most 10,000 samples; paper: 0"), Refit(search)...)...)
}

// Decay lists the setting of the decay's course, where setting has the decay.
func Decay[C any](search func(*C) *Search, setting string) param.Table[C] {
	return param.Table[C]{
		param.Word("decay", "schedule of the weight decay: path starts at first_decay and lowers the decay in stages to "+
			setting+
			", and validation chooses the best stage; fixed always uses "+setting, func(c *C) *string {
			return &search(c).Decay
		}, DecayFixed, DecayPath).
			Says("auto: path, or fixed if " + setting + " is given, if validation_fraction is 0, or with at least 5,000 " +
				"samples per feature; paper: fixed"),
		param.Float("first_decay", "weight decay of the first stage, with decay path", 0, 1e6, firstDecay,
			func(c *C) *float64 {
				return &search(c).FirstDecay
			}).
			LeftOut(param.Paper).Says("3, or 0.001 with at least 500 samples per feature"),
	}
}

// The share of rows that validation chooses a decay by: a tenth, of few rows up to a fifth.
const (
	choosingRows = 100
	mostChoosing = 0.2
)

// The bounds on the rows for each feature. From manyRows on, strong decays are of no use, and a tenth of the rows more
// would change the model little. From plentyRows on, decay is of no use.
const (
	manyRows       = 500
	plentyRows     = 5000
	firstDecay     = 3
	firstDecayMany = 1e-3
	validationMany = 10_000 // rows
)

// The usual decays: standardised features have larger weights' worth of noise than raw, mostly binary ones.
const (
	usualScaled = 1e-2
	usualRaw    = 3e-4
)

// Refit lists the setting of the refit.
func Refit[C any](search func(*C) *Search) param.Table[C] {
	return param.Table[C]{
		param.Bool("refit", "train again on all training samples, validation samples included, with the best number of "+
			"iterations for each decay", true,
			func(c *C) *bool {
				return &search(c).Refit
			}).Preset(param.Paper, false).LeftOut(param.Paper).
			Says("auto: true, or false if validation_fraction is 0 or with at least 500 samples per feature; paper: false"),
	}
}

// Check returns a *param.Error for the first setting that contradicts another.
func (s *Settings) Check(search *Search) error {
	if search.Refit && s.ValidationFraction == 0 {
		return param.Errorf("refit", "needs a validation_fraction above 0: validation finds the number of iterations of "+
			"the second training")
	}
	return nil
}

// FillDecay sets what was not given of the decay, which setting has: its course, the refit and the share of validation
// rows. With preset auto they follow from the number of rows for each feature. It returns the usual decay; 0 if a decay
// is of no use.
func (s *Settings) FillDecay(search *Search, given param.Values, setting string, m *dataset.Manifest) (usual float64) {
	auto := s.Preset == param.Auto
	many, plenty := auto && m.Rows >= manyRows*m.Features, auto && m.Rows >= plentyRows*m.Features
	if auto && s.ValidationFraction > 0 && !given.Has("decay") && !given.Has(setting) && !plenty {
		search.Decay = DecayPath
	}
	if auto && search.Decay == DecayPath {
		param.StandIn(given, "validation_fraction", &s.ValidationFraction,
			max(s.ValidationFraction, min(mostChoosing, choosingRows/float64(m.Rows))))
	}
	if many {
		param.StandIn(given, "first_decay", &search.FirstDecay, firstDecayMany)
		param.StandIn(given, "refit", &search.Refit, false)
		param.StandIn(given, "validation_fraction", &s.ValidationFraction,
			min(s.ValidationFraction, validationMany/float64(m.Rows)))
	}
	if s.ValidationFraction == 0 {
		param.StandIn(given, "refit", &search.Refit, false)
	}
	switch {
	case plenty:
		return 0
	case s.Scaling != scaling.None:
		return usualScaled
	}
	return usualRaw
}

// L2Says says what the setting l2 is by default.
const L2Says = "auto: 0 with decay path or at least 5,000 samples per feature, else 0.01 if features are scaled, " +
	"else 3e-4; paper: 0"

// FillL2 is FillDecay for the setting l2. It sets the value of l2 if none was given.
func (s *Settings) FillL2(search *Search, l2 *float64, given param.Values, m *dataset.Manifest) {
	usual := s.FillDecay(search, given, "l2", m)
	if search.Decay == DecayPath {
		usual = 0
	}
	if s.Preset == param.Auto {
		param.StandIn(given, "l2", l2, usual)
	}
}

// Stopping lists the settings of early stopping; share, where it is not empty, says what the share of
// validation rows is by default.
func Stopping[C any](of func(*C) *Settings, share string) param.Table[C] {
	return param.Table[C]{
		param.Float("validation_fraction", "fraction of the training samples kept for validation and early stopping, at "+
			"least 20 samples; 0: no early stopping", 0, 0.5, 0.1,
			func(c *C) *float64 { return &of(c).ValidationFraction }).Preset(param.Paper, 0).Says(share),
		param.Int("validation_interval", "number of iterations between two validations", 1, 1<<40, 10,
			func(c *C) *int { return &of(c).ValidationInterval }),
		param.Int("patience", "number of validations without improvement after which training stops", 1, 1e9, 5,
			func(c *C) *int { return &of(c).Patience }),
	}
}

// FillScaling chooses the scaling by the data where it was not given, with preset paper if both.
func (s *Settings) FillScaling(given param.Values, m *dataset.Manifest, both bool) {
	if both || s.Preset == param.Auto {
		param.StandIn(given, "scaling", &s.Scaling, scaling.Rule(m))
	}
}

// Validation returns the share and the least number of validation rows.
func (s *Settings) Validation() (share float64, least int) {
	return s.ValidationFraction, validationMin
}

// Training returns the settings of the rounds.
func (s *Settings) Training() fullbatch.Settings {
	return fullbatch.Settings{
		StopRule: gradient.StopRule{Validates: s.ValidationFraction > 0, Patience: uint64(s.Patience)},
		Scaling:  s.Scaling, Steps: uint64(s.Iterations), Interval: uint64(s.ValidationInterval), Derived: 1,
	}
}

// Trainer is the leader's half of a fit by L-BFGS, which begins at W = 0. An algorithm that adds terms sets
// Objective.TermSums and Values, and may have rounds of its own before the first evaluation.
type Trainer struct {
	*fullbatch.Training
	Objective *Objective
}

// NewTrainer returns the trainer of a job; ownKind is fullbatch.Settings.OwnKind.
func NewTrainer(s *Settings, search Search, l2 float64, ownKind string, m *dataset.Manifest) *Trainer {
	fit := scaling.NewFit(s.Scaling, m)
	o := &Objective{Features: m.Features, Labels: m.Labels, Bias: s.Bias, L2: l2, Fit: fit}
	options := lbfgs.Options{Iterations: s.Iterations, Gradient: search.Tolerance, Fall: search.Ftol}
	decays, usual := fixedDecay, usualRaw
	if s.Scaling != scaling.None {
		usual = usualScaled
	}
	if search.Decay == DecayPath {
		decays = decaysFrom(search.FirstDecay)
	}
	set := s.Training()
	set.OwnKind, set.Refit = ownKind, search.Refit
	return &Trainer{fullbatch.New(set, o, newPath(o, decays, usual, options), fit, m), o}
}

// Model implements algorithms.Trainer.
func (t *Trainer) Model() (algorithms.Model, error) {
	x, err := t.Trained()
	if err != nil {
		return nil, err
	}
	return &Model{t.Objective.Features, t.Objective.Labels, t.Objective.Effective(nil, x)}, nil
}

// Memory estimates the memory of a fit by L-BFGS whose kernel's terms sum so many values.
func (s *Settings) Memory(terms int, m *dataset.Manifest) algorithms.Footprint {
	n := Evaluation(m.Features, m.Labels)
	return s.MemoryOf(lbfgs.Bytes(n), n+terms, m)
}

// MemoryOf estimates the memory of a fit whose optimiser keeps so many bytes, and whose evaluations
// sum so many values, apart from the rows and their losses.
func (s *Settings) MemoryOf(optimiser int64, sums int, m *dataset.Manifest) algorithms.Footprint {
	n, set := Evaluation(m.Features, m.Labels), s.Training()
	f := fullbatch.Memory(&set, n, optimiser, sums, m)
	f.Model = 8*int64(n) + 12
	return f
}
