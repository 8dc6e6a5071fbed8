package explain

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/job/predict"
)

// Explainer computes the SHAP values of a sum of trees: path-dependent TreeSHAP (Lundberg et al. 2020, "From local
// explanations to global understanding with explainable AI for trees"). The value of a set S of features at a tree is
// the mean of the leaves, where a split on a feature of S takes the child of the sample, and another split takes each
// child with its fraction of the training samples. The SHAP value of a feature is its Shapley value in this game.
//
// A leaf's part of the game is a product with a factor for each feature of its path: z, the fraction of the training
// samples that took the branches, if the feature is not in S, or else o, which is 1 if the sample takes all branches,
// or 0. The Shapley value of such a product is
//
//	(o_i - z_i) ∫ Π_{j≠i} (z_j (1-t) + o_j t) dt over t from 0 to 1
//
// times the leaf. The integrand is a polynomial in t, so a Gauss-Legendre rule with half as many nodes as features
// is exact. The sums over leaves are made from the leaves upwards, so the time is linear in the depth. No factor is
// 0, because each child has training samples.
type Explainer struct {
	*forest.Additive
	Base  []float64 // expected output, by label; targets are in their units
	unit  []float64 // by label: the difference of the bounds of a target; nil: labels are not targets
	model algorithms.Model
	trees []shapTree
	depth int // greatest depth
	nodes int // greatest number of nodes of a rule
}

// shapTree is a tree in the form that the explainer reads.
type shapTree struct {
	of       *forest.Tree
	label    int  // that it is about
	all      bool // true if leaves have all labels
	fraction []float64
	rule     *rule
}

// NewExplainer prepares the trees of a model.
func NewExplainer(m *predict.Model) (*Explainer, error) {
	a := trees(m)
	if a == nil {
		return nil, errtext.Errorf(errtext.WrongRequest, "a model of %s is not a sum of trees, so it has no exact SHAP "+
			"values; {method=permutation} explains all models", m.File.Algorithm)
	}
	e, err := newExplainer(a)
	if err != nil {
		return nil, err
	}
	bounds, err := m.TargetBounds()
	if err != nil {
		return nil, err
	}
	if bounds != nil {
		for c, low := range bounds.Low {
			e.unit = append(e.unit, bounds.High[c]-low)
			e.Base[c] = low + e.Base[c]*e.unit[c]
		}
	}
	e.model, err = m.InUnits()
	return e, err
}

// newExplainer prepares trees.
func newExplainer(a *forest.Additive) (*Explainer, error) {
	if err := a.CheckCovers(); err != nil {
		return nil, err
	}
	e := &Explainer{Additive: a, Base: make([]float64, a.Labels)}
	rules := make(map[int]*rule)
	for i, t := range a.Trees {
		s := shapTree{of: t, fraction: make([]float64, t.Nodes())}
		s.label, s.all = a.Label(i)
		reach := make([]float64, t.Nodes())
		reach[0] = 1
		for n := range t.Nodes() {
			_, left, split := t.Test(n)
			if !split {
				s.addLeaf(e.Base, int(left), reach[n])
				continue
			}
			for _, child := range []int{int(left), int(left) + 1} {
				s.fraction[child] = float64(t.Samples(child)) / float64(t.Samples(n))
				reach[child] = reach[n] * s.fraction[child]
			}
		}
		e.depth = max(e.depth, t.Depth())
		n := max(1, (featuresOfPath(t, a.Features)+1)/2)
		if rules[n] == nil {
			rules[n] = newRule(n)
		}
		s.rule = rules[n]
		e.nodes = max(e.nodes, n)
		e.trees = append(e.trees, s)
	}
	a.Outputs(e.Base, true)
	return e, nil
}

// featuresOfPath returns the greatest number of features on a path of a tree.
func featuresOfPath(t *forest.Tree, features int) (most int) {
	parent, last := make([]int, t.Nodes()), make([]int, features) // last: the leaf whose path was last to have the feature
	for n := range t.Nodes() {
		_, left, split := t.Test(n)
		if split {
			parent[left], parent[left+1] = n, n
			continue
		}
		count := 0
		for at := n; at > 0; {
			at = parent[at]
			if f, _, _ := t.Test(at); last[f] != n {
				last[f] = n
				count++
			}
		}
		most = max(most, count)
	}
	return most
}

// addLeaf adds a multiple of a leaf to sums (labels).
func (s *shapTree) addLeaf(sums []float64, leaf int, by float64) {
	values := s.of.Distribution(leaf)
	if !s.all {
		sums[s.label] += float64(by * float64(values[0]))
		return
	}
	for c, v := range values {
		sums[c] += float64(by * float64(v))
	}
}

