package ldlldm

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
)

// Name is the word that selects the algorithm in a spec.
const Name = "ldl-ldm"

// Config holds the settings of a job, which settings describes.
type Config struct {
	maxent.Settings
	maxent.Search
	L1       float64
	L2       float64
	L3       float64
	Clusters int
}

func shared(c *Config) *maxent.Settings { return &c.Settings }
func search(c *Config) *maxent.Search   { return &c.Search }

// settings lists what a spec may say, in the order of help texts.
var settings = append(append(
	maxent.First(shared, "the authors' values, and runs all iterations",
		"standard if at least 20 % of the feature values are non-zero, else none",
		param.Bool("bias", "give each label a bias", true, func(c *Config) *bool { return &c.Bias })),
	param.Float("l1", "weight decay: ½·l1·‖W‖² is added to the sum of the samples' losses; W excludes the biases", 0, 1e9,
		1e-3, func(c *Config) *float64 {
			return &c.L1
		}),
	param.Float("l2", "weight of the distance between predictions and the manifold of all label distributions",
		0, 1e6, 0.01,
		func(c *Config) *float64 { return &c.L2 }).Preset(param.Paper, 1),
	param.Float("l3", "weight of the distance between predictions and the manifold of their cluster", 0, 1e6, 0.01,
		func(c *Config) *float64 { return &c.L3 }).Preset(param.Paper, 1),
	param.Int("clusters", "number of clusters of the samples, found by k-means on their label distributions", 1, 1000,
		manyClusters, func(c *Config) *int {
			return &c.Clusters
		}).
		Says("10, or 1 with fewer than 100 samples")),
	append(maxent.Decay(search, "l1"), maxent.Last(shared, search)...)...)

// The clusters where none are given.
const (
	manyClusters = 10
	fewRows      = 100 // below it there is one
)

// fill computes what depends on the data and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	c.FillScaling(given, m, true)
	c.FillDecay(&c.Search, given, "l1", m)
	if !given.Has("clusters") && m.Rows < fewRows {
		c.Clusters = 1
	}
}

// mostProducts bounds the products of labels that a round sums: 512 MiB.
const mostProducts = 1 << 26

// fits refuses a model that is too large, and clusters whose products of labels are too many.
func fits(c *Config, m *dataset.Manifest) error {
	if _, err := maxent.Size(m); err != nil {
		return err
	}
	if n := int64(c.Clusters+1) * int64(m.Labels) * int64(m.Labels); n > mostProducts {
		return param.Errorf("clusters", "the matrices of label products would hold %d values ((%d clusters + 1) × %d "+
			"labels²), at most %d are possible",
			n, c.Clusters, m.Labels, mostProducts)
	}
	return nil
}
