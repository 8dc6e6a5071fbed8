package ldlf

import "github.com/coppice-ldl/coppice/algorithms/kit/gradient"

// maxValues bounds Θ and q: what one value of a round can hold (512 MiB).
const maxValues = 1 << 27

// sizes are the numbers that shape a forest.
type sizes struct {
	trees, depth     int
	splits, leaves   int // of one tree
	features, labels int
	outputs          int
	bias             bool
	parameters       int // the length of Θ
}

func newSizes(c *Config, features, labels int) sizes {
	splits := splitNodes(c.Depth)
	z := sizes{
		trees: c.Trees, depth: c.Depth, splits: splits, leaves: splits + 1,
		features: features, labels: labels, outputs: c.Outputs, bias: c.Bias,
	}
	z.parameters = gradient.Parameters(newFunction(c, z, false, 0))
	return z
}

// splitNodes returns the split nodes of a tree of depth h: 2^(h-1) - 1.
func splitNodes(h int) int { return 1<<(h-1) - 1 }

// theta returns the length of Θ.
func (z *sizes) theta() int { return z.parameters }

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
