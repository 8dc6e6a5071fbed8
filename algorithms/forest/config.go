package forest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
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

// Config holds the resolved settings of a job. Its JSON form is Job.Params: every
// field is present, in this order, so equal settings have equal bytes.
type Config struct {
	Trees         int     `json:"trees"`
	MaxDepth      int     `json:"max_depth"`      // the root has depth 0; a node at this depth is a leaf
	SamplingRatio float64 `json:"sampling_ratio"` // draws with replacement for each training row
	MinSamples    int     `json:"min_samples"`    // a node of fewer, copies counted, is a leaf
	Features      string  `json:"features"`       // tried at a node: all, sqrt or a share of them
	Step          string  `json:"step"`           // exhaustive or adaptive
	Alpha         float64 `json:"alpha"`          // α of Eq. 5
	Beta          float64 `json:"beta"`           // β of Eq. 5
}

// Default returns the paper's settings (section 4.4).
func Default() Config {
	return Config{
		Trees: 50, MaxDepth: 20, SamplingRatio: 0.8, MinSamples: 20,
		Features: featuresAll, Step: stepExhaustive, Alpha: 0.25, Beta: 8,
	}
}

// parseConfig reads the JSON form strictly: unknown keys and values out of range
// are errors.
func parseConfig(raw json.RawMessage) (*Config, error) {
	c := new(Config)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("forest: settings: %w", err)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("forest: %w", err)
	}
	return c, nil
}

// check returns a *algorithms.ParamError for the first setting out of its range.
func (c *Config) check() error {
	for i := range settings {
		if err := settings[i].check(c); err != nil {
			return err
		}
	}
	return nil
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
		return fmt.Errorf("want all, sqrt, or a share of the features above 0 and at most 1")
	}
	return nil
}

// checkDraws refuses bootstrap samples that are too large, or too small for a split; rows is
// the number of training rows.
func (c *Config) checkDraws(rows int) error {
	switch n := c.draws(rows); {
	case n > maxDraws:
		return paramError("sampling_ratio", "%v of %d training rows are %d draws, more than the %d that are possible",
			c.SamplingRatio, rows, n, maxDraws)
	case n < c.MinSamples:
		return paramError("min_samples", "%v of %d training rows are %d draws, fewer than the %d that a node needs to be split: give less, or more rows",
			c.SamplingRatio, rows, n, c.MinSamples)
	}
	return nil
}

func paramError(name, format string, args ...any) error {
	return &algorithms.ParamError{Name: name, Reason: fmt.Sprintf(format, args...)}
}
