package gradient

import (
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// TestDenseTogether holds that dense rows that are multiplied together have the outputs
// and the gradient, bit for bit, that they have one after the other.
func TestDenseTogether(t *testing.T) {
	for _, test := range []struct {
		rows, features, outputs int
		bias, scaled            bool
	}{{2, 1, 1, true, false}, {64, 24, 64, true, true}, {33, 7, 9, false, true}, {7, 40000, 3, true, false},
		{5, 90000, 2, true, false}} {
		f := &Linear{Features: test.features, Outputs: test.outputs, Bias: test.bias, Scaled: test.scaled}
		s := num.NewStream(num.NewKey(3, "dense"), 0, 0)
		draw := func(n int) []float32 {
			v := make([]float32, n)
			for i := range v {
				v[i] = float32(s.Normal())
			}
			return v
		}
		w := &Weights{Theta: draw(Parameters(f))}
		if test.scaled {
			w.Input = scaling.Of(make([]float64, 2*test.features))
			for i := range w.Input.Scale {
				w.Input.Shift[i], w.Input.Scale[i] = s.Normal(), s.Float64()
			}
		}
		samples := make([]Sample, test.rows)
		for i := range samples {
			samples[i].X = draw(test.features)
		}
		df, ws := draw(test.rows*test.outputs), f.NewWorkspace()
		out, want := make([]float32, len(df)), make([]float32, len(df))
		var sum, wantSum round.Partial
		sum.Reset(f.GradientShape())
		wantSum.Reset(f.GradientShape())
		f.Predict(out, samples, w, ws)
		f.Backward(&sum, df, samples, w, ws)
		for i := range samples {
			f.Predict(want[i*test.outputs:(i+1)*test.outputs], samples[i:i+1], w, ws)
			f.Backward(&wantSum, df[i*test.outputs:(i+1)*test.outputs], samples[i:i+1], w, ws)
		}
		if at := firstOther(out, want); at >= 0 {
			t.Errorf("%+v: output %d is %v, alone %v", test, at, out[at], want[at])
		}
		if at := firstOther(sum.F32, wantSum.F32); at >= 0 {
			t.Errorf("%+v: gradient %d is %v, alone %v", test, at, sum.F32[at], wantSum.F32[at])
		}
	}
}

// TestSparseTogether holds that the gradient of sparse rows of which Backward sees all at
// once, now or later, is bit for bit what it is of a few at a time.
func TestSparseTogether(t *testing.T) {
	for _, test := range []struct {
		rows, features, outputs, nonZeros int
		bias, scaled                      bool
	}{{1, 1, 1, 1, true, false}, {32, 1869, 64, 21, true, false}, {33, 100, 64, 10, false, true}, {40, 65, 7, 9, true,
		true}, {3, 64, 128, 0, true, false}, {32, 1869, 128, 21, true, false}, {33, 100, 65, 10, false, true}} {
		f := &Linear{Features: test.features, Outputs: test.outputs, Bias: test.bias, Scaled: test.scaled, Sparse: true}
		s := num.NewStream(num.NewKey(3, "sparse"), 0, 0)
		w := &Weights{}
		if test.scaled {
			w.Input = scaling.Of(make([]float64, 2*test.features))
			for i := range w.Input.Scale {
				w.Input.Shift[i], w.Input.Scale[i] = s.Normal(), s.Float64()
			}
		}
		samples, df := make([]Sample, test.rows), make([]float32, test.rows*test.outputs)
		for i := range samples {
			samples[i].Sparse = true
			for c := range uint32(test.features) {
				if int(s.Uint32())%test.features < test.nonZeros {
					samples[i].Columns, samples[i].X = append(samples[i].Columns, c), append(samples[i].X, float32(s.Normal()))
				}
			}
		}
		for i := range df {
			df[i] = float32(s.Normal())
		}
		ws := f.NewWorkspace()
		sum := func(p *round.Partial, u *round.Task, most int) *round.Partial {
			p.Reset(f.GradientShape())
			p.F64 = make([]float64, GradientAt+test.outputs)
			f.Begin(p, u, samples, most, ws)
			for from := 0; from < len(samples); from += most {
				to := min(from+most, len(samples))
				f.Backward(p, df[from*test.outputs:to*test.outputs], samples[from:to], w, ws)
			}
			if p.Later != nil {
				p.Values = make([]float32, len(p.Index)*test.outputs)
				p.Later.Compute(p.Values, 0)
			}
			num.Canonical32(p.Values)
			return p
		}
		var again round.Partial
		want := sum(new(round.Partial), &round.Task{}, max(1, len(samples)/2))
		for range 2 { // the second time with the memory of the first, and after the other way
			for what, got := range map[string]*round.Partial{
				"at once": sum(new(round.Partial), &round.Task{}, len(samples)), "later": sum(&again, &round.Task{Later: true},
					len(samples)),
			} {
				if !slices.Equal(got.Index, want.Index) || !slices.Equal(got.F64, want.F64) {
					t.Errorf("%+v, %s: rows %v or sums differ from %v", test, what, got.Index, want.Index)
				}
				if at := firstOther(got.Values, want.Values); at >= 0 {
					t.Errorf("%+v, %s: value %d is %v, by parts %v", test, what, at, got.Values[at], want.Values[at])
				}
			}
			want = sum(new(round.Partial), &round.Task{}, max(1, len(samples)/2))
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

// TestInitialTheta: Xavier's bound, the normal's deviation, the bias at 0.
func TestInitialTheta(t *testing.T) {
	f := &Linear{Features: 300, Outputs: 64, Bias: true, Deviation: 0.5}
	theta := make([]float32, Parameters(f))
	f.Initialise(theta, num.NewKey(1, "test/theta"))
	bound := math.Sqrt(3.0 / 300)
	rows, bias := f.split(theta)
	most, _, deviation := moments(rows)
	if mostBias, _, _ := moments(bias); most > bound || math.Abs(deviation-bound/math.Sqrt(3)) > 0.01*bound ||
		mostBias > 0 {
		t.Errorf("Xavier: bound %v, deviation %v", most, deviation)
	}
	f.Normal = true
	f.Initialise(theta, num.NewKey(1, "test/theta"))
	if _, mean, deviation := moments(rows); math.Abs(deviation-0.5) > 0.01 || math.Abs(mean) > 0.02 {
		t.Errorf("normal: mean %v, deviation %v", mean, deviation)
	}
}

// moments returns the greatest absolute value, the mean and the deviation.
func moments(v []float32) (most, mean, deviation float64) {
	for _, x := range v {
		most = max(most, math.Abs(float64(x)))
		mean += float64(x) / float64(len(v))
	}
	for _, x := range v {
		deviation += (float64(x) - mean) * (float64(x) - mean) / float64(len(v))
	}
	return most, mean, math.Sqrt(deviation)
}
