// Package forest grows, stores and reads the forests of structrf and rf: trees on
// bootstrap samples whose splits lower the entropy of class labels. The two differ
// in the Labeller that gives each node its class labels and each leaf its
// distribution; everything else is here.
//
// The terms come from Chen et al. 2018 ("Structured random forest for label
// distribution learning"). A split node sends a row with x_f < t to the left
// (Eq. 1), the gain of a split is the fall of Shannon entropy in nats (Eq. 2), and
// the best split has the greatest gain (Eq. 3). Among equal gains, the lowest feature
// wins, and then the lowest threshold. A forest predicts the mean of its trees' leaves
// (Eq. 4). Thresholds are tried one by one, or with the adaptive step of Eq. 5.
//
// No result depends on the number of threads or on the machine: counts and
// entropies are integers (see xlogx), the order of every floating-point sum is
// fixed, and random numbers are a function of (seed, tree, path of the node). DESIGN.md
// says how trees are grown fast, and FORMAT.md describes the bytes.
package forest

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
)

// The words that settings take.
const (
	featuresAll  = "all"
	featuresSqrt = "sqrt"

	stepExhaustive = "exhaustive"
	stepAdaptive   = "adaptive"

	splitExact     = "exact"
	splitHistogram = "histogram"
)

// maxDepth bounds the depth of trees: a node's path fits a uint64.
const maxDepth = 60

// Config holds the settings of a job, which settingsOf describes.
type Config struct {
	Preset        string // that selected defaults; of a job none, as it is not written
	Trees         int
	MaxDepth      int     // the root has depth 0; a node at this depth is a leaf
	SamplingRatio float64 // draws with replacement for each training row
	Bootstrap     bool    // trees have samples that are drawn; else each tree has all training rows
	MinSamples    int     // a node of fewer is a leaf; with Bootstrap, copies count
	Features      string  // tried at a node: all, sqrt or a fraction of them
	Step          string  // exhaustive or adaptive
	Alpha         float64 // α of Eq. 5
	Beta          float64 // β of Eq. 5
	Split         string  // exact or histogram; structrf has exact
	Bins          int     // of a feature, with histogram
}

// draws is the size of the sample of a tree on n training rows.
func (c *Config) draws(n int) int {
	if !c.Bootstrap {
		return n
	}
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
	case !c.Bootstrap && n > maxDraws:
		return fmt.Errorf("%d training samples are too many for trees on all samples: at most %d are possible", n, maxDraws)
	case !c.Bootstrap && n < c.MinSamples:
		return param.Errorf("min_samples", "there are %d training samples, but a node needs %d to be split: lower "+
			"min_samples, or use more samples", n, c.MinSamples)
	case n > maxDraws:
		return param.Errorf("sampling_ratio", "a sampling_ratio of %v of %d training samples makes %d draws, at most %d "+
			"are possible",
			c.SamplingRatio, rows, n, maxDraws)
	case n < c.MinSamples:
		return param.Errorf("min_samples", "a sampling_ratio of %v of %d training samples makes %d draws, but a node needs "+
			"%d to be split: lower min_samples, increase sampling_ratio, or use more samples",
			c.SamplingRatio, rows, n, c.MinSamples)
	}
	return nil
}

// BootstrapSample is one tree's bootstrap sample, or the part of it in one node. Its distinct rows are numbered from
// 0, in the order of the dataset's row numbers.
type BootstrapSample struct {
	Tree      uint32
	Width     int       // labels of a row
	Labels    []float32 // rows×Width label degrees
	Weight    []uint32  // how often each row was drawn, or its weight: see copiesOf
	RowValues []float64 // Variant.RowValue of each row; empty if the variant has none
	// Class is the class label of each row, as Labeller.Classify last wrote it.
	Class []uint32
}

// Label returns the label distribution of a row.
func (s *BootstrapSample) Label(row uint32) []float32 {
	i := int(row) * s.Width
	return s.Labels[i : i+s.Width : i+s.Width]
}

