package ldlf

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
)

// leafRound is one iteration of Eq. 12 over all rows, by the kernel and update.
func (fc *forestCase) leafRound(t testing.TB, update func(q []float32, sums []float64, labels int)) {
	_, d := fc.p.data(1, false, dataset.Split{})
	k := *fc.k
	k.draws = all{}
	var dst algorithms.Partial
	dst.Reset(algorithms.Shape{F64: leafAt + fc.z.q()})
	u := algorithms.Unit{Of: 1, Op: opLeaves, Roles: dataset.Train, Steps: [2]uint64{0, 2}}
	if err := k.Run(&dst, u, d, fc.vars(), nil, k.NewScratch()); err != nil {
		t.Fatal(err)
	}
	update(fc.q, dst.F64[leafAt:], fc.z.labels)
}

// neverRises iterates Eq. 12 and reports a leaf that is no distribution, or an
// iteration that raised the loss of a tree by more than float32 rounding.
func (fc *forestCase) neverRises(t testing.TB, iterations int, update func(q []float32, sums []float64, labels int)) error {
	xs, ds := floats(fc.p.x, fc.p.features), floats(fc.p.d, fc.p.labels)
	before := newReference(fc.z, fc.phi, fc.theta, fc.q).loss(xs, ds)
	for i := range iterations {
		fc.leafRound(t, update)
		for l := 0; l < len(fc.q); l += fc.z.labels {
			sum := 0.0
			for _, v := range fc.q[l : l+fc.z.labels] {
				sum += float64(v)
			}
			if !(abs(sum-1) < 1e-6) {
				return fmt.Errorf("iteration %d: leaf %d sums to %v", i, l/fc.z.labels, sum)
			}
		}
		after := newReference(fc.z, fc.phi, fc.theta, fc.q).loss(xs, ds)
		if !(after <= before+1e-6) {
			return fmt.Errorf("iteration %d raises the loss from %v to %v", i, before, after)
		}
		before = after
	}
	return nil
}

// TestLeafUpdateNeverRaisesLoss is section 3.2.2's guarantee.
func TestLeafUpdateNeverRaisesLoss(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		if err := drawCase(t).neverRises(outer, 6, updateLeaves); err != nil {
			t.Fatal(err)
		}
	})
}

// TestLeafCheckCatches breaks Eq. 12 on purpose: the check above must see it.
func TestLeafCheckCatches(t *testing.T) {
	broken := map[string]func(q float32, sum float64, leaf []float32, sums []float64) float64{
		"normalised by T": func(q float32, sum float64, _ []float32, sums []float64) float64 {
			return float64(q) * sum / total(sums)
		},
		"not normalised": func(q float32, sum float64, _ []float32, _ []float64) float64 { return float64(q) * sum },
		"without q":      func(_ float32, sum float64, _ []float32, sums []float64) float64 { return sum / total(sums) },
		"inverted":       inverted,
		"overshooting":   overshoot,
	}
	for name, f := range broken {
		fc := newCase(smallConfig(), makeProblem(6, 6, 4, 3, 1), 6, 1)
		err := fc.neverRises(t, 10, func(q []float32, sums []float64, labels int) { eachLeaf(q, sums, labels, f) })
		if err == nil {
			t.Errorf("%s: the check passes a broken update", name)
		}
	}
	fc := newCase(smallConfig(), makeProblem(6, 6, 4, 3, 1), 6, 1)
	if err := fc.neverRises(t, 10, updateLeaves); err != nil {
		t.Errorf("unbroken: %v", err)
	}
}

func eachLeaf(q []float32, sums []float64, labels int, f func(float32, float64, []float32, []float64) float64) {
	for l := 0; l < len(q); l += labels {
		old := append([]float32{}, q[l:l+labels]...)
		for c := range labels {
			q[l+c] = float32(f(old[c], sums[l+c], old, sums[l:l+labels]))
		}
	}
}

func total(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum
}

// inverted has the sign of Eq. 12's step in log q turned round.
func inverted(q float32, sum float64, leaf []float32, sums []float64) float64 {
	all := 0.0
	for c, x := range leaf {
		all += float64(x) / sums[c]
	}
	return float64(q) / sum / all
}

// overshoot takes a step of Eq. 12 ten times too long.
func overshoot(q float32, sum float64, leaf []float32, sums []float64) float64 {
	all := 0.0
	for c, x := range leaf {
		all += float64(x) * power(sums[c], 10)
	}
	return float64(q) * power(sum, 10) / all
}

// TestUnreachedLeafKeepsItsDistribution: no 0/0 where nothing arrives.
func TestUnreachedLeafKeepsItsDistribution(t *testing.T) {
	q := []float32{0.25, 0.75, 0.5, 0.5, 0, 1}
	updateLeaves(q, []float64{0, 0, 3, 1, 5, 0}, 2)
	want := []float32{0.25, 0.75, 0.75, 0.25, 0, 1}
	for i := range want {
		if q[i] != want[i] {
			t.Fatalf("q is %v, want %v", q, want)
		}
	}
}

// TestKeptRouting: an iteration with kept routing probabilities gives the bits of
// one that computes them again.
func TestKeptRouting(t *testing.T) {
	c := smallConfig()
	p := makeProblem(9, 150, 6, 3, 1)
	for _, scaling := range scalings {
		c.Scaling = scaling
		var digests []string
		for _, limit := range []int{engine.KeptLimit, 2000, 0} {
			j := jobOf(c, 3)
			m, d := p.data(2, false, j.Split)
			tr, k := start(t, j, m)
			x, memory := engine.NewLocal(k, d, 1, nil), engine.NewKeptMemory(limit)
			x.Share(memory)
			err := engine.Drive(t.Context(), tr, 0, x, func(uint64, algorithms.Trainer) error {
				if used := memory.Used(); used > limit {
					t.Errorf("%d bytes are kept of at most %d", used, limit)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			digests = append(digests, digest(modelOf(t, tr)))
		}
		if digests[0] != digests[1] || digests[0] != digests[2] {
			t.Errorf("scaling %s: digests %v", scaling, digests)
		}
	}
}
