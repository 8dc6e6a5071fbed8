package ndf

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
)

// The words that settings take.
const (
	routingHard = "hard"
	routingSoft = "soft"

	hiddenAdaptive = "adaptive"
)

// Bounds of settings.
const (
	maxTrees  = 10_000
	maxDepth  = 20 // a node's path fits 32 bits
	maxHidden = 512
	maxStarts = 100

	// maxNode bounds the values of a node's inputs that are in memory at a time: 1 GiB.
	maxNode = 1 << 28
)

// Config holds the settings of a job, which settings describes.
type Config struct {
	Preset        string
	Trees         int
	MaxDepth      int     // the root has depth 0; a node at this depth is a leaf
	MinSamples    int     // a node of fewer, copies counted, is a leaf
	SamplingRatio float64 // draws with replacement for each training row
	Share         float64 // of the features that a network reads
	Hidden        string  // see topology
	Starts        int     // random networks; the best is trained
	Iters         int     // steps of Adam
	LearningRate  float64
	L1            float64 // factor of ‖weights‖₁ in Q_Reg
	BatchAbove    int     // a node of more rows takes mini-batches
	BatchSize     int
	Routing       string // of predictions
}

// draws is the size of a bootstrap sample of n training rows.
func (c *Config) draws(n int) int {
	return int(math.Floor(float64(c.SamplingRatio * float64(n))))
}

// inputs is the number of the q features that a network reads, at least one.
func (c *Config) inputs(q int) int {
	return max(1, int(math.Floor(float64(c.Share*float64(q)))))
}

// topology says how many hidden units the network of a node has: a number from least to most
// that is drawn, or, if it is adaptive, a twentieth of the node's samples within these bounds. No
// hidden unit: the network is a perceptron.
type topology struct {
	least, most int
	adaptive    bool
}

// The bounds of an adaptive topology, and the samples for a hidden unit.
const (
	adaptiveLeast   = 2
	adaptiveMost    = 32
	samplesForAUnit = 20
)

// errHidden says what the setting hidden may be.
var errHidden = errors.New("want a number of units up to " + strconv.Itoa(maxHidden) +
	" (0: a perceptron), a range such as 4-16, adaptive, or adaptive-N with at most N units")

// parseHidden reads the setting hidden.
func parseHidden(text string) (topology, error) {
	if text == hiddenAdaptive {
		return topology{adaptiveLeast, adaptiveMost, true}, nil
	}
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		n, ok := parseUnits(text)
		return refuse(topology{n, n, false}, ok)
	}
	most, ok := parseUnits(to)
	if from == hiddenAdaptive {
		return refuse(topology{adaptiveLeast, most, true}, ok && most >= adaptiveLeast)
	}
	least, fine := parseUnits(from)
	return refuse(topology{least, most, false}, ok && fine && least <= most)
}

func refuse(t topology, ok bool) (topology, error) {
	if !ok {
		return topology{}, errHidden
	}
	return t, nil
}

// parseUnits reads a number of hidden units, without sign or leading zeros.
func parseUnits(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && n <= maxHidden && strconv.Itoa(n) == text
}

func checkHidden(text string) error {
	_, err := parseHidden(text)
	return err
}

// hidden returns the topology of a checked Config.
func (c *Config) hidden() topology {
	t, _ := parseHidden(c.Hidden)
	return t
}

// checkSizes refuses sizes that do not go together or with the data.
func (c *Config) checkSizes(m *dataset.Manifest) error {
	if c.BatchSize > c.BatchAbove {
		return param.Errorf("batch_size", "got %d samples, want at most batch_above, %d: larger nodes use mini-batches",
			c.BatchSize, c.BatchAbove)
	}
	if values := min(c.BatchAbove, max(1, c.draws(m.Rows))) * (c.inputs(m.Features) + 1); values > maxNode {
		return param.Errorf("share", "a node of up to %d samples with %d inputs has %d values, at most %d are possible: "+
			"lower share or batch_above",
			min(c.BatchAbove, c.draws(m.Rows)), c.inputs(m.Features), values, maxNode)
	}
	return c.checkDraws(m.Rows)
}

// checkDraws refuses bootstrap samples that are too small for a split; rows is the number of
// training rows.
func (c *Config) checkDraws(rows int) error {
	if n := c.draws(rows); n < c.MinSamples {
		return param.Errorf("min_samples", "a sampling_ratio of %v of %d training samples makes %d draws, but a node needs "+
			"%d to be split: lower min_samples, increase sampling_ratio, or use more samples",
			c.SamplingRatio, rows, n, c.MinSamples)
	}
	return nil
}
