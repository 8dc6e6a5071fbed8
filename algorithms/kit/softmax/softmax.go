// Package softmax is what algorithms share whose models predict the softmax of a feature function's
// outputs, or another function of them, an output for each label, and whose Θ goes down a gradient.Descent.
package softmax

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

var _ round.ReduceKernel = (*Kernel)(nil)

// Kernel is the workers' half of an algorithm: see round.ReduceKernel. It is shared by lanes.
type Kernel struct {
	gradient.Kernel
	Name string // of the algorithm
	// NewLoss makes the loss of one lane; nil: a Divergence.
	NewLoss func() gradient.Loss
}

// Trainer is the coordinator's half of an algorithm: a gradient.Descent and nothing else.
type Trainer struct {
	*gradient.Descent
	Name             string // of the algorithm
	Features, Labels int
	// NewModel makes the model of what is trained.
	NewModel func(p Predictor) algorithms.Model
}

// Fold implements round.Trainer.
func (t *Trainer) Fold(r *round.Result) error {
	if err := t.Descent.Fold(r); err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	return nil
}

// Model implements algorithms.Trainer.
func (t *Trainer) Model() (algorithms.Model, error) {
	v, err := t.Trained()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	return t.NewModel(Predictor{
		Features: t.Features, Labels: t.Labels, Function: t.Function, Weights: gradient.Weights{Theta: v[0].Data,
			Input: t.Fit.Values()},
	}), nil
}

// block is how many samples go through the function at once.
const block = 64

// scratch is the working memory of a lane.
type scratch struct {
	gradient.Scratch
	unit round.Task // in work
	loss gradient.Loss
}

// NewScratch implements round.Kernel.
func (k *Kernel) NewScratch() any {
	s := &scratch{Scratch: gradient.NewScratch(k.Function, k.Outputs, block)}
	if k.NewLoss != nil {
		s.loss = k.NewLoss()
	} else {
		s.loss = &Divergence{make([]float64, k.Outputs)}
	}
	return s
}

// Derive implements round.ReduceKernel.
func (k *Kernel) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return nil, nil
}

// Run implements round.ReduceKernel.
func (k *Kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, _ round.Derived,
	working any) error {
	s := working.(*scratch)
	s.unit = u
	if !k.Kernel.Run(dst, &s.unit, d, v, s.loss, &s.Scratch) {
		return fmt.Errorf("%s: the task has the unknown operation %d", k.Name, u.Op)
	}
	return nil
}

// Spread sets p to exp(f_c) / Σ exp(f_c). Outputs beyond float32, which a model that was not
// trained here may have, count as the greatest float32.
func Spread(p []float64, f []float32) {
	most := float64(-math.MaxFloat32)
	for c, x := range f {
		y := float64(x)
		if !(y <= math.MaxFloat32) { // not a number as well
			y = math.MaxFloat32
		}
		p[c] = max(y, -math.MaxFloat32)
		most = max(most, p[c])
	}
	sum := 0.0
	for c, y := range p {
		p[c] = num.Exp(y - most)
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
}

// floor bounds predictions from below in losses, as the measures do.
const floor = 1e-12

// KL returns the K-L divergence Σ_c d_c ln(d_c / p_c) in nats, with p clamped at floor; d_c = 0
// counts 0.
func KL(d []float32, p []float64) (sum float64) {
	for c, dc := range d {
		if dc > 0 {
			sum += float64(float64(dc) * num.Log(float64(dc)/max(p[c], floor)))
		}
	}
	return sum
}

// Divergence is the K-L divergence of the softmax of f: see gradient.Loss. P is working memory, a
// value for each label.
type Divergence struct{ P []float64 }

// Gradients implements gradient.Loss: ∂/∂f_c = p_c - d_c.
func (l *Divergence) Gradients(df, f []float32, samples []gradient.Sample, _ *gradient.Values,
	losses []float64) []float64 {
	n := len(l.P)
	for i := range samples {
		d := samples[i].D
		Spread(l.P, f[i*n:(i+1)*n])
		losses = append(losses, KL(d, l.P))
		for c, p := range l.P {
			df[i*n+c] = float32(p - float64(d[c]))
		}
	}
	return losses
}

// Validation implements gradient.Loss.
func (l *Divergence) Validation(f []float32, x *gradient.Sample, _ *gradient.Values) float64 {
	Spread(l.P, f)
	return KL(x.D, l.P)
}

// Predictor is the part of a model that predicts: see algorithms.Model.
type Predictor struct {
	Features, Labels int
	Function         gradient.Function
	Weights          gradient.Weights
	// Output, if set, replaces Spread: it sets p to the predictions of the outputs f of a row.
	Output func(p []float64, f []float32)
}

// predictorScratch is the working memory of a caller of Predict.
type predictorScratch struct {
	gradient.Scratch
	p []float64
}

// Shape implements algorithms.Model.
func (m *Predictor) Shape() (features, labels int) { return m.Features, m.Labels }

// NewScratch implements algorithms.Model.
func (m *Predictor) NewScratch() any {
	return &predictorScratch{gradient.NewScratch(m.Function, m.Labels, block), make([]float64, m.Labels)}
}

// Predict implements algorithms.Model.
func (m *Predictor) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, working any) {
	s := working.(*predictorScratch)
	output := Spread
	if m.Output != nil {
		output = m.Output
	}
	for from := 0; from < len(refs); from += block {
		part := refs[from:min(from+block, len(refs))]
		s.Batch = s.Batch[:0]
		for _, ref := range part {
			s.Batch = append(s.Batch, gradient.SampleOf(shard(ref.Shard), int(ref.Pos)))
		}
		m.Function.Predict(s.F, s.Batch, &m.Weights, s.Space)
		for i := range part {
			output(s.p, s.F[i*m.Labels:(i+1)*m.Labels])
			for c, p := range s.p {
				dst[(from+i)*m.Labels+c] = float32(p)
			}
		}
	}
}

// Graph implements graph.Model, unless Output is set.
func (m *Predictor) Graph(b *graph.Builder, x graph.Value) (graph.Value, error) {
	if m.Output != nil {
		return "", graph.None("its outputs are no softmax")
	}
	f, err := network.Graph(b, m.Function, &m.Weights, x)
	if err != nil {
		return "", err
	}
	return b.Cast(b.Softmax(b.Cast(f, graph.Float64)), graph.Float32), nil
}
