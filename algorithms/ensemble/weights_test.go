package ensemble

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

// drawSample draws rows with degrees that sum to 1; members may be alike, and predict zeros. The rows may have weights.
func drawSample(t *rapid.T) *sample {
	s := &sample{members: rapid.IntRange(2, 4).Draw(t, "members"), labels: rapid.IntRange(2, 4).Draw(t, "labels")}
	distribution := func(name string, least float64) []float32 {
		v, sum := make([]float64, s.labels), 0.0
		for c := range v {
			v[c] = least + rapid.SampledFrom([]float64{0, 0.1, 0.5, 1, 2, 7}).Draw(t, name)
			sum += v[c]
		}
		p := make([]float32, s.labels)
		for c := range v {
			if p[c] = float32(1 / float64(s.labels)); sum > 0 {
				p[c] = float32(v[c] / sum)
			}
		}
		return p
	}
	near := rapid.SampledFrom([]float64{0, 0.05, 5, 500}).Draw(t, "near") // how alike members are
	weighted := rapid.Bool().Draw(t, "weighted")
	for i := range rapid.IntRange(1, 30).Draw(t, "rows") {
		var p [][]float32
		for range s.members {
			p = append(p, distribution("predicted", near))
		}
		weight := 1.0
		if weighted {
			weight = float64((i*5+3)%4) / 2
			s.weights = append(s.weights, weight)
		}
		s.add(distribution("truth", 0), p, weight)
	}
	return s
}

// part returns the weight of a row, divided by the weight of all rows.
func (s *sample) part(i int) float64 {
	if s.weights == nil {
		return 1 / float64(s.rows())
	}
	sum := 0.0
	for _, w := range s.weights {
		sum += w
	}
	return s.weights[i] / sum
}

// naive is f by definition, in a loop of its own.
func naive(s *sample, w []float64) (f float64) {
	for i := range s.rows() {
		for c := range s.labels {
			mix := 0.0
			for m := range s.members {
				mix += w[m] * math.Max(float64(s.predicted[(i*s.members+m)*s.labels+c]), float64(float32(1e-12)))
			}
			if d := float64(s.truth[i*s.labels+c]); d > 0 {
				f += d * math.Log(d/mix) * s.part(i)
			}
		}
	}
	return f
}

// plain is the iteration of Eq. 12 of Shen et al. 2017, by definition.
func plain(s *sample, iterations int) []float64 {
	w := uniform(s.members)
	for range iterations {
		next := make([]float64, s.members)
		for i := range s.rows() {
			for c := range s.labels {
				mix := 0.0
				for m := range w {
					mix += w[m] * float64(s.predicted[(i*s.members+m)*s.labels+c])
				}
				for m := range w {
					next[m] += float64(s.truth[i*s.labels+c]) * w[m] * float64(s.predicted[(i*s.members+m)*s.labels+c]) / mix *
						s.part(i)
				}
			}
		}
		w = next
	}
	normalise(w)
	return w
}

// TestFitIsTheMinimum: no weights have a lower divergence, neither those of many plain
// iterations, nor a member's alone, nor ones near by; and the gradient is that of differences.
func TestFitIsTheMinimum(t *testing.T) {
	testkit.WithoutRace(t)
	rapid.Check(t, func(t *rapid.T) {
		s := drawSample(t)
		w := s.fit(uniform(s.members))
		if !onSimplex(w) {
			t.Fatalf("weights %v", w)
		}
		f := naive(s, w)
		if got := s.divergence(w); math.Abs(got-f) > 1e-12*(1+math.Abs(f)) {
			t.Fatalf("the divergence is %v, %v by definition", got, f)
		}
		others := [][]float64{plain(s, 1000), uniform(s.members)}
		for m := range w {
			others = append(others, only(m, s.members))
			for k := range w {
				if k != m && w[k] > 0 {
					v := slices.Clone(w)
					moved := math.Min(v[k], 1e-3)
					v[m], v[k] = v[m]+moved, v[k]-moved
					others = append(others, v)
				}
			}
		}
		for _, v := range others {
			if g := naive(s, v); g < f-1e-5 { // of members that are made to be hard: mostPasses ends the fit
				t.Fatalf("%v has the divergence %v, %v have %v", w, f, v, g)
			}
		}
		g := make([]float64, s.members)
		u := uniform(s.members)
		s.evaluate(g, u)
		for m := range u {
			const h = 1e-6
			up, down := slices.Clone(u), slices.Clone(u)
			up[m], down[m] = u[m]+h, u[m]-h
			slope := (naive(s, up) - naive(s, down)) / (2 * h)
			if math.Abs(slope+g[m]) > 1e-5*(1+math.Abs(slope)) {
				t.Fatalf("∂f/∂w_%d is %v, by differences %v", m, -g[m], slope)
			}
		}
	})
}

