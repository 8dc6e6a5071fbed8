package ldlf

import (
	"testing"

	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/round"
)

// TestDenseTogether holds that dense rows that are multiplied together have the outputs
// and the gradient, bit for bit, that they have one after the other.
func TestDenseTogether(t *testing.T) {
	for _, test := range []struct {
		rows, features, outputs int
		bias, scaled            bool
	}{{2, 1, 1, true, false}, {64, 24, 64, true, true}, {33, 7, 9, false, true}, {7, 40000, 3, true, false}, {5, 90000, 2, true, false}} {
		f := &linear{features: test.features, outputs: test.outputs, bias: test.bias, scaled: test.scaled}
		s := num.NewStream(num.NewKey(3, "dense"), 0, 0)
		draw := func(n int) []float32 {
			v := make([]float32, n)
			for i := range v {
				v[i] = float32(s.Normal())
			}
			return v
		}
		w := &weights{theta: draw(f.parameters())}
		if test.scaled {
			w.input = newScaling(make([]float64, 2*test.features))
			for i := range w.input.scale {
				w.input.shift[i], w.input.scale[i] = s.Normal(), s.Float64()
			}
		}
		samples := make([]sample, test.rows)
		for i := range samples {
			samples[i].x = draw(test.features)
		}
		df, ws := draw(test.rows*test.outputs), f.workspace()
		out, want := make([]float32, len(df)), make([]float32, len(df))
		var sum, wantSum round.Partial
		sum.Reset(f.gradientShape())
		wantSum.Reset(f.gradientShape())
		f.forward(out, samples, w, ws)
		f.backward(&sum, df, samples, w, ws)
		for i := range samples {
			f.forward(chunk(want, i, test.outputs), samples[i:i+1], w, ws)
			f.backward(&wantSum, chunk(df, i, test.outputs), samples[i:i+1], w, ws)
		}
		if at := firstOther(out, want); at >= 0 {
			t.Errorf("%+v: output %d is %v, alone %v", test, at, out[at], want[at])
		}
		if at := firstOther(sum.F32, wantSum.F32); at >= 0 {
			t.Errorf("%+v: gradient %d is %v, alone %v", test, at, sum.F32[at], wantSum.F32[at])
		}
	}
}

// firstOther returns where two vectors differ first, or -1.
func firstOther(a, b []float32) int {
	for i, x := range a {
		if x != b[i] {
			return i
		}
	}
	return -1
}
