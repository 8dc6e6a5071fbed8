package maxent

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Fit holds the settings of a fit by L-BFGS with a weight decay.
type Fit struct {
	Settings
	Search
	L2 float64
}

// Decayed is the setting l2 of a Fit.
func Decayed[C any](fit func(*C) *Fit) *param.Of[C, float64] {
	return param.Float("l2", "weight decay: ½·l2·‖W‖² is added to the loss; W excludes the biases", 0, 1e6, 0,
		func(c *C) *float64 { return &fit(c).L2 }).Says(L2Says)
}

// Table lists the settings of a Fit, and own between l2 and the course of the decay: paper says what the preset
// paper is.
func Table[C any](fit func(*C) *Fit, paper string, l2 *param.Of[C, float64], own ...param.Setting[C]) param.Table[C] {
	shared := func(c *C) *Settings { return &fit(c).Settings }
	search := func(c *C) *Search { return &fit(c).Search }
	table := append(
		First(shared, paper, "auto: standard if at least 20 % of the feature values are non-zero, else none; paper: none",
			param.Bool("bias", "give each label a bias", true, func(c *C) *bool {
				return &fit(c).Bias
			}).Preset(param.Paper, false)), l2)
	table = append(table, own...)
	return append(append(table, Decay(search, "l2")...), Last(shared, search)...)
}

// Fill computes what depends on the data or on other settings and was not given.
func (f *Fit) Fill(given param.Values, m *dataset.Manifest) {
	f.FillScaling(given, m, false)
	f.FillL2(&f.Search, &f.L2, given, m)
}

// Added is what an algorithm adds to the weight decay and, unless it is Alone, to the mean K-L divergence.
type Added[C any] struct {
	// Terms, if set, makes the terms of a lane.
	Terms func(j *learner.Job[C]) Terms
	// Sums is Terms.Sums of the terms.
	Sums  int
	Alone bool // Objective.Alone
	// Penalty, if set, makes Objective.Penalty.
	Penalty func(j *learner.Job[C]) func(g, w []float64) float64
}

// Define makes the algorithm that minimises the mean K-L divergence of the model, the decay and what is added, by
// L-BFGS. The definition has the names, the texts and the settings. If it has no Fill, the algorithm has Fit.Fill. The
// algorithm calls Fit.Check before the definition's Check.
func Define[C any](d learner.Definition[C], fit func(*C) *Fit, add Added[C]) algorithms.Algorithm {
	d.Predicts = algorithms.Distribution
	if d.Fill == nil {
		d.Fill = func(c *C, given param.Values, m *dataset.Manifest) { fit(c).Fill(given, m) }
	}
	own := d.Check
	d.Check = func(c *C) error {
		if err := fit(c).Check(&fit(c).Search); err != nil || own == nil {
			return err
		}
		return own(c)
	}
	if d.Fits == nil {
		d.Fits = func(_ *C, m *dataset.Manifest) error {
			_, err := Size(m)
			return err
		}
	}
	d.Validation = func(c *C) (share float64, least int) { return fit(c).Validation() }
	d.Trainer = func(j *learner.Job[C]) (learner.Trainer, error) {
		f := fit(j.Config)
		t := NewTrainer(&f.Settings, f.Search, f.L2, "", j.Manifest)
		t.Objective.TermSums, t.Objective.Alone = add.Sums, add.Alone
		if add.Penalty != nil {
			t.Objective.Penalty = add.Penalty(j)
		}
		return t, nil
	}
	d.Kernel = func(j *learner.Job[C]) (round.Kernel, error) {
		k := &kernel{name: d.Name,
			shared: Kernel{Features: j.Manifest.Features, Labels: j.Manifest.Labels, Alone: add.Alone,
				Incomplete: j.Incomplete()}}
		if add.Terms != nil {
			k.terms = func() Terms { return add.Terms(j) }
		}
		return k, nil
	}
	d.Model = Decode
	d.Memory = func(c *C, m *dataset.Manifest) algorithms.Footprint { return fit(c).Memory(add.Sums, m) }
	return learner.Define(d)
}

var _ round.ReduceKernel = (*kernel)(nil)

// kernel is the workers' half of an algorithm without rounds of its own.
type kernel struct {
	name   string
	shared Kernel
	terms  func() Terms // nil: none
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any {
	if k.terms == nil {
		return k.shared.NewScratch(nil)
	}
	return k.shared.NewScratch(k.terms())
}

// Derive implements round.ReduceKernel.
func (k *kernel) Derive(u round.Task, d *dataset.Data, _ round.Vars, scratch any) (round.Derived, error) {
	return k.shared.Derive(u, d, scratch.(*Scratch)), nil
}

// Run implements round.ReduceKernel.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, derived round.Derived,
	scratch any) error {
	s := scratch.(*Scratch)
	s.Unit = u
	if !k.shared.Run(dst, &s.Unit, d, v, derived, s) {
		return fmt.Errorf("%s: the task has the unknown operation %d", k.name, u.Op)
	}
	return nil
}
