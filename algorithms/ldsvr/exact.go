package ldsvr

import (
	"context"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/linalg"
)

// exact is the fit to all training rows, in memory.
type exact struct {
	config *Config
	labels int
	rows   *dataset.Rows // with labels
	k      linalg.Matrix
	z      []float64 // rows×labels

	product  []float64 // rows×labels: Kβ
	weights  []float64 // of each row
	loss, kl float64   // sums over the rows, weighted
	count    float64   // of the rows, weighted
}

// fitExact returns the fit to training rows, which have labels.
func fitExact(ctx context.Context, c *Config, seed uint64, r *dataset.Rows, scale []float64) (*fitted, error) {
	drawn := r
	if r.N > mostExact {
		drawn = rows.Select(r, c.between(seed).Least(r, mostExact))
	}
	width := float64(c.Width * meanDistance(drawn, scale))
	x := newExact(c, r, kernelMatrix(r, rows.NewDistances(r, scale), width))
	descent, trial, solution := newDescent(c, (r.N+1)*r.Labels), make([]float64, (r.N+1)*r.Labels),
		make([]float64, (r.N+1)*r.Labels)
	loss := 0.0
	for descent.stage != stageEnd {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		before := descent.value
		descent.trial(trial)
		value := x.evaluate(trial)
		first := descent.stage == stageBegin
		turns := descent.take(value)
		if first || descent.value != before {
			loss = x.kl / x.count
		}
		if turns {
			if err := x.solve(solution, descent.point); err != nil {
				return nil, err
			}
			descent.turn(solution)
		}
	}
	bare := *r
	bare.Labels, bare.D, bare.Weight = 0, nil, nil
	return &fitted{kept: &bare, width: width, loss: max(0, loss), done: descent.done, point: descent.point}, nil
}

func newExact(c *Config, r *dataset.Rows, k linalg.Matrix) *exact {
	x := &exact{
		config: c, labels: r.Labels, rows: r, k: k, z: make([]float64, r.N*r.Labels),
		product: make([]float64, r.N*r.Labels), weights: make([]float64, r.N),
	}
	for i := range r.N {
		logits(x.z[i*r.Labels:(i+1)*r.Labels], r.Label(i), c.Clamp)
		x.count += r.WeightOf(i)
	}
	return x
}

// evaluate returns the objective at a point, and sets weights and sums.
func (x *exact) evaluate(point []float64) float64 {
	n, labels := x.rows.N, x.labels
	beta, b := point[:n*labels], point[n*labels:]
	clear(x.product)
	linalg.AddProduct(linalg.Of(x.product, n, labels), x.k, linalg.Of(beta, n, labels))
	x.loss, x.kl = 0, 0
	f, e := make([]float64, labels), make([]float64, labels)
	for i := range n {
		for c := range f {
			f[c] = x.product[i*labels+c] + b[c]
		}
		weight := x.rows.WeightOf(i)
		loss, a := x.config.weigh(e, x.z[i*labels:(i+1)*labels], f, weight)
		shares(f, f)
		x.loss += loss
		x.kl += float64(weight * divergence(x.rows.Label(i), f))
		x.weights[i] = a
	}
	return penalty(beta, x.product) + float64(x.config.Cost*x.loss)
}

// solve sets solution to β and b with (K + 1/a) β + b = z over the rows with a weight, and Σ β = 0:
// the row of b in the system of the method, less the others' sum. The other rows have β = 0;
// without any, b stays.
func (x *exact) solve(solution, point []float64) error {
	var in []int
	for i, a := range x.weights {
		if a > 0 {
			in = append(in, i)
		}
	}
	n, labels := x.rows.N, x.labels
	clear(solution)
	copy(solution[n*labels:], point[n*labels:])
	if len(in) == 0 {
		return nil
	}
	h, y := linalg.New(len(in), len(in)), linalg.New(len(in), labels+1)
	for i, row := range in {
		for j, column := range in[:i+1] {
			h.Set(i, j, x.k.At(row, column))
		}
		h.Set(i, i, h.At(i, i)+1/x.weights[row])
		for c := range labels {
			y.Set(i, c, x.z[row*labels+c])
		}
		y.Set(i, labels, 1)
	}
	if err := linalg.Cholesky(h); err != nil {
		return fmt.Errorf("%s: the equations of %d samples with cost %v cannot be solved: %w", Name, len(in),
			x.config.Cost, err)
	}
	linalg.SolveLower(y, h)
	linalg.SolveUpper(y, h.T())
	ones := make([]float64, labels+1)
	for c := range ones {
		for i := range in {
			ones[c] += y.At(i, c)
		}
	}
	for c := range labels {
		b := ones[c] / ones[labels]
		solution[n*labels+c] = b
		for i, row := range in {
			solution[row*labels+c] = y.At(i, c) - float64(b*y.At(i, labels))
		}
	}
	return nil
}
