package enhance

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms/kit/clusters"
	"github.com/coppice-ldl/coppice/algorithms/kit/lbfgs"
	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/linalg"
	"github.com/coppice-ldl/coppice/internal/num"
)

// GLLE minimises, over the weights W of the scores S = ΦW with Φ = [K, 1], and over a matrix E_g for each group of
// samples,
//
//	‖S - L‖² + lambda1·tr(S'GS) + lambda2·Σ_g ‖S_g E_g‖², rows of E_g of norm 1.
//
// K has the Gaussian kernels of all pairs of samples, and G is the Laplacian of the graph of near samples. The
// minimisation alternates between W and E and is not run to its end: at the minimum, S is L.
const (
	lambda1    = 0.01
	lambda2    = 0.01
	groups     = 8  // k-means of the features
	outerSteps = 5  // minimisations over W
	innerSteps = 50 // iterations of each, and steps of E between them
)

// graph is the fit of GLLE.
type graph struct {
	n, labels int

	kernels []float64 // n×n
	edges   [][]edge  // of each sample, by sample
	degree  []float64 // the sum of the weights of the edges
	group   []int
	pull    [][]float64 // E_g by group, labels×labels
	logical []float64   // by sample, then by label

	scores, slope []float64    // as logical; slope is ∂/∂S, B in the paper's terms
	turned        [2][]float64 // the same, transposed
	traced        func(objective float64)
}

// edge is an edge of the graph to another sample.
type edge struct {
	to     int
	weight float64
}

// fitGraph returns the scores of GLLE, by sample, then by label.
func fitGraph(ctx context.Context, samples *dataset.Rows, from *rows.Distances, scratch *rows.Scratch, logical []byte,
	labels int, progress func(steps, of int)) ([]float64, error) {
	g, err := newGraph(ctx, samples, from, scratch, logical, labels)
	if err != nil {
		return nil, err
	}
	return g.fit(ctx, progress)
}

func newGraph(ctx context.Context, samples *dataset.Rows, from *rows.Distances, scratch *rows.Scratch, logical []byte,
	labels int) (*graph, error) {
	n := samples.N
	g := &graph{
		n: n, labels: labels, kernels: make([]float64, n*n), edges: make([][]edge, n), degree: make([]float64, n),
		logical: make([]float64, n*labels), scores: make([]float64, n*labels), slope: make([]float64, n*labels),
	}
	for at, l := range logical {
		g.logical[at] = float64(l)
	}
	g.turned = [2][]float64{make([]float64, n*labels), make([]float64, n*labels)}
	shard := func(uint32) *dataset.Rows { return samples }
	roots, ones, total := make([]float64, n), make([]float64, n), 0.0
	num.Fill(ones, 1)
	for i := range n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		row := g.kernels[i*n : (i+1)*n]
		from.To(row, []dataset.RowRef{{Pos: uint32(i)}}, shard, scratch)
		affinities(roots, row, euclidean, 0, i)
		total += num.Dot64(roots, ones)
		for _, j := range nearest(row, i, labels+1) {
			weight := num.Exp(-row[j] / 2)
			g.edges[i] = append(g.edges[i], edge{j, weight})
			g.edges[j] = append(g.edges[j], edge{i, weight})
		}
	}
	factor := 0.0
	if width := total / (float64(n) * float64(max(1, n-1))); width > 0 {
		factor = 1 / (2 * float64(width*width))
	}
	for i := range n {
		row := g.kernels[i*n : (i+1)*n]
		affinities(row, row, gaussian, factor, i)
		slices.SortFunc(g.edges[i], func(a, b edge) int { return cmp.Compare(a.to, b.to) })
		g.edges[i] = slices.CompactFunc(g.edges[i], func(a, b edge) bool { return a.to == b.to })
		for _, e := range g.edges[i] {
			g.degree[i] += e.weight
		}
	}
	features := make([][]float64, n)
	for i := range features {
		features[i] = make([]float64, samples.Features)
		if samples.Sparse {
			columns, values := samples.NonZeros(i)
			for k, c := range columns {
				features[i][c] = float64(values[k])
			}
			continue
		}
		for c, x := range samples.Dense(i) {
			features[i][c] = float64(x)
		}
	}
	g.group = clusters.KMeans(features, groups)
	for range groups {
		e := make([]float64, labels*labels)
		for c := range labels {
			e[c*labels+c] = 1
		}
		g.pull = append(g.pull, e)
	}
	return g, nil
}

// nearest returns the k samples nearest to sample at, of equal distances the first; at is none of them.
func nearest(squares []float64, at, k int) []int {
	order := make([]int, 0, k+1)
	for j, d := range squares {
		if j == at || len(order) == k && d >= squares[order[k-1]] {
			continue
		}
		i := len(order)
		for i > 0 && d < squares[order[i-1]] {
			i--
		}
		if order = slices.Insert(order, i, j); len(order) > k {
			order = order[:k]
		}
	}
	return order
}

