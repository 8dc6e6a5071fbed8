package ldlf

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// forestCase is a random forest with random leaves, and rows to look at.
type forestCase struct {
	z     sizes
	k     *kernel
	phi   []uint32
	theta []float32
	q     []float32
	p     *problem
}

// drawCase draws a forest: outputs go from the number of split nodes (trees share
// all their units) to twice that (they share some).
func drawCase(t *rapid.T) *forestCase {
	c := smallConfig()
	c.Trees = rapid.IntRange(1, 4).Draw(t, "trees")
	c.Depth = rapid.IntRange(2, 5).Draw(t, "depth")
	splits := splitNodes(c.Depth)
	c.Outputs = rapid.IntRange(splits, 2*splits).Draw(t, "outputs")
	c.Bias = rapid.Bool().Draw(t, "bias")
	seed := rapid.Uint64().Draw(t, "seed")
	p := makeProblem(seed, rapid.IntRange(1, 6).Draw(t, "rows"), rapid.IntRange(1, 5).Draw(t, "features"),
		rapid.IntRange(2, 5).Draw(t, "labels"), 1)
	return newCase(c, p, seed, rapid.Float64Range(0.1, 2).Draw(t, "deviation"))
}

func newCase(c *Config, p *problem, seed uint64, deviation float64) *forestCase {
	m, _ := p.data(1, false, jobOf(c, 1).Split)
	k := newKernel(c, seed, m)
	s := num.NewStream(num.NewKey(seed, "case"), 0, 0)
	fc := &forestCase{z: k.sizes, k: k, phi: k.phi, p: p, theta: make([]float32, k.sizes.parameters),
		q: make([]float32, k.sizes.q())}
	for i := range fc.theta {
		fc.theta[i] = float32(deviation * s.Normal())
	}
	for l := 0; l < len(fc.q); l += p.labels {
		sum := float32(0)
		for c := range p.labels {
			fc.q[l+c] = float32(s.Float64() + 0.01)
			sum += fc.q[l+c]
		}
		for c := range p.labels {
			fc.q[l+c] /= sum
		}
	}
	return fc
}

func (fc *forestCase) vars() round.Vars {
	return round.Vars{
		{ID: 0xfe10, Version: 1, Data: num.Bytes32(fc.theta)},
		{ID: 0xfe11, Version: 1, Data: num.Bytes32(fc.q)},
	}
}

// all is a sampler that draws every row once.
type all struct{}

func (all) Draw(dst []uint32, _ *round.Task, n int, _ uint64) []uint32 {
	for i := range n {
		dst = append(dst, uint32(i))
	}
	return dst
}

// kernelGradient is the mean gradient over all rows and trees, by the kernel.
func (fc *forestCase) kernelGradient(t testing.TB, sparse bool) []float64 {
	m, d := fc.p.data(1, sparse, jobOf(smallConfig(), 1).Split)
	k := *fc.k
	k.descent.Draws = all{}
	k.descent.Function = newFunction(smallConfig(), fc.z, sparse, 0)
	f := k.descent.Function
	shape := f.GradientShape()
	shape.F64 += gradient.GradientAt
	var dst round.Partial
	dst.Reset(shape)
	u := round.Task{Of: 1, Op: gradient.OpStep, Roles: 1, Steps: [2]uint64{0, 1}}
	if err := k.Run(&dst, u, d, fc.vars(), nil, k.NewScratch()); err != nil {
		t.Fatal(err)
	}
	if dst.F64[0] != float64(m.Rows) {
		t.Fatalf("%v rows were drawn of %d", dst.F64[0], m.Rows)
	}
	g := make([]float32, len(fc.theta))
	f.Gradient(g, 0, &dst, float32(1/(dst.F64[0]*float64(fc.z.trees))), new(scaling.Values))
	return widened(g)
}

// agree reports where two gradients differ by more than tolerance, relative to
// their largest element, or to size where that is more.
func agree(a, b []float64, tolerance, size float64) error {
	size = max(size, largest(b))
	for i := range a {
		if e := abs(a[i]-b[i]) / size; !(e <= tolerance) {
			return fmt.Errorf("element %d: %v and %v differ by %.2g of the largest, %v", i, a[i], b[i], e, size)
		}
	}
	return nil
}

