// Package aosoldlogitboost is AOSO-LDLogitBoost (Xing, Geng and Xue 2016): LDLogitBoost with the
// adaptive one-vs-one trees of Sun, Reid and Zhou 2012 ("AOSO-LogitBoost"), one each boosting
// round. Each node fits the two labels that it gains most by.
package aosoldlogitboost

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/boost"
)

// Name is the word that selects the algorithm in a spec.
const Name = "aoso-ldlogitboost"

// New returns the algorithm.
func New() algorithms.Algorithm {
	return boost.Variant{
		Name: Name,
		Doc: "AOSO-LDLogitBoost of Xing, Geng and Xue 2016: label distributions are the softmax of sums of trees; each boosting round " +
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
	g      *boost.Gradients
	sums   []int64 // G_c
	second []int64 // h_rc
}

// L2 implements boost.Criterion.
func (*oneOnOne) L2() float64 { return 0 }

// Begin implements boost.Criterion.
func (c *oneOnOne) Begin(g *boost.Gradients, _ int) {
	c.g = g
	if len(c.sums) != g.Labels {
		c.sums, c.second = make([]int64, g.Labels), make([]int64, g.Labels)
	}
}

// Node implements boost.Criterion: G of a pair is g_s - g_r, H twice the second derivative.
func (c *oneOnOne) Node(rows []uint32, pairs []boost.Pair) (sum boost.Pair, chosen boost.Choice) {
	if c.g.Labels < 2 {
		clearPairs(rows, pairs)
		return sum, chosen
	}
	r, s := c.choose(rows)
	for _, row := range rows {
		p, d := c.row(row)
		pair := boost.Pair{
			G: c.g.Fixed(p[s]-float64(d[s])) - c.g.Fixed(p[r]-float64(d[r])),
			H: 2 * c.curvature(p, r, s),
		}
		pairs[row] = pair
		sum.G += pair.G
		sum.H += pair.H
	}
	return sum, boost.Choice{Up: uint16(r), Down: uint16(s)}
}

func clearPairs(rows []uint32, pairs []boost.Pair) {
	for _, row := range rows {
		pairs[row] = boost.Pair{}
	}
}

// row returns the predicted and the true degrees of a row.
func (c *oneOnOne) row(row uint32) (p []float64, d []float32) {
	from, to := int(row)*c.g.Labels, int(row+1)*c.g.Labels
	return c.g.P[from:to:to], c.g.D[from:to:to]
}

// curvature is a row's part of h_rs.
func (c *oneOnOne) curvature(p []float64, r, s int) int64 {
	return c.g.Fixed(float64(p[r]*(1-p[r]))) + c.g.Fixed(float64(p[s]*(1-p[s]))) + 2*c.g.Fixed(float64(p[r]*p[s]))
}

// choose returns the labels r and s of a node.
func (c *oneOnOne) choose(rows []uint32) (r, s int) {
	clear(c.sums)
	clear(c.second)
	for _, row := range rows {
		p, d := c.row(row)
		for k := range p {
			c.sums[k] += c.g.Fixed(p[k] - float64(d[k]))
		}
	}
	for k, sum := range c.sums {
		if sum < c.sums[r] {
			r = k
		}
	}
	for _, row := range rows {
		p, _ := c.row(row)
		for k := range p {
			c.second[k] += c.curvature(p, r, k)
		}
	}
	best := -1.0
	for k := range c.sums {
		if k == r {
			continue
		}
		g := float64(c.sums[k] - c.sums[r])
		if score := float64(g*g) / float64(max(1, c.second[k])); score > best {
			best, s = score, k
		}
	}
	return r, s
}

// Leaf implements boost.Criterion: γ = (G_s - G_r) / h_rs, at most 5 in size, for r, and -γ for s.
func (c *oneOnOne) Leaf(dst []float32, sum boost.Pair, chosen boost.Choice) {
	if c.g.Labels < 2 {
		return
	}
	step := float64(sum.G) / float64(max(1, sum.H/2))
	step = max(-most, min(most, step))
	dst[chosen.Up], dst[chosen.Down] = float32(step), -float32(step)
}
