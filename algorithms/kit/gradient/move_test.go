package gradient

import (
	"fmt"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// TestMove holds the optimiser, which moves a part of Θ after the other and takes sparse
// gradients as they are, against the whole gradient written out first.
func TestMove(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		for _, scaled := range []bool{false, true} {
			for _, adam := range []bool{false, true} {
				for _, bias := range []bool{false, true} {
					name := fmt.Sprintf("sparse %v, scaled %v, adam %v, bias %v", sparse, scaled, adam, bias)
					f := &Linear{Features: 333, Outputs: 24, Sparse: sparse, Scaled: scaled, Bias: bias} // a part of Θ has 170 rows
					moveTwice(t, name, f, Rule{Adam: adam, Rate: 0.1, Momentum: 0.9, Decay: 1e-4})
				}
			}
		}
	}
}

// moveTwice moves parameters twice and holds them and their moments against wholeMove.
func moveTwice(t *testing.T, name string, f *Linear, r Rule) {
	s := num.NewStream(num.NewKey(8, "move"), 0, 0)
	var x scaling.Values
	if f.Scaled {
		x = scaling.Of(make([]float64, 2*f.Features))
		for i := range x.Shift {
			x.Shift[i], x.Scale[i] = s.Normal(), s.Normal()
		}
	}
	o, theta := NewOptimizer(r, f), make([]float32, Parameters(f))
	for step := range uint64(2) {
		sum := drawSum(f, s)
		want, first, second := slices.Clone(theta), slices.Clone(o.First), slices.Clone(o.Second)
		finite := o.Move(theta, f, sum, 0.01, &x, step)
		if o.wholeMove(f, sum, 0.01, &x, step, want, first, second) != finite {
			t.Errorf("%s: finite is %v", name, finite)
		}
		for what, pair := range map[string][2][]float32{"Θ": {theta, want}, "first moment": {o.First, first},
			"second moment": {o.Second, second}} {
			if at := firstOther(pair[0], pair[1]); at >= 0 {
				t.Errorf("%s: %s %d is %v, want %v", name, what, at, pair[0][at], pair[1][at])
			}
		}
	}
}

// drawSum draws the sum of a step's partials.
func drawSum(f Function, s *num.Stream) *round.Partial {
	shape := f.GradientShape()
	shape.F64 += GradientAt
	sum := new(round.Partial)
	sum.Reset(shape)
	for row := range uint32(shape.Rows) {
		if s.Uint32()%5 == 0 {
			sum.Index = append(sum.Index, row)
			sum.Values = append(sum.Values, make([]float32, shape.Width)...)
		}
	}
	for _, v := range [][]float32{sum.F32, sum.Values} {
		for i := range v {
			v[i] = float32(s.Normal())
		}
	}
	for i := range sum.F64 {
		sum.F64[i] = s.Normal()
	}
	return sum
}

// wholeMove is Move with the whole gradient at once.
func (o *Optimizer) wholeMove(f *Linear, sum *round.Partial, share float32, x *scaling.Values, step uint64, theta,
	first, second []float32) bool {
	g := slices.Clone(sum.F32)
	if len(g) == 0 {
		g = wholeSparse(f, sum, x)
	}
	for i := range g {
		g[i] *= share
	}
	m := o.move(step)
	return m.apply(theta, first, second, g)
}

// wholeSparse is the gradient that row-sparse partials add up to.
func wholeSparse(f *Linear, sum *round.Partial, x *scaling.Values) []float32 {
	g := make([]float32, Parameters(f))
	for i, row := range sum.Index {
		copy(g[int(row)*f.Outputs:], sum.Values[i*f.Outputs:(i+1)*f.Outputs])
	}
	for i, shift := range x.Shift {
		a := shift * x.Scale[i]
		for j := range f.Outputs {
			v := float64(g[i*f.Outputs+j])
			g[i*f.Outputs+j] = float32(v - float64(a*sum.F64[GradientAt+j]))
		}
	}
	for at := f.Features * f.Outputs; at < len(g); at++ {
		g[at] = float32(sum.F64[GradientAt+at%f.Outputs])
	}
	return g
}
