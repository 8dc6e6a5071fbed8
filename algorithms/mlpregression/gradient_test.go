package mlpregression

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// TestGradient holds the gradient of the kernel on a mini-batch against central differences of half the
// squared errors in float64, at random parameters, dense and sparse, scaled and raw.
func TestGradient(t *testing.T) {
	for _, density := range []float64{1, 0.3} {
		for _, kind := range []string{scaling.Standard, scaling.None} {
			d, c := generated(t, 103, density), small()
			c.Scaling, c.BatchSize = kind, 31
			tr, k := newTrainer(c, 3, d.Manifest), newKernel(c, 3, d.Manifest)
			s := num.NewStream(num.NewKey(4, "test"), 0, 0)
			theta := make([]float32, len(tr.Theta()))
			for i := range theta {
				theta[i] = float32(0.5 * s.Normal())
			}
			target, fit := []float64{6, 1.5}, scaling.Values{}
			vars := round.Vars{{ID: 0xfe10, Version: 1, Data: num.Bytes32(theta)},
				{ID: varTarget, Version: 1, Data: num.Bytes64(target)}}
			if kind != scaling.None {
				fit = scaling.Of(make([]float64, 2*d.Manifest.Features))
				for i := range fit.Shift {
					fit.Shift[i], fit.Scale[i] = s.Normal(), 0.5+s.Float64()
				}
				vars = append(vars, round.Var{ID: 0xfe00, Version: 1, Data: num.Bytes64(append(fit.Shift, fit.Scale...))})
			}
			got, loss := kernelGradient(t, tr, k, d, vars, &fit)

			u := round.Task{Of: 1, Roles: dataset.Train}
			var refs []dataset.RowRef
			for _, at := range k.descent.Draws.Draw(nil, &u, len(u.Rows(d)), 0) {
				refs = append(refs, u.Rows(d)[at])
			}
			xs, ys := rowsOf(d, refs, fit)
			halfSquares := func(theta []float32, at int, by float64) (sum float64) {
				w := newTwin(c, d.Manifest.Features, theta, ys)
				w.mean, w.deviation = target[0], target[1]
				*w.parameter(at) += by
				for i, x := range xs {
					_, f := w.predict(x)
					e := f - (ys[i]-w.mean)/w.deviation
					sum += e * e / 2
				}
				return sum
			}
			if want := halfSquares(theta, 0, 0); math.Abs(loss-want) > 1e-5*want {
				t.Errorf("density %v, scaling %s: loss %v, want %v", density, kind, loss, want)
			}
			const step = 1e-6
			want, size := make([]float64, len(theta)), 0.0
			for i := range want {
				want[i] = (halfSquares(theta, i, step) - halfSquares(theta, i, -step)) / (2 * step)
				size = max(size, math.Abs(want[i]))
			}
			for i, x := range want {
				if math.Abs(float64(got[i])-x) > 1e-5*size {
					t.Fatalf("density %v, scaling %s: parameter %d has the gradient %v, by differences %v", density, kind,
						i, got[i], x)
				}
			}
		}
	}
}

// kernelGradient returns the gradient and the loss of a mini-batch as a kernel sums them in one unit.
func kernelGradient(t *testing.T, tr *trainer, k *kernel, d *dataset.Data, vars round.Vars,
	fit *scaling.Values) (g []float32, loss float64) {
	t.Helper()
	shape := tr.Function.GradientShape()
	shape.F64 += gradient.GradientAt
	var sum round.Partial
	sum.Reset(shape)
	u := round.Task{Of: 1, Op: gradient.OpStep, Roles: dataset.Train, Steps: [2]uint64{0, 1}}
	if err := k.Run(&sum, u, d, vars, nil, k.NewScratch()); err != nil {
		t.Fatal(err)
	}
	g = make([]float32, len(tr.Theta()))
	tr.Function.Gradient(g, 0, &sum, 1, fit)
	return g, sum.F64[1]
}

// parameter returns the place of a parameter, in the order of newTwin.
func (w *twin) parameter(i int) *float64 {
	if n := len(w.w1) * w.hidden; i < n {
		return &w.w1[i/w.hidden][i%w.hidden]
	} else {
		i -= n
	}
	switch {
	case i < w.hidden:
		return &w.b1[i]
	case i < 2*w.hidden:
		return &w.w2[i-w.hidden]
	}
	return &w.b2
}
