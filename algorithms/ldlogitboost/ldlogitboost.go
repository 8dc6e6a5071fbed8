// Package ldlogitboost is LDLogitBoost (Xing, Geng and Xue 2016): each boosting round fits a
// regression tree for each label to the working response of weighted least squares.
package ldlogitboost

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/boost"
)

// Name is the word that selects the algorithm in a spec.
const Name = "ldlogitboost"

// New returns the algorithm.
func New() algorithms.Algorithm {
	return boost.Variant{
		Name: Name,
		About: algorithms.About{
			Class:   "LDLogitBoost",
			Summary: "boosted trees, one for each label",
			When:    "Use it if there are many features, most of them 0; its time also grows with the labels.",
			Paper:   `Xing, Geng and Xue 2016, "Logistic boosting regression for label distribution learning"`,
		},
		Doc: "LDLogitBoost of Xing, Geng and Xue 2016: label distributions are the softmax of sums of trees; each boosting " +
			"round " +
			"adds one regression tree for each label",
		PerLabel: true,
		L2:       true,
		// f_c becomes (C-1)/C (f_c - mean of f).
		Factor:       func(labels int) float64 { return float64(labels-1) / float64(labels) },
		NewCriterion: func(c *boost.Config) boost.Criterion { return &leastSquares{l2: c.L2} },
	}.New()
}

// leastSquares is the criterion of a tree for one label c, with g = p_c - d_c and h = p_c (1 - p_c).
// With weights h and the working response -g/h, the weighted squared error of a split is less than the
// node's by the gain of sums: the response, whose division by a small h would magnify errors, is not
// computed.
type leastSquares struct {
	l2    float64
	g     *boost.Gradients
	label int
	known bool // the pairs of all rows are written
}

// L2 implements boost.Criterion.
func (c *leastSquares) L2() float64 { return c.l2 }

// Begin implements boost.Criterion: tree number c of a round is about label c.
func (c *leastSquares) Begin(g *boost.Gradients, tree int) { c.g, c.label, c.known = g, tree, false }

// Node implements boost.Criterion. A row's pair is the same in all nodes: the root writes it.
func (c *leastSquares) Node(rows []uint32, pairs []boost.Pair) (sum boost.Pair, _ boost.Choice) {
	if !c.known {
		c.known = true
		for _, row := range rows {
			at := int(row)*c.g.Labels + c.label
			p, d := c.g.P[at], float64(c.g.D[at])
			pairs[row] = boost.Pair{G: c.g.Fixed(int(row), p-d), H: c.g.Fixed(int(row), float64(p*(1-p)))}
		}
	}
	for _, row := range rows {
		sum.G += pairs[row].G
		sum.H += pairs[row].H
	}
	return sum, boost.Choice{}
}

// Leaf implements boost.Criterion: -G / (H + λ).
func (c *leastSquares) Leaf(dst []float32, sum boost.Pair, _ boost.Choice) {
	h := c.g.Number(max(1, sum.H)) + c.l2
	dst[0] = float32(-c.g.Number(sum.G) / h)
}
