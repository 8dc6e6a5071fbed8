// Package aosoldlogitboost is AOSO-LDLogitBoost (Xing, Geng and Xue 2016): LDLogitBoost with the
// adaptive one-vs-one trees of Sun, Reid and Zhou 2012 ("AOSO-LogitBoost"), one each boosting
// round. Each node fits the two labels that it gains most by.
package aosoldlogitboost

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/boost"
)

// Name is the word that selects the algorithm in a spec.
const Name = "aoso-ldlogitboost"

// New returns the algorithm.
func New() algorithms.Algorithm {
	return boost.Variant{
		Name: Name,
		About: algorithms.About{
			Class:   "AOSOLDLogitBoost",
			Summary: "boosted trees, one for all labels",
			When:    "Compare it with dldl for classes; it takes less time than ldlogitboost.",
			Paper:   `Xing, Geng and Xue 2016, "Logistic boosting regression for label distribution learning"`,
		},
		Doc: "AOSO-LDLogitBoost of Xing, Geng and Xue 2016: label distributions are the softmax of sums of trees; each " +
			"boosting round " +
			"adds one tree, whose nodes choose two labels each",
		Factor:       func(int) float64 { return 1 },
		NewCriterion: func(*boost.Config) boost.Criterion { return new(oneOnOne) },
	}.New()
}

// most is the greatest size of what a leaf adds.
const most = 5

// oneOnOne is the criterion of a tree whose nodes choose two labels r and s. With g_c = p_c - d_c and
// G_c its sum over the node's rows, r has the greatest -G_c, and s ≠ r the greatest (G_r - G_c)² / h_rc,
// where h_rc sums p_r (1 - p_r) + p_c (1 - p_c) + 2 p_r p_c; among ties the lower label. The
// node's score is (G_s - G_r)² / (2 h_rs).
type oneOnOne struct {
	labels int
	g      *boost.Gradients
	first  []int64 // rows×labels: g_c
	second []int64 // rows×labels: p_c (1 - p_c)
	sums   []int64 // G_c of a node
	curves []int64 // h_rc of a node
}

// L2 implements boost.Criterion.
func (*oneOnOne) L2() float64 { return 0 }

// Begin implements boost.Criterion.
func (c *oneOnOne) Begin(g *boost.Gradients, _ int) {
	c.g, c.labels = g, g.Labels
	if n := g.Rows * g.Labels; len(c.first) != n {
		c.first, c.second = make([]int64, n), make([]int64, n)
		c.sums, c.curves = make([]int64, g.Labels), make([]int64, g.Labels)
	}
	for row := range g.Rows {
		for i := row * g.Labels; i < (row+1)*g.Labels; i++ {
			p := g.P[i]
			c.first[i] = g.Fixed(row, p-float64(g.D[i]))
			c.second[i] = g.Fixed(row, float64(p*(1-p)))
		}
	}
}

// Node implements boost.Criterion: G of a pair is g_s - g_r, H twice the second derivative.
func (c *oneOnOne) Node(rows []uint32, pairs []boost.Pair) (sum boost.Pair, chosen boost.Choice) {
	r, s := c.choose(rows)
	for _, row := range rows {
		at := int(row) * c.labels
		pair := boost.Pair{G: c.first[at+s] - c.first[at+r], H: 2 * c.curve(int(row), r, s)}
		pairs[row] = pair
		sum.G += pair.G
		sum.H += pair.H
	}
	return sum, boost.Choice{Up: uint16(r), Down: uint16(s)}
}

// curve is the part that a row has in h_rs.
func (c *oneOnOne) curve(row, r, s int) int64 {
	at := row * c.labels
	p := c.g.P[at : at+c.labels]
	return c.second[at+r] + c.second[at+s] + 2*c.g.Fixed(row, float64(p[r]*p[s]))
}

// choose returns the labels r and s of a node; r = s where there is one label.
func (c *oneOnOne) choose(rows []uint32) (r, s int) {
	clear(c.sums)
	for _, row := range rows {
		for k, g := range c.first[int(row)*c.labels : int(row+1)*c.labels] {
			c.sums[k] += g
		}
	}
	for k, sum := range c.sums {
		if sum < c.sums[r] {
			r = k
		}
	}
	clear(c.curves)
	for _, row := range rows {
		for k := range c.curves {
			c.curves[k] += c.curve(int(row), r, k)
		}
	}
	return r, c.opponent(r)
}

// opponent returns s.
func (c *oneOnOne) opponent(r int) (s int) {
	best := -1.0
	for k := range c.sums {
		g := float64(c.sums[k] - c.sums[r])
		if score := float64(g*g) / float64(max(1, c.curves[k])); k != r && score > best {
			best, s = score, k
		}
	}
	return s
}

// Leaf implements boost.Criterion: γ = (G_s - G_r) / h_rs, at most 5 in size, for r, and -γ for s.
func (c *oneOnOne) Leaf(dst []float32, sum boost.Pair, chosen boost.Choice) {
	step := float64(sum.G) / float64(max(1, sum.H/2))
	step = max(-most, min(most, step))
	dst[chosen.Up] += float32(step)
	dst[chosen.Down] -= float32(step)
}
