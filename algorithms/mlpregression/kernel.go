package mlpregression

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/target"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// opTarget is the operation (Round.Op) that is not of gradient.Kernel: F64 holds the weights of the rows and, of
// their numbers less the scale's first one, the weighted sums of the numbers and of the squares, then the number of
// rows.
const (
	opTarget   = 1
	targetSums = 4
)

// varTarget is the value (Var.ID) that is not of gradient.Descent: the target's mean and
// deviation, in float64.
const varTarget = 1

var _ round.ReduceKernel = (*kernel)(nil)

// kernel is the worker's half: see round.ReduceKernel. It is shared by lanes.
type kernel struct {
	descent gradient.Kernel
	scale   target.Scale
}

func newKernel(c *Config, seed uint64, m *dataset.Manifest) *kernel {
	return &kernel{scale: c.Scale, descent: gradient.Kernel{
		Function: newFunction(c, seed, m), Outputs: 1,
		Draws: gradient.Batches{Key: num.NewKey(seed, "mlp-regression/batch"), Size: c.BatchSize},
	}}
}

// block is how many samples go through the network at once.
const block = 64

// scratch is the working memory of a lane.
type scratch struct {
	gradient.Scratch
	unit round.Task // in work
	loss squaredError
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any {
	return &scratch{Scratch: gradient.NewScratch(k.descent.Function, 1, block), loss: squaredError{scale: k.scale}}
}

// Derive implements round.ReduceKernel.
func (k *kernel) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return nil, nil
}

// Run implements round.ReduceKernel.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, _ round.Derived,
	working any) error {
	s := working.(*scratch)
	s.unit = u
	switch u.Op {
	case opTarget:
		k.sumTarget(dst, &s.unit, d)
		return nil
	case gradient.OpStep:
		x := num.Float64s(v.Get(varTarget))
		s.loss.mean, s.loss.deviation = x[0], x[1]
	}
	if !k.descent.Run(dst, &s.unit, d, v, &s.loss, &s.Scratch) {
		return fmt.Errorf("%s: the task has the unknown operation %d", Name, u.Op)
	}
	return nil
}

func (k *kernel) sumTarget(dst *round.Partial, u *round.Task, d *dataset.Data) {
	low := float64(k.scale.Low)
	for _, ref := range u.Rows(d) {
		rows, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
		x, weight := k.scale.Number(rows, pos)-low, rows.WeightOf(pos)
		dst.F64[0] += weight
		dst.F64[1] += float64(weight * x)
		dst.F64[2] += float64(weight * float64(x*x))
		dst.F64[3]++
	}
}

// squaredError is half the squared error of the standardised number: see gradient.Loss.
type squaredError struct {
	scale           target.Scale
	mean, deviation float64
}

// error returns by how much an output is off.
func (l *squaredError) error(f float32, x *gradient.Sample) float64 {
	return float64(f) - (l.scale.Number(x.Shard, x.Pos)-l.mean)/l.deviation
}

// Gradients implements gradient.Loss.
func (l *squaredError) Gradients(df, f []float32, samples []gradient.Sample, _ *gradient.Values,
	losses []float64) []float64 {
	for i := range samples {
		e := l.error(f[i], &samples[i])
		df[i] = float32(e)
		losses = append(losses, e*e/2)
	}
	return losses
}

// Validation implements gradient.Loss.
func (l *squaredError) Validation(f []float32, x *gradient.Sample, _ *gradient.Values) float64 {
	e := l.error(f[0], x)
	return e * e / 2
}
