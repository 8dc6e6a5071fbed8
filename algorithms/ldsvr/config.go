package ldsvr

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Name is the word that selects the algorithm in a spec.
const Name = "ldsvr"

const (
	// mostExact is the greatest number of rows whose fit is exact by default, and the number
	// of rows, at most, between which the mean distance is taken.
	mostExact = 2000
	// defaultLandmarks is the number of landmarks above that.
	defaultLandmarks = 512
	// mostLandmarks bounds landmarks: a partial has half its square of float64.
	mostLandmarks = 2048
	// mostBytes bounds what a unit takes for an exact fit.
	mostBytes = 4 << 30
)

// Config holds the settings of a job.
type Config struct {
	Preset     string
	Scaling    string
	Landmarks  int // 0: all training rows, exactly
	Cost       float64
	Epsilon    float64
	Clamp      float64
	Width      float64
	Iterations int
	Tolerance  float64
}

// settings lists what a spec may say, in the order of help texts.
var settings = param.Table[Config]{
	param.Word("preset", "auto scales dense features; paper uses raw features",
		func(c *Config) *string { return &c.Preset }, param.Auto, param.Paper),
	scaling.Setting(func(c *Config) *string { return &c.Scaling }),
	param.Int("landmarks", "number of random training samples on which the fitted function is based; 0: all samples, in "+
		"one task that needs "+
		"16 bytes of memory for each pair of samples", 0, mostLandmarks, 0, func(c *Config) *int { return &c.Landmarks }).
		Says("512 if the dataset has more than 2,000 samples, else 0"),
	param.Float("cost", "C: weight of the losses relative to the norm of the function", 1e-6, 1e6, 1,
		func(c *Config) *float64 {
			return &c.Cost
		}),
	param.Float("epsilon", "ε: a sample has no loss if the Euclidean norm of the errors of its logits is at most ε", 0,
		1e3, 0.1, func(c *Config) *float64 {
			return &c.Epsilon
		}),
	param.Float("clamp", "clip probabilities to the range from clamp to 1 - clamp before their logits are computed", 1e-12,
		0.1, 1e-3, func(c *Config) *float64 {
			return &c.Clamp
		}),
	param.Float("width", "width of the Gaussian function, in multiples of the mean distance between training samples",
		1e-3, 1e3, 1, func(c *Config) *float64 {
			return &c.Width
		}),
	param.Int("iterations", "maximum number of steps of reweighted least squares", 1, 10_000, 50, func(c *Config) *int {
		return &c.Iterations
	}),
	param.Float("tolerance", "end the fit if a step lowers the objective by at most this fraction of the objective",
		0, 1, 1e-6,
		func(c *Config) *float64 { return &c.Tolerance }),
}

// fill computes what depends on the data and was not given.
func (c *Config) fill(given param.Values, m *dataset.Manifest) {
	if !given.Has("scaling") && c.Preset == param.Auto {
		c.Scaling = scaling.Rule(m)
	}
	if !given.Has("landmarks") && m.Rows > mostExact {
		c.Landmarks = defaultLandmarks
	}
}

// exactBytes estimates what the unit of an exact fit takes: the kernel matrix, a system of the
// same size, and two of the values of all labels.
func exactBytes(m *dataset.Manifest) int64 {
	n := int64(m.Rows)
	return 16*n*n + 48*n*int64(m.Labels)
}

// mostSystem bounds the values of landmarks for all labels.
const mostSystem = 1 << 27

// fits refuses fits that no unit or partial can hold.
func (c *Config) fits(m *dataset.Manifest) error {
	if need := exactBytes(m); c.Landmarks == 0 && need > mostBytes {
		return param.Errorf("landmarks", "an exact fit of %d samples takes %.1f GiB in one task, but at most %d GiB are "+
			"possible: give a number, such as %d",
			m.Rows, float64(need)/(1<<30), mostBytes>>30, defaultLandmarks)
	}
	if n := int64(c.Landmarks) * int64(m.Labels); n > mostSystem {
		return param.Errorf("landmarks", "%d landmarks for %d labels are %d values, at most %d are possible", c.Landmarks,
			m.Labels, n, int64(mostSystem))
	}
	return nil
}

// kept are the rows of a model: landmarks, or all.
func (c *Config) kept(seed uint64) *rows.Wanted {
	return &rows.Wanted{Most: c.Landmarks, Key: num.NewKey(seed, "ldsvr/landmarks")}
}

// between are the rows between which the mean distance is taken. The landmarks are among them,
// unless there are more landmarks.
func (c *Config) between(seed uint64) *rows.Wanted {
	w := c.kept(seed)
	w.Most = mostExact
	return w
}

// collected are the rows of the round that finds landmarks.
func (c *Config) collected(seed uint64) *rows.Wanted {
	w := c.kept(seed)
	w.Most = max(c.Landmarks, mostExact)
	return w
}
