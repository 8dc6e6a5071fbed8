// Package ensemble trains several algorithms and predicts p = Σ_m w_m p_m, the weighted sum of
// what its members predict. The weights are not negative, sum to 1, and have the least
// K-L divergence on out-of-fold predictions of the training rows: each row is predicted by
// models whose training did not see the row. If the rows have weights, the divergence is a
// weighted mean, and all members use weights. DESIGN.md tells how the jobs run.
package ensemble

import (
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/binning"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// New returns the algorithm; of others it takes its members.
func New(others []algorithms.Algorithm) algorithms.Algorithm {
	k := kin(others)
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "Ensemble",
			Summary: "weighted sum of other algorithms",
			When:    "Use it for the lowest K-L divergence if minutes do not matter, and for fewer than 500 samples.",
		},
		Doc:      "the weighted sum of the predictions of other algorithms; these members are trained as sub-jobs",
		Predicts: algorithms.Distribution,
		Settings: k.settings(),
		Fill:     k.fill,
		Divide:   divide,
		Fits:     k.fits,
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			members, err := k.resolve(j.Config.Members, j.Manifest)
			return newTrainer(j, members), err
		},
		StateVersion: stateVersion,
		Kernel:       k.kernel,
		SubJob: func(j *learner.Job[Config], unit int) (*round.Job, error) {
			members, err := k.resolve(j.Config.Members, j.Manifest)
			if err != nil {
				return nil, err
			}
			return child(j, members, unit)
		},
		Model:  k.decodeModel,
		Memory: k.memory,
	})
}

// kernel computes nothing: all units are child jobs, each with a kernel of its own.
type kernel struct {
	bytes int64
	what  string
}

// kernel makes a kernel that knows what the members take. A member without a kernel takes nothing: its child jobs say
// why.
func (k kin) kernel(j *learner.Job[Config]) (round.Kernel, error) {
	members, err := k.resolve(j.Config.Members, j.Manifest)
	if err != nil {
		return nil, err
	}
	own := new(kernel)
	for i := range members {
		c, err := child(j, members, i)
		if err != nil {
			return nil, err
		}
		inner, err := members[i].NewKernel(c, j.Manifest)
		if err != nil {
			continue
		}
		if d, ok := inner.(round.Demanding); ok {
			if bytes, what := d.Demand(); bytes > own.bytes {
				own.bytes, own.what = bytes, members[i].label+": "+what
			}
		}
	}
	return own, nil
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any { return nil }

// Demand implements round.Demanding: what the most demanding member takes.
func (k *kernel) Demand() (bytes int64, what string) { return k.bytes, k.what }

// fill resolves the settings of the members; what is wrong with them fits reports.
func (k kin) fill(c *Config, given param.Values, m *dataset.Manifest) {
	if c.Preset == param.Auto && m.Rows <= fewRows {
		members, more := fewMembers, pairMembers
		if m.HasWeights {
			members, more = strings.Replace(members, neighbours, "", 1), strings.Replace(more, neighbours, "", 1)
		}
		if m.Rows >= pairRows && m.Labels <= pairLabels {
			if _, err := k.resolve(more, m); err == nil { // df-ldl refuses one label, and very many features
				members = more
			}
		}
		param.StandIn(given, "members", &c.Members, members)
		if c.Weights == weightsFitted && takesManyFolds(m) {
			param.StandIn(given, "inner_folds", &c.InnerFolds, manyFolds)
		}
	}
	if c.Preset == param.Auto && m.Rows > fewRows && binning.AtMost(m, memberBins)*int64(m.Labels) > mostSums {
		param.StandIn(given, "members", &c.Members, strings.Replace(manyMembers, booster, wideBooster, 1))
	}
	c.idleBudget = given.Has("budget") && c.Budget != defaultBudget && (c.Preset != PresetBest || given.Has("members"))
	if c.Preset == PresetBest {
		k.fillBest(c, given, m)
	}
	if members, err := k.resolve(c.Members, m); err == nil {
		c.Members = format(members)
	}
}

// fits refuses members that do not go with the data, and folds without rows.
func (k kin) fits(c *Config, m *dataset.Manifest) error {
	if err := c.fitsBudget(); err != nil {
		return err
	}
	if rows := m.Divided().Rows; c.Weights != weightsMean && c.InnerFolds > rows {
		return param.Errorf("inner_folds", "%d folds are too many for %d samples: some folds would be empty",
			c.InnerFolds, rows)
	}
	switch {
	case c.Validated == 1:
	case c.Weights != WeightsValidated:
		return param.Errorf("validated_folds", "%d folds need weights %s, not %s", c.Validated, WeightsValidated, c.Weights)
	case m.Validation != nil:
		return param.Errorf("validated_folds", "validation samples of a file choose the member, so there are no %d folds",
			c.Validated)
	case c.Validated > c.InnerFolds:
		return param.Errorf("validated_folds", "%d folds are more than the %d inner folds; give inner_folds=%[1]d, too",
			c.Validated, c.InnerFolds)
	}
	_, err := k.resolve(c.Members, m)
	return err
}
