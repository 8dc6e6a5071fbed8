package ldlf

import "errors"

var errNoLabels = errors.New("the dataset has no labels to learn")

// maxValues bounds Θ and q: what one value of a round can hold (512 MiB).
const maxValues = 1 << 27

// sizes are the numbers that shape a forest.
type sizes struct {
	trees, depth     int
	splits, leaves   int // of one tree
	features, labels int
	outputs          int
	bias             bool
}

func newSizes(c *Config, features, labels int) sizes {
	splits := splitNodes(c.Depth)
	return sizes{
		trees: c.Trees, depth: c.Depth, splits: splits, leaves: splits + 1,
		features: features, labels: labels, outputs: c.Outputs, bias: c.Bias,
	}
}

// splitNodes returns the split nodes of a tree of depth h: 2^(h-1) - 1.
func splitNodes(h int) int { return 1<<(h-1) - 1 }

// theta returns the length of Θ: one row of outputs for each feature, and the
// bias's row.
func (z *sizes) theta() int {
	n := z.features * z.outputs
	if z.bias {
		n += z.outputs
	}
	return n
}

// treeQ returns the length of one tree's q (leaves×labels).
func (z *sizes) treeQ() int { return z.leaves * z.labels }

// q returns the length of all trees' q (trees×leaves×labels).
func (z *sizes) q() int { return z.trees * z.treeQ() }

// nodes returns the nodes of one tree, split nodes and leaves.
func (z *sizes) nodes() int { return z.splits + z.leaves }

// treePhi returns tree k's part of φ (trees×splits).
func (z *sizes) treePhi(phi []uint32, k int) []uint32 { return phi[k*z.splits : (k+1)*z.splits] }

// chunk returns tree k's part of a vector of equal parts, such as q.
func chunk[T float32 | float64](v []T, k, width int) []T {
	return v[k*width : (k+1)*width : (k+1)*width]
}
