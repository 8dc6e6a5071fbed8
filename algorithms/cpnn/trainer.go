package cpnn

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/rprop"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// varWeights are the effective weights of a round (Var.ID): float64, as sizes.split divides them.
const varWeights = 1

// trainer is the coordinator's half: a fullbatch.Training by Rprop.
type trainer struct {
	*fullbatch.Training
	objective *objective
}

func newTrainer(c *Config, seed uint64, m *dataset.Manifest) *trainer {
	z := sizesOf(c, m)
	fit := scaling.NewFit(c.Scaling, m)
	o := &objective{sizes: z, fit: fit, effective: make([]float64, z.values())}
	by := rprop.New(start(&z, c.Init == initScaled, seed), rprop.Options{
		Iterations: c.Steps, First: c.FirstStep, Least: leastStep, Most: mostStep, Grow: grow, Shrink: shrink,
	})
	return &trainer{fullbatch.New(trainingSettings(c), o, by, fit, m), o}
}

// start draws the first weights: row i of the vector from stream (seed, 0, i), uniform within
// ±1/2, or, where scaled, those of the features within ±1/sqrt(features).
func start(z *sizes, scaled bool, seed uint64) []float64 {
	key, v := num.NewKey(seed, "cpnn/start"), make([]float64, z.values())
	for row := range len(v) / z.hidden {
		bound := 0.5
		if scaled && row < z.features {
			bound = 1 / math.Sqrt(float64(z.features))
		}
		s := num.NewStream(key, 0, uint32(row))
		for j := range z.hidden {
			v[row*z.hidden+j] = bound * (float64(2*s.Float64()) - 1)
		}
	}
	return v
}

// Fold implements round.Trainer.
func (t *trainer) Fold(r *round.Result) error {
	if err := t.Training.Fold(r); err != nil {
		return fmt.Errorf("%s: %w", Name, err)
	}
	return nil
}

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	x, err := t.Trained()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	o := t.objective
	m := &model{sizes: o.sizes, values: make([]float64, o.values())}
	o.scale(m.values, x)
	return m, nil
}

// objective is the mean K-L divergence over rows as a function of the weights of scaled features. It
// implements fullbatch.Objective.
type objective struct {
	sizes
	fit       *scaling.Fit
	effective []float64 // weights of the last point
}

// Sums implements fullbatch.Objective.
func (o *objective) Sums() int { return o.values() }

// AppendVars implements fullbatch.Objective.
func (o *objective) AppendVars(vars []round.Var, x []float64, version uint64) []round.Var {
	o.scale(o.effective, x)
	return append(vars, round.Var{ID: varWeights, Version: version, Data: num.Bytes64(o.effective)})
}

// scale sets dst to the effective weights at point x, which read features as the rows have them: with
// features (x_k - shift_k)·scale_k, W₁'s row k times scale_k, and b₁ less the sum of shift_k times these rows.
func (o *objective) scale(dst, x []float64) {
	copy(dst, x)
	w, input := o.split(dst), o.fit.Values()
	for k, scale := range input.Scale {
		row := w.features[k*o.hidden:][:o.hidden]
		for j := range row {
			row[j] *= scale
			w.bias[j] -= float64(input.Shift[k] * row[j])
		}
	}
}

// Fold implements fullbatch.Objective.
func (o *objective) Fold(g, _ []float64, rows, losses float64, sums []float64) float64 {
	copy(g, sums)
	w, input := o.split(g), o.fit.Values()
	for k, scale := range input.Scale {
		row := w.features[k*o.hidden:][:o.hidden]
		for j := range row {
			row[j] = scale * (row[j] - float64(input.Shift[k]*w.bias[j]))
		}
	}
	share := 1 / rows
	for i := range g {
		g[i] *= share
	}
	return losses * share
}