// TestGradient holds Eq. 6 against central differences, and the kernel against
// Eq. 6, on dense and sparse rows; trees share output units.
func TestGradient(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		fc := drawCase(t)
		r := newReference(fc.z, fc.phi, fc.theta, fc.q)
		xs, ds := floats(fc.p.x, fc.p.features), floats(fc.p.d, fc.p.labels)
		exact, numeric := r.gradient(xs, ds), r.numeric(xs, ds)
		// Differences with h = 1e-5 err by some 1e-11, so 1e-6 of less than 1e-4 is
		// beyond them.
		if err := agree(exact, numeric, 1e-6, 1e-4); err != nil {
			t.Fatalf("Eq. 6 and central differences: %v", err)
		}
		// Both sides of Eq. 6 are up to 1/4 times a feature: where they cancel, what
		// float32 keeps is relative to them.
		size := largest(widened(fc.p.x)) / 4
		for _, sparse := range []bool{false, true} {
			if err := agree(fc.kernelGradient(outer, sparse), exact, 1e-5, size); err != nil {
				t.Fatalf("kernel (sparse %v) and Eq. 6: %v", sparse, err)
			}
		}
	})
}

func largest(v []float64) float64 {
	m := 1e-9
	for _, x := range v {
		m = max(m, abs(x))
	}
	return m
}

// TestGradientCheckCatches breaks Eq. 6 on purpose: the check above must see it.
func TestGradientCheckCatches(t *testing.T) {
	c := smallConfig()
	fc := newCase(c, makeProblem(5, 6, 4, 3, 1), 5, 1)
	r := newReference(fc.z, fc.phi, fc.theta, fc.q)
	xs, ds := floats(fc.p.x, fc.p.features), floats(fc.p.d, fc.p.labels)
	numeric := r.numeric(xs, ds)
	if err := agree(fc.kernelGradient(t, false), numeric, 1e-5, 0); err != nil {
		t.Fatalf("unbroken: %v", err)
	}
	for name, broken := range map[string]func(s, left, right float64) float64{
		"sign":          func(s, left, right float64) float64 { return (1-s)*left - s*right },
		"inner sign":    func(s, left, right float64) float64 { return s*right + (1-s)*left },
		"sides swapped": func(s, left, right float64) float64 { return s*left - (1-s)*right },
		"no 1-s":        func(s, left, right float64) float64 { return s*right - left },
	} {
		if agree(r.brokenGradient(xs, ds, broken, true), numeric, 1e-5, 0) == nil {
			t.Errorf("%s: the check passes a broken gradient", name)
		}
	}
	right := func(s, left, right float64) float64 { return s*right - (1-s)*left }
	if err := agree(r.brokenGradient(xs, ds, right, true), numeric, 1e-5, 0); err != nil {
		t.Errorf("the mutated code is wrong where nothing is broken: %v", err)
	}
	if agree(r.brokenGradient(xs, ds, right, false), numeric, 1e-5, 0) == nil {
		t.Error("the check passes a gradient without the normaliser g")
	}
}

// brokenGradient is gradient with Eq. 6's bracket as given, and g left out where
// normalised is false.
func (r *reference) brokenGradient(xs, ds [][]float64, bracket func(s, left, right float64) float64,
	normalised bool) []float64 {
	grad := make([]float64, len(r.theta))
	for i, x := range xs {
		for k := range r.trees {
			for n := range r.leaves() - 1 {
				from, mid, to := r.below(n)
				sum := 0.0
				for c, dc := range ds[i] {
					g := 1.0
					if normalised {
						g = r.tree(x, k, c, 0, r.leaves())
					}
					sum += dc / g * bracket(r.split(x, k, n), r.tree(x, k, c, from, mid), r.tree(x, k, c, mid, to))
				}
				r.spread(grad, x, int(r.phi[k*(r.leaves()-1)+n]), sum/float64(len(xs)*r.trees))
			}
		}
	}
	return grad
}

// spread adds df·∂f_j/∂Θ to grad.
func (r *reference) spread(grad, x []float64, j int, df float64) {
	for f, v := range x {
		grad[f*r.outputs+j] += df * v
	}
	if r.bias {
		grad[r.features*r.outputs+j] += df
	}
}

// TestGradientUniform: while q is uniform the gradient is zero, up to rounding;
// that is why the trainer skips the steps.
func TestGradientUniform(t *testing.T) {
	fc := newCase(smallConfig(), makeProblem(8, 6, 4, 3, 1), 8, 1)
	fillUniform(fc.q, fc.z.labels)
	for i, v := range fc.kernelGradient(t, false) {
		if math.Abs(v) > 1e-6 {
			t.Fatalf("element %d is %v", i, v)
		}
	}
	if !isUniform(fc.q, fc.z.labels) {
		t.Error("isUniform does not see it")
	}
	fc.q[5] = math.Nextafter32(fc.q[5], 1)
	if isUniform(fc.q, fc.z.labels) {
		t.Error("isUniform is not exact")
	}
}
