package ndf

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/internal/num"
	"pgregory.net/rapid"
)

// routed are rows with label masses and the probabilities of going left and right.
type routed struct {
	masses
	fl, fr []float64
}

// drawRouted draws rows of classes or of distributions, with probabilities from outputs of some
// deviation; of an infinite one they are 0 or 1.
func drawRouted(t *rapid.T) *routed {
	n, classes := rapid.IntRange(1, 60).Draw(t, "rows"), rapid.IntRange(2, 6).Draw(t, "classes")
	single := rapid.Bool().Draw(t, "single")
	deviation := rapid.SampledFrom([]float64{0.1, 1, 5, 30, math.Inf(1)}).Draw(t, "deviation")
	s := num.NewStream(num.NewKey(rapid.Uint64().Draw(t, "seed"), "routed"), 0, 0)
	r := &routed{masses: masses{classes: classes, rows: n, single: single}}
	if single {
		r.drawClasses(s)
	} else {
		r.drawDistributions(s)
	}
	for _, w := range r.w {
		r.total += float64(w)
	}
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(deviation * s.Normal())
	}
	var p routing
	p.set(out)
	r.fl, r.fr = p.left, p.right
	return r
}

func (r *routed) drawClasses(s *num.Stream) {
	r.from = make([]int, r.classes+1)
	for range r.rows {
		for c := int(s.Uint64n(uint64(r.classes))); c < r.classes; c++ {
			r.from[c+1]++
		}
		r.w = append(r.w, float32(1+s.Uint64n(3)))
	}
}

func (r *routed) drawDistributions(s *num.Stream) {
	r.w = make([]float32, r.classes*r.rows)
	for i := range r.rows {
		sum := 0.0
		for c := range r.classes {
			if v := s.Float64(); v > 0.3 {
				r.w[c*r.rows+i] = float32(v)
				sum += v
			}
		}
		if sum == 0 {
			r.w[i] = 1
		}
	}
}

// posteriors returns π at the class shares.
func (r *routed) posteriors() *posteriors {
	p := new(posteriors)
	p.resize(r.classes)
	p.start(&r.masses, r.fl, r.fr)
	return p
}

// bound is n(IG - H), computed from the shares of section 2 of the supplement by package math.
func (r *routed) bound() float64 {
	sum := 0.0
	for _, f := range [][]float64{r.fl, r.fr} {
		of, all := make([]float64, r.classes), 0.0
		for c := range of {
			from, _, w := r.segment(c)
			for i, mass := range w {
				of[c] += float64(mass) * f[from+i]
			}
			all += of[c]
		}
		for _, x := range of {
			if x > 0 {
				sum += x * math.Log(x/all)
			}
		}
	}
	return sum // Σ_d Σ_s f_d·(-H(π̂^(d))) = n(IG - H)
}

// TestTheorem1: log Q ≥ n(IG - H) from the class shares on, with equality where rows are
// routed to one side.
func TestTheorem1(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRouted(t)
		p, bound := r.posteriors(), r.bound()
		binary := true
		for i := range r.fl {
			binary = binary && (r.fl[i] == 0 || r.fr[i] == 0)
		}
		for i := range 30 {
			q := p.logQ(&r.masses, r.fl, r.fr)
			if q < bound-1e-9*r.total {
				t.Fatalf("after %d iterations log Q is %v, below n(IG - H) = %v", i, q, bound)
			}
			if binary && math.Abs(q-bound) > 1e-9*r.total {
				t.Fatalf("binary routing: log Q is %v, n(IG - H) is %v", q, bound)
			}
			p.update(&r.masses, r.fl, r.fr)
		}
	})
}

// TestTheorem2: no iteration of Eq. 4 lowers log Q, and one that changes π by more than 1e-9
// raises it. The rise is Σ_d Z_d KL(π' ‖ π) or more, which is below rounding for the least changes.
func TestTheorem2(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRouted(t)
		p := r.posteriors()
		before := p.logQ(&r.masses, r.fl, r.fr)
		for i := range 50 {
			left, right := append([]float64(nil), p.left...), append([]float64(nil), p.right...)
			change := p.update(&r.masses, r.fl, r.fr)
			after := p.logQ(&r.masses, r.fl, r.fr)
			if after < before-1e-12*r.total {
				t.Fatalf("iteration %d lowers log Q from %v to %v", i, before, after)
			}
			rise := divergence(p.massLeft, left) + divergence(p.massRight, right)
			if change > 1e-9 && (rise <= 0 || rise > 1e-12*r.total && after <= before) {
				t.Fatalf("iteration %d changes π by %v and log Q from %v to %v: a rise of %v or more belongs there", i, change,
					before, after, rise)
			}
			if after < before+rise-1e-12*r.total {
				t.Fatalf("iteration %d raises log Q by %v, less than the bound %v", i, after-before, rise)
			}
			before = after
		}
	})
}

// divergence is Z·KL(mass/Z ‖ before).
func divergence(mass, before []float64) float64 {
	z, sum := 0.0, 0.0
	for _, x := range mass {
		z += x
	}
	for c, x := range mass {
		if v := x / z; v > 0 && z > 0 {
			// Terms v ln(v/b) - v + b are not negative and keep small changes.
			d := (v - before[c]) / before[c]
			sum += before[c] * ((1+d)*math.Log1p(d) - d)
		}
		if x == 0 && z > 0 {
			sum += before[c]
		}
	}
	return z * sum
}

// TestPosteriorTwin: π of vectors and that of the equations, term by term.
func TestPosteriorTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRouted(t)
		p := r.posteriors()
		left, right := append([]float64(nil), p.left...), append([]float64(nil), p.right...)
		for range 5 {
			p.update(&r.masses, r.fl, r.fr)
			left, right = r.slowUpdate(left, right)
		}
		for c := range left {
			if math.Abs(left[c]-p.left[c]) > 1e-9 || math.Abs(right[c]-p.right[c]) > 1e-9 {
				t.Fatalf("class %d: π %v, %v, want %v, %v", c, p.left[c], p.right[c], left[c], right[c])
			}
		}
	})
}

// slowUpdate is Eq. 4 row by row.
func (r *routed) slowUpdate(left, right []float64) (l, rt []float64) {
	l, rt = make([]float64, r.classes), make([]float64, r.classes)
	zl, zr := 0.0, 0.0
	for c := range r.classes {
		from, _, w := r.segment(c)
		for i, mass := range w {
			a, b := left[c]*r.fl[from+i], right[c]*r.fr[from+i]
			if mass > 0 {
				l[c] += float64(mass) * a / (a + b)
				rt[c] += float64(mass) * b / (a + b)
			}
		}
		zl, zr = zl+l[c], zr+rt[c]
	}
	for c := range l {
		if l[c] /= zl; zl == 0 {
			l[c] = left[c]
		}
		if rt[c] /= zr; zr == 0 {
			rt[c] = right[c]
		}
	}
	return l, rt
}
