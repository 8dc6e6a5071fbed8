package ldlscl

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/clusters"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/lbfgs"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
)

// Name is the word that selects the algorithm in a spec.
const Name = "ldl-scl"

// Config holds the settings of a job, which settings describes.
type Config struct {
	Preset     string
	Bias       bool
	Scaling    string
	Clusters   int
	Lambda1    float64
	Lambda2    float64
	Lambda3    float64
	Ridge      float64
	Iterations int
	Tolerance  float64
}

// settings lists what a spec may say, in the order of help texts.
var settings = param.Table[Config]{
	param.Word("preset", "auto standardises dense features, and has a bias and greater weights; paper uses raw features",
		func(c *Config) *string { return &c.Preset }, param.Auto, param.Paper),
	param.Bool("bias", "give each label a bias", true, func(c *Config) *bool { return &c.Bias }).
		Preset(param.Paper, false),
	scaling.Setting(func(c *Config) *string { return &c.Scaling }),
	param.Int("clusters", "number of centres, by k-means of the label distributions: a sample has a code for each", 1, 100,
		5, func(c *Config) *int { return &c.Clusters }),
	param.Float("lambda1", "weight of the squared distances between a prediction and the centres, times the codes", 0, 1e6,
		1e-3, func(c *Config) *float64 { return &c.Lambda1 }),
	param.Float("lambda2", "weight of the reciprocals of the codes, which keeps codes above 0", 0, 1e6, 1e-3,
		func(c *Config) *float64 { return &c.Lambda2 }),
	param.Float("lambda3", "weight decay: ½·lambda3·(‖W‖² + ‖V‖²) is added to the loss; W excludes the biases", 0, 1e6,
		rawDecay, func(c *Config) *float64 { return &c.Lambda3 }).Preset(param.Paper, 1e-3).
		Says("auto: 0.1 if features are scaled, else 3e-3; paper: 1e-3"),
	param.Float("ridge", "weight of the squares of the regression from features to codes, as a multiple of the mean "+
		"square of a feature over all samples", 1e-9, 1e6, 1, func(c *Config) *float64 { return &c.Ridge }),
	param.Int("iterations", "maximum number of L-BFGS iterations; tolerance may end training earlier", 1, 1<<40, 300,
		func(c *Config) *int { return &c.Iterations }),
	param.Float("tolerance", "stop if no element of the gradient has a greater absolute value; 0: stop only if the "+
		"gradient is exactly 0", 0, 1e6, 1e-7, func(c *Config) *float64 { return &c.Tolerance }),
}

// The decays of preset auto.
const (
	scaledDecay = 0.1
	rawDecay    = 3e-3
)

// fill computes what depends on the data and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	if c.Preset != param.Auto {
		return
	}
	param.StandIn(given, "scaling", &c.Scaling, scaling.Rule(m))
	if c.Scaling != scaling.None {
		param.StandIn(given, "lambda3", &c.Lambda3, scaledDecay)
	}
}

// The bounds of the codes, and of the sums of the regression.
const (
	maxCodes = 1 << 17
	maxSums  = 1 << 25
)

// fits refuses too many samples or features.
func (c *Config) fits(m *dataset.Manifest) error {
	if _, err := maxent.Size(m); err != nil {
		return err
	}
	if n := int64(m.Rows) * int64(c.Clusters); n > maxCodes {
		return param.Errorf("clusters", "%d samples with %d centres have %d codes, at most %d are possible: "+
			"use sa-bfgs or fewer samples", m.Rows, c.Clusters, n, maxCodes)
	}
	s := sizesOf(c, m)
	if n := s.regression(); n > maxSums {
		return param.Errorf("clusters", "the products of %d features and %d codes would hold %d values, at most %d "+
			"are possible", m.Features, c.Clusters, n, maxSums)
	}
	return nil
}

// sizes are the sizes of a job.
type sizes struct{ features, labels, centres, rows int }

func sizesOf(c *Config, m *dataset.Manifest) sizes {
	return sizes{features: m.Features, labels: m.Labels, centres: c.Clusters, rows: m.Rows}
}

// weights is the number of effective weights of W, with the offsets.
func (s *sizes) weights() int { return (s.features + 1) * s.labels }

// own is the number of values of V and of ln c of all samples.
func (s *sizes) own() int { return s.centres*s.labels + s.rows*s.centres }

// evaluation is the number of values that an evaluation sums: samples, K-L divergences, the derivatives by W, the other
// terms, the derivatives by V, and by ln c of each sample.
func (s *sizes) evaluation() int { return fullbatch.SumsAt + s.weights() + 1 + s.own() }

// regression is the number of values that the round of the regression sums: products of features, and of features and
// ln c. The last feature is 1.
func (s *sizes) regression() int64 {
	q := int64(s.features + 1)
	return q*(q+1)/2 + q*int64(s.centres)
}

// memory estimates the memory of a job's trainer.
func (c *Config) memory(m *dataset.Manifest) algorithms.Footprint {
	s := sizesOf(c, m)
	point, q := s.weights()+s.own(), int64(m.Features+1)
	sums := max(int64(s.evaluation()), s.regression(), int64(clusters.MostSums(c.Clusters, m)),
		int64(scaling.MostSums(c.Scaling, m)))
	fitted := 8 * (int64(s.weights()) + int64(s.centres*s.labels) + q*int64(s.centres))
	return algorithms.Footprint{
		Model: fitted + 64, Node: 8 * sums, Nodes: int64(len(m.Shards)),
		State: lbfgs.Bytes(point) + 8*int64(point) + fitted + 16*int64(m.Features) + 8*int64(s.centres*s.labels) +
			512,
		Working: 8 * q * q,
	}
}
