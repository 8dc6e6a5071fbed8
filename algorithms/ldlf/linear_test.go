package ldlf

import (
	"slices"
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
			f.forward(treeOf(want, i, test.outputs), samples[i:i+1], w, ws)
			f.backward(&wantSum, treeOf(df, i, test.outputs), samples[i:i+1], w, ws)
		}
		if at := firstOther(out, want); at >= 0 {
			t.Errorf("%+v: output %d is %v, alone %v", test, at, out[at], want[at])
		}
		if at := firstOther(sum.F32, wantSum.F32); at >= 0 {
			t.Errorf("%+v: gradient %d is %v, alone %v", test, at, sum.F32[at], wantSum.F32[at])
		}
	}
}

// TestSparseTogether holds that the gradient of sparse rows of which backward sees all at
// once, now or later, is bit for bit what it is of a few at a time.
func TestSparseTogether(t *testing.T) {
	for _, test := range []struct {
		rows, features, outputs, nonZeros int
		bias, scaled                      bool
	}{{1, 1, 1, 1, true, false}, {32, 1869, 64, 21, true, false}, {33, 100, 64, 10, false, true}, {40, 65, 7, 9, true, true}, {3, 64, 128, 0, true, false}} {
		f := &linear{features: test.features, outputs: test.outputs, bias: test.bias, scaled: test.scaled, sparse: true}
		s := num.NewStream(num.NewKey(3, "sparse"), 0, 0)
		w := &weights{}
		if test.scaled {
			w.input = newScaling(make([]float64, 2*test.features))
			for i := range w.input.scale {
				w.input.shift[i], w.input.scale[i] = s.Normal(), s.Float64()
			}
		}
		samples, df := make([]sample, test.rows), make([]float32, test.rows*test.outputs)
		for i := range samples {
			samples[i].sparse = true
			for c := range uint32(test.features) {
				if int(s.Uint32())%test.features < test.nonZeros {
					samples[i].columns, samples[i].x = append(samples[i].columns, c), append(samples[i].x, float32(s.Normal()))
				}
			}
		}
		for i := range df {
			df[i] = float32(s.Normal())
		}
		ws := f.workspace()
		sum := func(p *round.Partial, u *round.Unit, most int) *round.Partial {
			p.Reset(f.gradientShape())
			p.F64 = make([]float64, gradientAt+test.outputs)
			f.begin(p, u, samples, most, ws)
			for from := 0; from < len(samples); from += most {
				to := min(from+most, len(samples))
				f.backward(p, df[from*test.outputs:to*test.outputs], samples[from:to], w, ws)
			}
			if p.Later != nil {
				p.Values = make([]float32, len(p.Index)*test.outputs)
				p.Later.Compute(p.Values, 0)
			}
			num.Canonical32(p.Values)
			return p
		}
		var again round.Partial
		want := sum(new(round.Partial), &round.Unit{}, max(1, len(samples)/2))
		for range 2 { // the second time with the memory of the first, and after the other way
			for what, got := range map[string]*round.Partial{
				"at once": sum(new(round.Partial), &round.Unit{}, len(samples)), "later": sum(&again, &round.Unit{Later: true}, len(samples)),
			} {
				if !slices.Equal(got.Index, want.Index) || !slices.Equal(got.F64, want.F64) {
					t.Errorf("%+v, %s: rows %v or sums differ from %v", test, what, got.Index, want.Index)
				}
				if at := firstOther(got.Values, want.Values); at >= 0 {
					t.Errorf("%+v, %s: value %d is %v, by parts %v", test, what, at, got.Values[at], want.Values[at])
				}
			}
			want = sum(new(round.Partial), &round.Unit{}, max(1, len(samples)/2))
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