// SHAPLane is the memory of one caller of Explain.
type SHAPLane struct {
	e        *Explainer
	tree     *shapTree
	x        []float32 // the sample
	inPath   []bool    // by feature: the path tests it
	zero     []float64 // by feature of the path: z
	one      []float64 // by feature of the path: o
	products []float64 // by depth and node of the rule: the product of the factors of the path
	sums     []float64 // by depth, node of the rule and label: the sum of products times leaves below
	values   []float64 // features×labels, of the caller
	scratch  any       // memory of the model's Predict
}

// NewLane makes the memory of one caller of Explain.
func (e *Explainer) NewLane() *SHAPLane {
	levels := e.depth + 1
	return &SHAPLane{e: e, x: make([]float32, e.Features), inPath: make([]bool, e.Features),
		zero: make([]float64, e.Features), one: make([]float64, e.Features),
		products: make([]float64, levels*e.nodes), sums: make([]float64, levels*e.nodes*e.Labels)}
}

// Explain sets values (features×labels) to the SHAP values of sample i. They sum to the output of the sample less Base.
func (l *SHAPLane) Explain(values []float64, r *dataset.Rows, i int) {
	readRow(l.x, r, i)
	clear(values)
	l.values = values
	for t := range l.e.trees {
		l.tree = &l.e.trees[t]
		for q := range l.tree.rule.at {
			l.products[q] = 1
		}
		l.visit(0, 0)
	}
	for f := range l.e.Features {
		own := values[f*l.e.Labels:][:l.e.Labels]
		l.e.Outputs(own, false)
		for c, by := range l.e.unit {
			own[c] *= by
		}
	}
}

// visit sets the sums of a depth to the sums over the leaves below a node. It adds to the values what the edges below
// the node contribute.
func (l *SHAPLane) visit(node, depth int) {
	t, rule, e := l.tree.of, l.tree.rule, l.e
	width, n := t.Labels, len(rule.at)
	sums, products := l.sums[depth*e.nodes*e.Labels:][:n*width], l.products[depth*e.nodes:][:n]
	feature, left, split := t.Test(node)
	if !split {
		leaf := t.Distribution(int(left))
		for q, p := range products {
			for c, v := range leaf {
				sums[q*width+c] = float64(p * float64(v))
			}
		}
		return
	}
	clear(sums)
	hot := int(left)
	if !(float64(l.x[feature]) < t.Threshold(node)) {
		hot++
	}
	again, zero, one := l.inPath[feature], l.zero[feature], l.one[feature]
	if !again {
		zero, one = 1, 1
	}
	l.inPath[feature] = true
	below, next := l.sums[(depth+1)*e.nodes*e.Labels:][:n*width], l.products[(depth+1)*e.nodes:][:n]
	for child := int(left); child <= int(left)+1; child++ {
		z, o := float64(zero*l.tree.fraction[child]), one
		if child != hot {
			o = 0
		}
		for q, at := range rule.at {
			next[q] = products[q] * factor(z, o, at) / factor(zero, one, at)
		}
		l.zero[feature], l.one[feature] = z, o
		l.visit(child, depth+1)
		l.addEdge(feature, below, z, o, 1)
		if again { // an edge above it has counted the leaves below with its own factor
			l.addEdge(feature, below, zero, one, -1)
		}
		num.Add64(sums, below)
	}
	l.inPath[feature], l.zero[feature], l.one[feature] = again, zero, one
}

// factor is the factor of a feature at a node t of a rule.
func factor(z, o, t float64) float64 { return float64(z*(1-t)) + float64(o*t) }

// addEdge adds, or subtracts, what an edge of a feature with the factors z and o adds to the feature's values, given
// the sums below the edge.
func (l *SHAPLane) addEdge(feature uint32, sums []float64, z, o, sign float64) {
	if o == z {
		return
	}
	rule, width := l.tree.rule, l.tree.of.Labels
	values := l.values[int(feature)*l.e.Labels:][:l.e.Labels]
	if !l.tree.all {
		values = values[l.tree.label:][:1]
	}
	for q, at := range rule.at {
		by := float64(sign*(o-z)) * rule.weight[q] / factor(z, o, at)
		num.AddScaled64(values, by, sums[q*width:][:width])
	}
}

// rule is the Gauss-Legendre rule with n nodes on [0, 1]: it integrates polynomials of degree 2n - 1 exactly.
type rule struct{ at, weight []float64 }

