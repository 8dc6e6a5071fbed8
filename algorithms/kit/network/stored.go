package network

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// stored is the feature function of a network that does not begin with a dense layer: the scaled
// features of a row, so many, dense or sparse. It has no parameters.
type stored int

// Layout implements gradient.Function.
func (f stored) Layout() []gradient.Layer { return nil }

// Initialise implements gradient.Function.
func (f stored) Initialise([]float32, num.Key) {}

// OutputsFrom implements gradient.Function.
func (f stored) OutputsFrom() (first, units int) { return 0, int(f) }

// NewWorkspace implements gradient.Function.
func (f stored) NewWorkspace() gradient.Workspace { return nil }

// Predict implements gradient.Function.
func (f stored) Predict(dst []float32, samples []gradient.Sample, w *gradient.Weights, _ gradient.Workspace) {
	n := int(f)
	for i := range samples {
		row := dst[i*n : (i+1)*n]
		if x := &samples[i]; x.Sparse {
			clear(row)
			for k, c := range x.Columns {
				row[c] = x.X[k]
			}
		} else {
			copy(row, x.X)
		}
		if !w.Input.None() {
			w.Input.Dense(row, row)
		}
	}
}

// Forward implements gradient.Function.
func (f stored) Forward(dst []float32, samples []gradient.Sample, w *gradient.Weights, _ uint64, ws gradient.Workspace) {
	f.Predict(dst, samples, w, ws)
}

// GradientShape implements gradient.Function.
func (f stored) GradientShape() round.Shape { return round.Shape{} }

// Begin implements gradient.Function.
func (f stored) Begin(*round.Partial, *round.Task, []gradient.Sample, int, gradient.Workspace) {}

// Backward implements gradient.Function.
func (f stored) Backward(*round.Partial, []float32, []gradient.Sample, *gradient.Weights, gradient.Workspace) {
}

// GradientRows implements gradient.Function.
func (f stored) GradientRows(*scaling.Values) int { return 0 }

// Stride implements gradient.Function.
func (f stored) Stride() int { return 1 }

// Gradient implements gradient.Function.
func (f stored) Gradient([]float32, int, *round.Partial, float32, *scaling.Values) {}