// fit alternates between the weights and the matrices of the groups.
func (g *graph) fit(ctx context.Context, progress func(steps, of int)) ([]float64, error) {
	weights := make([]float64, (g.n+1)*g.labels) // the last row is the bias
	slope := make([]float64, len(weights))
	options := lbfgs.Options{Iterations: innerSteps}
	m := lbfgs.New(weights, options)
	for outer := range outerSteps {
		if outer > 0 {
			g.adapt()
			m.RestartAt(m.Best(), options)
		}
		for !m.Done() {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			m.Tell(g.objective(m.Point(), slope), slope)
			if progress != nil {
				progress(outer*innerSteps+m.Iterations(), outerSteps*innerSteps)
			}
		}
		if g.score(m.Best()); g.traced != nil {
			g.traced(m.Value())
		}
	}
	return g.scores, nil
}

// score sets the scores to ΦW.
func (g *graph) score(weights []float64) {
	for i := range g.n {
		copy(g.scores[i*g.labels:], weights[g.n*g.labels:])
	}
	g.addKernels(g.scores, weights[:g.n*g.labels])
}

// addKernels adds the product of the kernels, a symmetric matrix, and a matrix with a row for each sample to dst. It
// computes the transposed product, whose tiles are full.
func (g *graph) addKernels(dst, m []float64) {
	for at := range m {
		i, c := at/g.labels, at%g.labels
		g.turned[0][c*g.n+i], g.turned[1][c*g.n+i] = dst[at], m[at]
	}
	linalg.AddProduct(linalg.Of(g.turned[0], g.labels, g.n), linalg.Of(g.turned[1], g.labels, g.n),
		linalg.Of(g.kernels, g.n, g.n).T())
	for at := range dst {
		dst[at] = g.turned[0][at%g.labels*g.n+at/g.labels]
	}
}

// objective returns the objective at some weights, and sets slope to its gradient.
func (g *graph) objective(weights, slope []float64) (sum float64) {
	g.score(weights)
	labels := g.labels
	difference, pulled, back := make([]float64, labels), make([]float64, labels), make([]float64, labels)
	for i := range g.n {
		s, l, b := g.scores[i*labels:(i+1)*labels], g.logical[i*labels:(i+1)*labels], g.slope[i*labels:(i+1)*labels]
		for c, x := range s { // (GS)_i
			difference[c] = float64(g.degree[i] * x)
		}
		for _, e := range g.edges[i] {
			for c, x := range g.scores[e.to*labels : (e.to+1)*labels] {
				difference[c] -= float64(e.weight * x)
			}
		}
		pull := g.pull[g.group[i]]
		clear(pulled)
		for c, x := range s {
			for k, p := range pull[c*labels : (c+1)*labels] {
				pulled[k] += float64(x * p)
			}
		}
		for c := range back {
			back[c] = 0
			for k, p := range pull[c*labels : (c+1)*labels] {
				back[c] += float64(p * pulled[k])
			}
		}
		for c, x := range s {
			d := x - l[c]
			sum += float64(d*d) + float64(lambda1*float64(x*difference[c])) + float64(lambda2*float64(pulled[c]*pulled[c]))
			b[c] = 2*d + 2*float64(lambda1*difference[c]) + 2*float64(lambda2*back[c])
		}
	}
	clear(slope)
	at := g.n * labels
	g.addKernels(slope[:at], g.slope)
	for i, b := range g.slope {
		slope[at+i%labels] += b
	}
	return sum
}

// adapt takes the steps of the matrices of the groups at the scores.
func (g *graph) adapt() {
	labels := g.labels
	for group, pull := range g.pull {
		gram, trace := make([]float64, labels*labels), 0.0
		for i, of := range g.group {
			if of != group {
				continue
			}
			s := g.scores[i*labels : (i+1)*labels]
			for c, x := range s {
				for k, y := range s {
					gram[c*labels+k] += float64(x * y)
				}
			}
		}
		for c := range labels {
			trace += gram[c*labels+c]
		}
		if !(trace > 0) {
			continue
		}
		e := linalg.Of(pull, labels, labels)
		for range innerSteps {
			product := linalg.New(labels, labels)
			linalg.AddProduct(product, linalg.Of(gram, labels, labels), e)
			for at, x := range product.V {
				pull[at] -= x / trace
			}
			for c := range labels {
				row := pull[c*labels : (c+1)*labels]
				if norm := math.Sqrt(num.Dot64(row, row)); norm > 0 {
					for k := range row {
						row[k] /= norm
					}
				}
			}
		}
	}
}
