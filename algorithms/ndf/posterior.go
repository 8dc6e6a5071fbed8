package ndf

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// masses are the label masses of the rows of a node or a mini-batch: w·d_sc for a row s that
// was drawn w times.
//
// Rows of classes (single) stand in the order of their classes, those of class c at [from[c],
// from[c+1]), and have one mass each; other rows have one for each class: class c has the
// masses w[c·rows : (c+1)·rows].
type masses struct {
	classes, rows int
	single        bool
	from          []int
	w             []float32
	total         float64 // of all masses
}

// segment returns the range of the rows that may have class c, and their masses.
func (m *masses) segment(c int) (from, to int, w []float32) {
	if !m.single {
		return 0, m.rows, m.w[c*m.rows:][:m.rows]
	}
	from, to = m.from[c], m.from[c+1]
	return from, to, m.w[from:to]
}

// posteriors are the child posteriors π, by class.
type posteriors struct {
	left, right []float64

	massLeft, massRight []float64 // Σ_s of a class that Eq. 4 divides by Z
}

// resize makes room for so many classes. The values are any.
func (p *posteriors) resize(classes int) {
	for _, v := range []*[]float64{&p.left, &p.right, &p.massLeft, &p.massRight} {
		forest.Resized(v, classes)
	}
}

// start sets π to the class shares of both sides of the split that routes rows by fl and fr:
// π̂^(d) of the supplement's section 2. A side that nothing reaches gets the shares of all rows.
func (p *posteriors) start(m *masses, fl, fr []float64) {
	for c := range m.classes {
		from, to, w := m.segment(c)
		p.massLeft[c], p.massRight[c] = routedMass(fl[from:to], fr[from:to], w)
		all := (p.massLeft[c] + p.massRight[c]) / m.total
		p.left[c], p.right[c] = all, all
	}
	normalise(p.left, p.massLeft)
	normalise(p.right, p.massRight)
}

// update is one iteration of Eq. 4 of the supplement. It returns the greatest change of an
// element of π. A side without mass keeps its π.
func (p *posteriors) update(m *masses, fl, fr []float64) (change float64) {
	for c := range m.classes {
		from, to, w := m.segment(c)
		l, r := ratioSums(fl[from:to], fr[from:to], w, p.left[c], p.right[c])
		p.massLeft[c], p.massRight[c] = p.left[c]*l, p.right[c]*r
	}
	return max(normalise(p.left, p.massLeft), normalise(p.right, p.massRight))
}

// normalise sets pi to mass over the sum of mass, unless that is 0, and returns the greatest
// change.
func normalise(pi, mass []float64) (change float64) {
	z := 0.0
	for _, x := range mass {
		z += x
	}
	if !(z > 0) {
		return 0
	}
	for c, x := range mass {
		v := x / z
		change = max(change, v-pi[c], pi[c]-v)
		pi[c] = v
	}
	return change
}

// logQ returns Σ_s Σ_c d_sc ln(π_c^L f_L + π_c^R f_R), weighted by the rows' draws.
func (p *posteriors) logQ(m *masses, fl, fr []float64) float64 {
	sum := 0.0
	for c := range m.classes {
		from, to, w := m.segment(c)
		for i, mass := range w {
			if mass > 0 {
				q := float64(p.left[c]*fl[from:to][i]) + float64(p.right[c]*fr[from:to][i])
				sum += float64(float64(mass) * num.Log(max(q, leastRatio)))
			}
		}
	}
	return sum
}

// gradient sets g to ∂logQ/∂f_L of each row under fixed π, which is that of log Q where π is
// its maximiser (the envelope theorem).
func (p *posteriors) gradient(g []float64, m *masses, fl, fr []float64) {
	clear(g)
	for c := range m.classes {
		from, to, w := m.segment(c)
		addRatios(g[from:to], fl[from:to], fr[from:to], w, p.left[c], p.right[c])
	}
}

// routing is the probability of going left and right, by row. Of a row the smaller one is rounded to
// float32, and both add up to 1 as float64: the bounds of the supplement hold for these.
type routing struct {
	left, right []float64

	narrow [2][]float32
}

// set sets the probabilities from outputs.
func (r *routing) set(out []float32) {
	n := len(out)
	left, right := forest.Resized(&r.left, n), forest.Resized(&r.right, n)
	s, t := forest.Resized(&r.narrow[0], n), forest.Resized(&r.narrow[1], n)
	num.SigmoidPairs(s, t, out)
	for i, x := range s {
		if y := t[i]; x < y {
			left[i], right[i] = float64(x), 1-float64(x)
		} else {
			left[i], right[i] = 1-float64(y), float64(y)
		}
	}
}
