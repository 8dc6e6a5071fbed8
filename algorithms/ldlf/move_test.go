package ldlf

import (
	"fmt"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/round"
)

// TestMove holds the optimiser, which moves a part of Θ after the other and takes sparse
// gradients as they are, against the whole gradient written out first.
func TestMove(t *testing.T) {
	const features, outputs = 333, 24 // a part of Θ has 170 rows
	for _, sparse := range []bool{false, true} {
		for _, scale := range []string{scalingNone, scalingStandard} {
			for _, solver := range []string{optimizerSGD, optimizerAdam} {
				for _, bias := range []bool{false, true} {
					name := fmt.Sprintf("sparse %v, scaling %s, %s, bias %v", sparse, scale, solver, bias)
					c := smallConfig()
					c.Outputs, c.Scaling, c.Optimizer, c.Bias = outputs, scale, solver, bias
					p := makeProblem(3, 40, features, 4, 0.3)
					j := jobOf(c, 1)
					m, _ := p.data(2, sparse, j.Split)
					tr, _ := start(t, j, m)
					moveTwice(t, name, tr)
				}
			}
		}
	}
}

// moveTwice moves tr twice and holds Θ and its moments against wholeMove.
func moveTwice(t *testing.T, name string, tr *trainer) {
	s := num.NewStream(num.NewKey(8, "move"), 0, 0)
	for i := range tr.input {
		tr.input[i] = s.Normal()
	}
	for range 2 {
		sum := drawSum(tr, s)
		theta, first, second := slices.Clone(tr.theta), slices.Clone(tr.first), slices.Clone(tr.second)
		tr.updates++
		finite := tr.move(sum, 0.01)
		if want := wholeMove(tr, sum, 0.01, theta, first, second); finite != want {
			t.Errorf("%s: finite is %v, want %v", name, finite, want)
		}
		for what, pair := range map[string][2][]float32{"Θ": {tr.theta, theta}, "first moment": {tr.first, first}, "second moment": {tr.second, second}} {
			if at := firstOther(pair[0], pair[1]); at >= 0 {
				t.Errorf("%s: %s %d is %v, want %v", name, what, at, pair[0][at], pair[1][at])
			}
		}
	}
}

// drawSum draws the sum of a step's partials.
func drawSum(tr *trainer, s *num.Stream) *round.Partial {
	shape := tr.f.gradientShape()
	shape.F64 += gradientAt
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

// wholeMove is the trainer's move with the whole gradient at once.
func wholeMove(tr *trainer, sum *round.Partial, share float32, theta, first, second []float32) bool {
	g := slices.Clone(sum.F32)
	if len(g) == 0 {
		g = wholeSparse(tr, sum, len(theta))
	}
	for i := range g {
		g[i] *= share
	}
	o := tr.optimizer()
	return o.move(theta, first, second, g)
}

// wholeSparse is the gradient that row-sparse partials add up to.
func wholeSparse(tr *trainer, sum *round.Partial, n int) []float32 {
	g, outputs := make([]float32, n), tr.size.outputs
	for i, row := range sum.Index {
		copy(g[int(row)*outputs:], sum.Values[i*outputs:(i+1)*outputs])
	}
	if input := newScaling(tr.input); !input.none() {
		for i, shift := range input.shift {
			a := shift * input.scale[i]
			for j := range outputs {
				v := float64(g[i*outputs+j])
				g[i*outputs+j] = float32(v - float64(a*sum.F64[gradientAt+j]))
			}
		}
	}
	for at := tr.size.features * outputs; at < n; at++ {
		g[at] = float32(sum.F64[gradientAt+at%outputs])
	}
	return g
}
