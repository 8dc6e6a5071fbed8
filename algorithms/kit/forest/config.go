package forest

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
)

// The words that settings take.
const (
	featuresAll  = "all"
	featuresSqrt = "sqrt"

	stepExhaustive = "exhaustive"
	stepAdaptive   = "adaptive"
)

// maxDepth bounds the depth of trees: a node's path fits a uint64.
const maxDepth = 60

// Config holds the settings of a job, which settingsOf describes.
type Config struct {
	Preset        string // that selected defaults; of a job none, as it is not written
	Trees         int
	MaxDepth      int     // the root has depth 0; a node at this depth is a leaf
	SamplingRatio float64 // draws with replacement for each training row
	MinSamples    int     // a node of fewer, copies counted, is a leaf
	Features      string  // tried at a node: all, sqrt or a fraction of them
	Step          string  // exhaustive or adaptive
	Alpha         float64 // α of Eq. 5
	Beta          float64 // β of Eq. 5
}

// draws is the size of a bootstrap sample of n training rows.
func (c *Config) draws(n int) int {
	return int(math.Floor(float64(c.SamplingRatio * float64(n))))
}

// tried is the number of the q features that each node tries, at least one.
func (c *Config) tried(q int) int {
	switch c.Features {
	case featuresAll:
		return q
	case featuresSqrt:
		return max(1, int(math.Floor(math.Sqrt(float64(q)))))
	}
	share, _ := strconv.ParseFloat(c.Features, 64) // checked
	return max(1, int(math.Floor(float64(share*float64(q)))))
}

// checkFeatures reports why a value of features is wrong.
func checkFeatures(text string) error {
	if text == featuresAll || text == featuresSqrt {
		return nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.Trim(text, "0123456789.eE+-") != "" || !(v > 0 && v <= 1) {
		return errors.New("want all, sqrt, or a fraction of the features above 0 and at most 1")
	}
	return nil
}

// checkDraws refuses bootstrap samples that are too large, or too small for a split; rows is
// the number of training rows.
func (c *Config) checkDraws(rows int) error {
	switch n := c.draws(rows); {
	case n > maxDraws:
		return param.Errorf("sampling_ratio", "a sampling_ratio of %v of %d training samples makes %d draws, at most %d are possible",
			c.SamplingRatio, rows, n, maxDraws)
	case n < c.MinSamples:
		return param.Errorf("min_samples", "a sampling_ratio of %v of %d training samples makes %d draws, but a node needs %d to be split: lower min_samples, increase sampling_ratio, or use more samples",
			c.SamplingRatio, rows, n, c.MinSamples)
	}
	return nil
}