// newRule computes a rule. Between two neighbouring roots of the Legendre polynomial of degree n - 1, and between a
// root and an end, there is one root of degree n. So bisection finds it.
func newRule(n int) *rule {
	roots := []float64{}
	for degree := 1; degree <= n; degree++ {
		ends := append(append([]float64{-1}, roots...), 1)
		next := make([]float64, degree)
		for i := range next {
			low, high := ends[i], ends[i+1]
			sign, _ := legendre(degree, low)
			for range 200 {
				middle := (low + high) / 2
				if middle == low || middle == high {
					break
				}
				if v, _ := legendre(degree, middle); (v > 0) == (sign > 0) {
					low = middle
				} else {
					high = middle
				}
			}
			next[i] = (low + high) / 2
		}
		roots = next
	}
	r := new(rule)
	for _, x := range roots {
		_, slope := legendre(n, x)
		r.at = append(r.at, (1+x)/2)
		r.weight = append(r.weight, 1/((1-float64(x*x))*float64(slope*slope)))
	}
	return r
}

// legendre returns the Legendre polynomial of degree n at x, and its derivative. At the ends the derivative is 0.
func legendre(n int, x float64) (value, slope float64) {
	before, value := 0.0, 1.0
	for k := 1; k <= n; k++ {
		f := float64(k)
		before, value = value, (float64(float64((2*f-1)*x)*value)-float64((f-1)*before))/f
	}
	if x*x < 1 {
		slope = float64(n) * (float64(x*value) - before) / (float64(x*x) - 1)
	}
	return value, slope
}

// Explained are SHAP values of a block of samples.
type Explained struct {
	*Block
	Values      []float64 // samples×features×labels
	Predictions []float32 // samples×labels
}

// blockBytes bounds the values of a block.
const blockBytes = 4 << 20

// Each computes the SHAP values of the samples of src, block after block, in the order of the file. Threads and
// memory are bounded: there are at most four blocks for each thread at a time.
func (e *Explainer) Each(m *predict.Model, src dataset.Source, o importer.Options, take func(*Explained) error) error {
	width := e.Features * e.Labels
	size := min(64, max(1, blockBytes/8/width))
	return eachBlock(src, size, m.Threads, o, e.NewLane, e.block, func(_ *Block, x *Explained) error { return take(x) })
}

// Block explains the samples of a block.
func (l *SHAPLane) Block(b *Block) *Explained { return l.e.block(l, b) }

// block computes the SHAP values and the predictions of a block.
func (e *Explainer) block(l *SHAPLane, b *Block) *Explained {
	width := e.Features * e.Labels
	x := &Explained{b, make([]float64, b.Rows.N*width), make([]float32, b.Rows.N*e.Labels)}
	for i := range b.Rows.N {
		l.Explain(x.Values[i*width:][:width], b.Rows, i)
	}
	if l.scratch == nil {
		l.scratch = e.model.NewScratch()
	}
	e.model.Predict(x.Predictions, refsOf(b.Rows.N), func(uint32) *dataset.Rows { return b.Rows }, l.scratch)
	return x
}

// Background says in words which distribution the values compare a sample with.
func (e *Explainer) Background() string {
	return "the training samples, as the splits of each tree divided them (path-dependent TreeSHAP)"
}

// Sum says in words what the values of a sample sum to.
func (e *Explainer) Sum() string {
	if e.Scores {
		return "the score of the label before the softmax, less the expected score"
	}
	return "the predicted value of the label, less the expected value"
}

// Weight returns the weight of a label in sums over labels: 1, or for targets one over the difference of their bounds.
func (e *Explainer) Weight(label int) float64 {
	if e.unit == nil || e.unit[label] == 0 {
		return 1
	}
	return 1 / e.unit[label]
}

// Difference returns how much Base and the SHAP values of a sample, added up, differ from its prediction, at most over
// the labels.
func (e *Explainer) Difference(values []float64, predicted []float32) (most float64, err error) {
	sums := append([]float64(nil), e.Base...)
	for i, v := range values {
		sums[i%e.Labels] += v
	}
	if e.Scores {
		softmax(sums)
	}
	for c, s := range sums {
		d := math.Abs(s - float64(predicted[c]))
		allowed := 1e-4
		if e.unit != nil {
			allowed = 1e-4*e.unit[c] + 1e-6*math.Abs(s) // predictions are float32
		}
		if !(d <= allowed) {
			return d, fmt.Errorf("the SHAP values of a sample sum to %v, but the model predicts %v", sums, predicted)
		}
		most = max(most, d)
	}
	return most, nil
}
