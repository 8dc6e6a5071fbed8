package ensemble

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
)

// extent is the size of a dataset, as the work of candidates depends on it.
type extent struct {
	rows, values, labels float64 // values are the non-zeros of a row, and a bias
	log                  float64 // the depth of a balanced tree of the rows
}

// A candidate is an algorithm with its defaults, and the estimated multiply-additions of its training. The estimates
// follow from measured times (docs/guides/choose-an-algorithm.md). They depend on data only, never on a clock.
type candidate struct {
	name string
	work func(x extent) float64
}

// candidates are in the order in which the budget takes them.
var candidates = []candidate{
	{"structrf", func(x extent) float64 { return 1000 * x.rows * x.values * x.log }},
	{"sa-bfgs", func(x extent) float64 { return 200 * x.rows * x.values * x.labels }},
	{"ldlf", func(x extent) float64 { return 3 * x.drawn() * (float64(128*x.values) + float64(640*x.labels)) }},
	{"dldl", func(x extent) float64 { return 256 * x.drawn() * (x.values + 64 + x.labels) }},
	{"aa-bp", func(x extent) float64 {
		return 5000 * max(x.rows*(x.values+x.labels), 150_000+float64(leastDrawn/40*(x.values+x.labels)))
	}},
	{"aoso-ldlogitboost", func(x extent) float64 {
		return 4000 * x.log * max(x.rows*x.values, min(x.rows, 2000)*(x.values+float64(4*x.labels)))
	}},
	{"ldsvr", func(x extent) float64 {
		if x.rows <= 2000 {
			return x.rows * x.rows * (x.values + float64(3*x.labels) + 100)
		}
		return 2500 * x.rows * (x.values + x.labels)
	}},
	{"df-ldl", func(x extent) float64 {
		return 80 * (float64(x.rows*x.values) + float64(60*min(x.rows, 200))) * x.labels * x.labels * x.labels
	}},
	{"ldlogitboost", func(x extent) float64 { return 3000 * x.rows * x.values * x.log * x.labels }},
	{"aa-knn", func(x extent) float64 { return x.rows * x.rows * x.values }},
}

// Candidates lists the algorithms that the preset best compares, in the order in which the budget takes them.
func Candidates() (names []string) {
	for _, one := range candidates {
		names = append(names, one.name)
	}
	return names
}

// leastDrawn is the least number of rows that the steps of a gradient descent draw. Early stopping waits for as many
// steps on few rows as on more. If the labels follow exactly from the features, it ends no training.
const leastDrawn = 100_000

// drawn is how many rows the steps of a gradient descent draw: early stopping ends it on few rows, and the number of
// steps on many.
func (x extent) drawn() float64 {
	if x.rows < 20_000 {
		return max(leastDrawn, 40*x.rows)
	}
	return 128 * min(max(7000, x.rows/8), 40_000)
}

// fillBest sets the members to the candidates that fit the budget with one inner fold. Then as many inner folds choose
// among them as fit the budget. The work of given members is not known, so all inner folds of few rows choose.
func (k kin) fillBest(c *Config, given param.Values, m *dataset.Manifest) {
	param.StandIn(given, "weights", &c.Weights, WeightsValidated)
	more := *c
	if takesManyFolds(m) {
		param.StandIn(given, "inner_folds", &more.InnerFolds, manyFolds)
	}
	if given.Has("validated_folds") && c.Validated > 1 {
		c.InnerFolds = more.InnerFolds
	}
	var taken []worked
	if !given.Has("members") {
		if taken, c.leastBudget = k.within(c, m); len(taken) < leastMembers {
			return
		}
		var names []string
		for _, one := range taken {
			names = append(names, one.name)
		}
		c.Members = strings.Join(names, ",")
	}
	if c.Weights != WeightsValidated || m.Validation != nil || given.Has("validated_folds") ||
		given.Has("members") && m.Rows > fewRows {
		return
	}
	for more.Validated = more.InnerFolds; more.Validated > 1; more.Validated-- {
		if more.workOf(taken, m) <= c.Budget {
			c.InnerFolds, c.Validated = more.InnerFolds, more.Validated
			return
		}
	}
}

// worked is a candidate that a dataset suits.
type worked struct {
	name string
	work float64 // of its training on all rows, in billions of multiply-additions
}

// workOf returns the work of all trainings. Each candidate is trained once for each inner fold, on the other rows, or
// once if the validation rows have a file. Then the best one, which may have the most work, is trained on all rows.
// Without validation, all candidates are.
func (c *Config) workOf(all []worked, m *dataset.Manifest) (sum float64) {
	tests := float64(float64(c.heldOut(c.InnerFolds)) * (1 - 1/float64(c.InnerFolds)))
	switch {
	case c.Weights != WeightsValidated:
		tests++
	case m.Validation != nil:
		tests = 1
	}
	greatest := 0.0
	for _, one := range all {
		sum, greatest = sum+float64(tests*one.work), max(greatest, one.work)
	}
	if c.Weights == WeightsValidated {
		sum += greatest
	}
	return sum
}

// within returns the candidates whose work together fits the budget of c, in the order in which they are taken; the two
// of the least work if only these fit together. If there are fewer than two, least is the least budget, in billions,
// that two candidates fit. Candidates that refuse the dataset are left out.
func (k kin) within(c *Config, m *dataset.Manifest) (taken []worked, least float64) {
	rows := m.Divided().Rows
	x := extent{rows: float64(rows), values: float64(m.NonZeros)/max(1, float64(m.Rows)) + 1, labels: float64(m.Labels),
		log: float64(bits.Len(uint(rows)))}
	var all []worked
	for _, one := range candidates {
		if _, err := k.resolve(one.name+","+one.name, m); err != nil { // no list has one member alone
			continue
		}
		this := worked{one.name, one.work(x) / 1e9}
		all = append(all, this)
		if more := append(slices.Clone(taken), this); c.workOf(more, m) <= c.Budget {
			taken = more
		}
	}
	if len(all) < leastMembers {
		return nil, 0
	}
	if len(taken) < leastMembers {
		slices.SortStableFunc(all, func(a, b worked) int { return cmp.Compare(a.work, b.work) })
		taken = all[:leastMembers]
		if work := c.workOf(taken, m); work > c.Budget {
			return nil, math.Floor(work) + 1
		}
	}
	return taken, 0
}

// fitsBudget refuses a budget that fits fewer than two candidates, and a budget that chooses no members.
func (c *Config) fitsBudget() error {
	switch {
	case c.idleBudget && c.Preset != PresetBest:
		return param.Errorf("budget", "needs preset %s, or algorithm %[1]s", PresetBest)
	case c.idleBudget:
		return param.Errorf("budget", "the members are given, so a budget would choose none; omit one of the two")
	case c.leastBudget > c.Budget:
		return param.Errorf("budget", "%v billion multiply-additions are too few to compare two algorithms on this dataset, "+
			"which takes %.0f", c.Budget, c.leastBudget)
	}
	return nil
}
