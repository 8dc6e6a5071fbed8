package dfldl

import (
	"fmt"
	"strconv"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/aaknn"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/sabfgs"
	"github.com/coppice-ldl/coppice/dataset"
)

// Name is the word that selects the algorithm in a spec.
const Name = "df-ldl"

// MaxLabels is the greatest number of labels. So many labels have 9,900 models.
const MaxLabels = 100

// The algorithms of the gate and of the models.
var nearest, linear = aaknn.New(), sabfgs.New()

// Config holds the settings of a job, which settings describes.
type Config struct {
	maxent.Settings
	maxent.Search
	L2         float64
	K          int
	MinSamples int
}

// paperIterations is the number of iterations of preset paper.
const paperIterations = 500

func shared(c *Config) *maxent.Settings { return &c.Settings }
func search(c *Config) *maxent.Search   { return &c.Search }

// settings lists what a spec may say, in the order of help texts.
var settings = table()

func table() param.Table[Config] {
	t := maxent.First(shared, "raw features, no bias and no weight decay, and runs all iterations",
		"auto: standard if at least 20 % of the feature values are non-zero, else none; paper: none",
		param.Bool("bias", "give each label of a model a bias", true, func(c *Config) *bool {
			return &c.Bias
		}).Preset(param.Paper, false))
	t = append(t,
		param.Int("k", "number of nearest training samples that select the model of each pair of labels", 1, 1e6, 5,
			func(c *Config) *int {
				return &c.K
			}),
		param.Int("min_samples", "minimum number of training samples of a model; a side of a pair with fewer samples is "+
			"trained on all samples", 1, 1e9, 20,
			func(c *Config) *int { return &c.MinSamples }).Preset(param.Paper, 1),
		param.Float("l2", "weight decay of each model: ½·l2·‖W‖² is added to the loss; W excludes the biases", 0, 1e6, 0,
			func(c *Config) *float64 {
				return &c.L2
			}).
			Says(maxent.L2Says))
	t = append(append(t, maxent.Decay(search, "l2")...), maxent.Last(shared, search)...)
	for _, s := range t {
		if n, ok := s.(*param.Of[Config, int]); ok && s.Param().Name == "iterations" {
			n.Preset(param.Paper, paperIterations)
		}
	}
	return t
}

// fill computes what depends on the data or on other settings and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	c.FillScaling(given, m, false)
	c.FillL2(&c.Search, &c.L2, given, m)
}

// divide has the split name the groups, which the validation rows of each side keep whole.
func divide(c *Config, s *dataset.Split, m *dataset.Manifest) error {
	if c.ValidationFraction > 0 {
		m.KeepGroups(s)
	}
	return nil
}

// fits refuses data without pairs of labels, with too many of them, and with fewer rows than neighbours.
func (c *Config) fits(m *dataset.Manifest) error {
	switch n, size := int64(models(m.Labels)), int64(m.Features+1)*int64(m.Labels); {
	case m.Labels < 2:
		return dataset.Errorf(dataset.ErrNoLabels,
			"the algorithm compares pairs of labels, but the dataset has %d label; give two labels or classes", m.Labels)
	case m.Labels > MaxLabels:
		return fmt.Errorf("%d labels need %d models, one for each ordered pair of labels; at most %d labels are possible",
			m.Labels, n, MaxLabels)
	case n*size > maxent.MaxWeights:
		return fmt.Errorf("the models would hold %d weights (%d models of (%d features + 1) × %d labels), at most %d are "+
			"possible",
			n*size, n, m.Features, m.Labels, maxent.MaxWeights)
	case c.K > m.Rows:
		return param.Errorf("k", "%d neighbours, but there are only %d training samples", c.K, m.Rows)
	}
	return nil
}

// models returns the number of models for so many labels.
func models(labels int) int { return labels * (labels - 1) }

// pairOf returns the labels of the pair of a task, a < b, and whether its rows are those with d_a < d_b.
func pairOf(task, labels int) (a, b int, less bool) {
	pair := task / 2
	for pair >= labels-1-a {
		pair -= labels - 1 - a
		a++
	}
	return a, a + 1 + pair, task%2 == 1
}

// gate returns the settings of the gate as package aaknn reads them.
func (c *Config) gate(m *dataset.Manifest) (algorithms.Resolved, error) {
	return nearest.Resolve(param.Values{"k": strconv.Itoa(c.K), "scaling": c.Scaling}, m)
}

// side returns the settings of a model as package sabfgs reads them.
func (c *Config) side(m *dataset.Manifest) (algorithms.Resolved, error) {
	own := settings.Values(c)
	delete(own, "k")
	delete(own, "min_samples")
	return linear.Resolve(own, m)
}