// Node describes a node to a Labeller.
type Node struct {
	Rows   []uint32 // rows of the sample, ascending
	Copies int      // sum of their weights
	Path   uint64   // 1 for the root; the children of p are 2p (left) and 2p+1
}

// Labeller gives each node's rows the class labels whose entropy a split lowers,
// and each leaf its distribution. A Labeller is used for one tree at a time, by one
// goroutine. Its results depend on seed, tree and node only.
type Labeller interface {
	// Begin prepares for a tree on s, or for a subtree: s then has the rows of its root only.
	Begin(s *BootstrapSample)
	// Classify writes the class of each of the node's rows to s.Class. It reports
	// false when the node can only be a leaf: its rows do not differ.
	Classify(s *BootstrapSample, n *Node) bool
	// Leaf writes the distribution that a leaf of the node's rows predicts to dst
	// (s.Width values) and returns the training loss there: the K-L, in nats, of
	// the samples from it, summed over copies.
	Leaf(dst []float32, s *BootstrapSample, n *Node) float64
}

// Variant has the parts of a forest algorithm that structrf and rf do not share. Its method
// New makes the algorithm.
type Variant struct {
	// Name is the word that selects the algorithm in a spec.
	Name string
	// Doc says what the algorithm is, in one line.
	Doc string
	// About says what the algorithm is for, and where it comes from.
	About algorithms.About
	// Auto is what preset auto has of its own.
	Auto Sizes
	// Classes returns the number of different class labels that the Labeller gives, at least
	// 2. labels is the number of labels of the dataset.
	Classes func(labels int) int
	// RowValue, if set, computes a number from the label distribution of a row. A kernel
	// calls it once for each training row; Labellers find the numbers in
	// BootstrapSample.RowValues.
	RowValue func(label []float32) float64
	// NewLabeller makes the labeller of one grower.
	NewLabeller func(seed uint64) Labeller
	// Counted, if set, permits trees that are grown by histograms.
	Counted *CountedParts
	// OfTargets, if set, replaces Classes, RowValue and NewLabeller if the labels are targets in bounds; nil: the
	// algorithm cannot learn targets.
	OfTargets *TargetParts
}

// CountedParts are the parts of a Variant whose trees can be grown by histograms: the classes of rows are the same in
// all nodes, and a leaf depends on the numbers of rows by class alone.
type CountedParts struct {
	// Class returns the class of a row.
	Class func(label []float32) uint32
	// Leaf is Labeller.Leaf, given the copies by class and their sum, which is above 0.
	Leaf func(dst []float32, counts []uint32, copies int) float64
}

// TargetParts are the parts of a Variant for targets in bounds. Leaves predict the mean targets of their rows.
type TargetParts struct {
	Classes     func(labels int) int
	RowValue    func(targets []float32) float64
	NewLabeller func(seed uint64) Labeller
}

// on returns the variant for the labels of a dataset.
func (v Variant) on(m *dataset.Manifest) Variant {
	if t := v.OfTargets; t != nil && m.LabelType.Bounds != nil {
		v.Classes, v.RowValue, v.NewLabeller = t.Classes, t.RowValue, t.NewLabeller
	}
	return v
}

// Squares returns the sum of the squares of a row's targets: the RowValue that MeanTargets needs.
func Squares(targets []float32) (sum float64) {
	for _, q := range targets {
		sum += float64(float64(q) * float64(q))
	}
	return sum
}

// MeanTargets writes the mean targets of a leaf's rows to dst, and returns the sum over copies of their squared
// distances from it, Σ w Σ q² - n Σ m². sum is working memory, a value for each target.
func MeanTargets(dst []float32, sum []float64, s *BootstrapSample, n *Node) float64 {
	clear(sum)
	loss, copies := 0.0, float64(n.Copies)
	for _, row := range n.Rows {
		w := float64(s.Weight[row])
		loss += float64(w * s.RowValues[row])
		for j, q := range s.Label(row) {
			sum[j] += float64(w * float64(q))
		}
	}
	for j, total := range sum {
		mean := total / copies
		dst[j] = float32(mean)
		loss -= float64(copies * float64(mean*mean))
	}
	return max(0, loss)
}
