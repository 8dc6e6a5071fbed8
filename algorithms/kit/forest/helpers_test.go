package forest

import (
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/internal/num"
)

// problem is a small dataset in float32, dense, row-major.
type problem struct {
	n, features, labels int
	x, d                []float32
}

// data cuts the problem into shards.
func (p *problem) data(shards int, sparse bool, split dataset.Split) *dataset.Data {
	return contract.Dense{Rows: p.n, Features: p.features, Labels: p.labels, X: p.x, D: p.d}.Data(shards, sparse, split)
}

func (p *problem) row(i int) []float32   { return p.x[i*p.features : (i+1)*p.features] }
func (p *problem) label(i int) []float32 { return p.d[i*p.labels : (i+1)*p.labels] }

// makeProblem draws rows of which share of the features are not zero, with labels
// that depend on the first few features.
func makeProblem(seed uint64, n, features, labels int, share float64) *problem {
	p := &problem{n: n, features: features, labels: labels, x: make([]float32, n*features), d: make([]float32, n*labels)}
	s := num.NewStream(num.NewKey(seed, "test"), 0, 0)
	for i := range n {
		for j := range features {
			if s.Float64() < share {
				p.row(i)[j] = float32(s.Normal() + 0.5)
			}
		}
		sum := float32(0)
		for c := range p.label(i) {
			v := float32(0.1 + s.Float64()/4)
			if c < features && p.row(i)[c] > 0.3 {
				v++
			}
			p.label(i)[c] = v
			sum += v
		}
		for c := range p.label(i) {
			p.label(i)[c] /= sum
		}
	}
	return p
}

// halves is a Labeller of two classes that differ from node to node: a row's first
// degree is above the node's mean or not.
type halves struct{ mean }

func (h *halves) Classify(s *BootstrapSample, n *Node) bool {
	sum := 0.0
	for _, row := range n.Rows {
		sum += float64(s.Weight[row]) * float64(s.Label(row)[0])
	}
	classes := [2]bool{}
	for _, row := range n.Rows {
		s.Class[row] = 0
		if float64(s.Label(row)[0])*float64(n.Copies) > sum {
			s.Class[row] = 1
		}
		classes[s.Class[row]] = true
	}
	return classes[0] && classes[1]
}

// argmaxLabeller is a Labeller of as many classes as there are labels: the label of the
// highest degree.
type argmaxLabeller struct{ mean }

func (h *argmaxLabeller) Classify(s *BootstrapSample, n *Node) bool {
	for _, row := range n.Rows {
		best := 0
		for c, v := range s.Label(row) {
			if v > s.Label(row)[best] {
				best = c
			}
		}
		s.Class[row] = uint32(best)
	}
	return true
}

// mean has leaves predict the mean distribution.
type mean struct{}

func (mean) Begin(*BootstrapSample) {}

func (mean) Leaf(dst []float32, s *BootstrapSample, n *Node) float64 {
	for c := range dst {
		sum := 0.0
		for _, row := range n.Rows {
			sum += float64(float64(s.Weight[row]) * float64(s.Label(row)[c]))
		}
		dst[c] = float32(sum / float64(n.Copies))
	}
	return float64(len(n.Rows))
}

// small is what preset auto has in tests.
var small = Sizes{Trees: 60, MinSamples: 15}

// families are the algorithms of the tests: one of two classes, one of many.
var families = map[string]Variant{
	"two": {
		Name: "two", Auto: small, Classes: func(int) int { return 2 },
		NewLabeller: func(uint64) Labeller { return new(halves) },
	},
	"many": {
		Name: "many", Auto: small, Classes: func(labels int) int { return max(2, labels) },
		NewLabeller: func(uint64) Labeller { return new(argmaxLabeller) },
	},
}

// settings are the settings of the families.
var settings = settingsOf(&Variant{Auto: small})

func smallConfig() Config {
	c := *settings.Default()
	c.Trees, c.MinSamples = 3, 2
	return c
}

func newKernel(f Variant, c Config, seed uint64, d *dataset.Data) *kernel {
	return &kernel{variant: f, cfg: c, seed: seed, features: d.Manifest.Features, labels: d.Manifest.Labels}
}

// growTrees grows a forest of c.Trees trees on some slots.
func growTrees(t testing.TB, f Variant, c Config, seed uint64, d *dataset.Data, lanes int) []*Tree {
	t.Helper()
	tr := newTrainer(&c, d.Manifest.Features, d.Manifest.Labels)
	return contract.Follow(t, tr, contract.Lanes(t, newKernel(f, c, seed, d), d, lanes), nil).Trees
}