// TestAlikeMembers: where members predict nearly the same, 500 plain iterations are far from
// the minimum; fit is not.
func TestAlikeMembers(t *testing.T) {
	s := &sample{members: 2, labels: 2}
	for i := range 200 {
		d := float32(0.4 + 0.001*float64(i%100))
		s.add([]float32{d, 1 - d}, [][]float32{{d + 0.004, 1 - d - 0.004}, {d + 0.03, 1 - d - 0.03}}, 1)
	}
	if w := plain(s, 500); w[1] < 0.01 {
		t.Fatalf("plain iterations end at %v: the example is too easy", w)
	}
	if w := s.fit(uniform(s.members)); w[1] > 1e-6 {
		t.Errorf("weights %v, want the first member alone", w)
	}
}

// TestChoose: a member has no weight where the others do as well but for a share of leastGain, and
// each that has one is needed.
func TestChoose(t *testing.T) {
	testkit.WithoutRace(t)
	rapid.Check(t, func(t *rapid.T) {
		s := drawSample(t)
		best, w := naive(s, s.fit(uniform(s.members))), s.choose()
		if !onSimplex(w) {
			t.Fatalf("weights %v", w)
		}
		if f := naive(s, w); f > best*(1+leastGain)+1e-9 {
			t.Fatalf("%v have the divergence %v, all members %v", w, f, best)
		}
		less := without(w)
		if less == nil {
			return
		}
		if f := naive(s, s.fit(less)); f < best*(1+leastGain)-1e-9 {
			t.Fatalf("%v have the divergence %v and are not needed: without the least, %v", w, best, f)
		}
	})
}

// TestChooseByHand: of two members that are alike but for a hair the better one is left, of two
// that err on different rows both are.
func TestChooseByHand(t *testing.T) {
	hair, apart := &sample{members: 2, labels: 2}, &sample{members: 2, labels: 2}
	for i := range 200 {
		d := float32(0.4 + 0.001*float64(i%100))
		hair.add([]float32{d, 1 - d}, [][]float32{{d + 0.1, 0.9 - d},
			{d + 0.1 - 0.0001*float32(i%5), 0.9 - d + 0.0001*float32(i%5)}}, 1)
		wrong := d + 0.3*float32(i%2)
		apart.add([]float32{d, 1 - d}, [][]float32{{wrong, 1 - wrong}, {d + 0.3 - (wrong - d), 0.7 - d + (wrong - d)}}, 1)
	}
	if w := hair.choose(); w[0] != 0 || w[1] != 1 {
		t.Errorf("weights %v, want 0 and 1", w)
	}
	if w := apart.choose(); w[0] < 0.4 || w[1] < 0.4 {
		t.Errorf("weights %v of members that complement each other", w)
	}
}

// TestWithout: the least of the weights goes, the first of several, and the others are equal; one weight stays.
func TestWithout(t *testing.T) {
	for _, c := range []struct{ w, want []float64 }{
		{[]float64{.2, .5, .3}, []float64{0, .5, .5}},
		{[]float64{.5, .2, .3}, []float64{.5, 0, .5}},
		{[]float64{.4, .4, .2}, []float64{.5, .5, 0}},
		{[]float64{.25, .25, .5}, []float64{0, .5, .5}},
		{[]float64{.1, .2, .3, .4}, []float64{0, 1. / 3, 1. / 3, 1. / 3}},
		{[]float64{0, .6, 0, .4}, []float64{0, 1, 0, 0}},
		{[]float64{0, 1, 0}, nil},
		{[]float64{1}, nil},
	} {
		if got := without(c.w); !slices.Equal(got, c.want) {
			t.Errorf("%v become %v, want %v", c.w, got, c.want)
		}
	}
}

// TestOnSimplex: weights are from 0 to 1 and sum to 1 but for 1e-9.
func TestOnSimplex(t *testing.T) {
	for _, c := range []struct {
		w    []float64
		want bool
	}{
		{[]float64{1}, true},
		{[]float64{.5, 0, .5}, true},
		{[]float64{.5, .5 + 5e-10}, true},
		{[]float64{.5, .5 - 5e-10}, true},
		{[]float64{.5, .5 + 2e-9}, false},
		{[]float64{.5, .5 - 2e-9}, false},
		{[]float64{1 - 1e-9}, false},
		{[]float64{1 + 1e-9}, false},
		{[]float64{.5, .6}, false},
		{[]float64{.5, .4}, false},
		{[]float64{-.25, 1, .25}, false},
		{[]float64{1.25, -.25}, false},
		{[]float64{math.NaN(), 1}, false},
		{[]float64{0, 0}, false},
	} {
		if got := onSimplex(c.w); got != c.want {
			t.Errorf("%v: %v", c.w, got)
		}
	}
}
