// Package softmaxtest has a learner on the packages gradient and scaling that is no forest:
// softmax regression, p = softmax(f(x; Θ)), by SGD or Adam, with scaling, early stopping and a
// refit. It is the second user of each piece, and what a new learner is copied from.
package softmaxtest

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// functionOf returns the function of a job: an output for each label.
func functionOf(set *gradient.Settings, seed uint64, m *dataset.Manifest) gradient.Function {
	return &gradient.Linear{
		Features: m.Features, Outputs: m.Labels, Bias: true, Sparse: m.Sparse, Scaled: set.Scaling != scaling.None,
		Normal: true, Deviation: 0.01,
	}
}

// trainer is the leader's half.
type trainer struct {
	*gradient.Descent
	labels int
}

func newTrainer(set gradient.Settings, seed uint64, m *dataset.Manifest) *trainer {
	return &trainer{gradient.NewDescent(set, functionOf(&set, seed, m), num.NewKey(seed, "softmax/theta"), m), m.Labels}
}

// AppendState implements round.Trainer.
func (t *trainer) AppendState(dst []byte) ([]byte, error) { return fields.Append(dst, 1, t.State) }

// kernel is the workers' half.
type kernel struct{ descent gradient.Kernel }

func newKernel(set *gradient.Settings, seed uint64, m *dataset.Manifest) *kernel {
	return &kernel{gradient.Kernel{
		Function: functionOf(set, seed, m), Outputs: m.Labels,
		Draws: gradient.Batches{Key: num.NewKey(seed, "softmax/batch"), Size: set.BatchSize},
	}}
}

// scratch is the working memory of a lane.
type scratch struct {
	gradient.Scratch
	loss divergence
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any {
	return &scratch{gradient.NewScratch(k.descent.Function, k.descent.Outputs, 64), divergence{}}
}

// Derive implements round.ReduceKernel.
func (k *kernel) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return nil, nil
}

// Run implements round.ReduceKernel.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, _ round.Derived,
	working any) error {
	s := working.(*scratch)
	if !k.descent.Run(dst, &u, d, v, &s.loss, &s.Scratch) {
		return fmt.Errorf("softmax: operation %d is unknown", u.Op)
	}
	return nil
}

// divergence is the K-L divergence of softmax(f) as a gradient.Loss.
type divergence struct{}

// Gradients implements gradient.Loss: the derivative of the K-L by f_c is p_c - d_c.
func (l *divergence) Gradients(df, f []float32, samples []gradient.Sample, v *gradient.Values,
	losses []float64) []float64 {
	for i := range samples {
		d := samples[i].D
		p, f := df[i*len(d):][:len(d)], f[i*len(d):][:len(d)]
		losses = append(losses, l.Validation(f, &samples[i], v))
		softmax(p, f)
		for c := range p {
			p[c] -= d[c]
		}
	}
	return losses
}

// Validation implements gradient.Loss.
func (*divergence) Validation(f []float32, x *gradient.Sample, _ *gradient.Values) (kl float64) {
	shift := logSum(f)
	for c, d := range x.D {
		if d > 0 {
			kl += float64(float64(d) * (num.Log(float64(d)) - float64(f[c]) + shift))
		}
	}
	return kl
}

// logSum returns ln Σ exp(f_c).
func logSum(f []float32) float64 {
	most, sum := f[0], 0.0
	for _, x := range f {
		most = max(most, x)
	}
	for _, x := range f {
		sum += num.Exp(float64(x) - float64(most))
	}
	return float64(most) + num.Log(sum)
}

func softmax(p, f []float32) {
	shift := logSum(f)
	for c, x := range f {
		p[c] = float32(num.Exp(float64(x) - shift))
	}
}
