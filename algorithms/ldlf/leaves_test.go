package ldlf

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/num"
)

// leafRound is one iteration of Eq. 12 over all rows, by the kernel and update.
func (fc *forestCase) leafRound(t testing.TB, update func(q []float32, sums []float64, labels int)) {
	_, d := fc.p.data(1, false, dataset.Split{})
	k := *fc.k
	k.descent.Draws = all{}
	var dst round.Partial
	dst.Reset(round.Shape{F64: leafAt + fc.z.q()})
	u := round.Task{Of: 1, Op: opLeaves, Roles: dataset.Train, Steps: [2]uint64{0, 2}}
	if err := k.Run(&dst, u, d, fc.vars(), nil, k.NewScratch()); err != nil {
		t.Fatal(err)
	}
	update(fc.q, dst.F64[leafAt:], fc.z.labels)
}

// neverRises iterates Eq. 12 and reports a leaf that is no distribution, or an
// iteration that raised the loss of a tree by more than float32 rounding.
func (fc *forestCase) neverRises(t testing.TB, iterations int, update func(q []float32, sums []float64,
	labels int)) error {
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
		all += float64(x) * math.Pow(sums[c], 10)
	}
	return float64(q) * math.Pow(sum, 10) / all
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

// uneven is a sampler that draws rows of even numbers twice in three steps, of odd ones
// once, and some never.
type uneven struct{}

func (uneven) Draw(dst []uint32, _ *round.Task, n int, step uint64) []uint32 {
	for i := range n {
		if (uint64(i)+step)%2 == 0 && i%7 != 5 {
			dst = append(dst, uint32(i))
		}
	}
	return dst
}

// rowByRow is leafSums one row after the other: its slow twin.
func (fc *forestCase) rowByRow(d *dataset.Data, u *round.Task) []float64 {
	k, s := fc.k, fc.k.NewScratch().(*scratch)
	refs := u.Rows(d)
	var w gradient.Window
	w.Count(uneven{}, u, len(refs))
	dst := make([]float64, leafAt+k.q())
	s.Values.Read(fc.vars())
	v := &s.Values
	q, _ := qOf(v)
	for i, row := range gradient.Gather(nil, w.Rows, refs, d) {
		k.descent.Function.Predict(s.F, []gradient.Sample{row}, &v.Weights, s.Space)
		num.SigmoidPairs(s.s, s.t, s.F[:k.outputs])
		dst[0]++
		dst[1] += float64(w.Weights[i])
		for tree := range k.trees {
			reach(s.node, s.s, s.t, k.treePhi(k.phi, tree))
			p := s.node[k.splits:]
			predict(s.g, p, chunk(q, tree, k.treeQ()))
			dst[2] += float64(float64(w.Weights[i]) * ratios(s.r, row.D, s.g, w.Weights[i], s.terms))
			num.AddOuter64(chunk(dst[leafAt:], tree, k.treeQ()), p, s.r)
		}
	}
	return dst
}

// spoil makes exact zeros, subnormal values and a class of which no leaf has anything,
// so that g is at its floor.
func (fc *forestCase) spoil() {
	for i := range fc.q {
		switch {
		case i%fc.z.labels == 2:
			fc.q[i] = 0
		case i%11 == 3:
			fc.q[i] = 0
		case i%13 == 5:
			fc.q[i] = 0x1p-140
		}
	}
	for i := range fc.p.d {
		if i%5 == 1 {
			fc.p.d[i] = 0
		}
	}
}

// TestLeafSums holds the blocked sums against the rows one after the other, bit for bit,
// with derived routing and without, in one lane and in several, with the K-L and without.
func TestLeafSums(t *testing.T) {
	testkit.WithoutRace(t)
	c := smallConfig()
	c.Trees = 2
	check := func(depth, labels, rows int, deviation float64) {
		c.Depth, c.Outputs = depth, splitNodes(depth)+1
		fc := newCase(c, makeProblem(uint64(labels), rows, 3, labels, 1), 7, deviation)
		fc.spoil()
		_, d := fc.p.data(1, false, dataset.Split{})
		fc.k.descent.Draws = uneven{}
		u := round.Task{Of: 1, Op: opLeaves, Roles: dataset.Train, Steps: [2]uint64{0, 3}, DerivedVersion: 1}
		want := fc.rowByRow(d, &u)
		s := fc.k.NewScratch()
		derived, err := fc.k.Derive(u, d, fc.vars(), s)
		if err != nil || derived == nil {
			t.Fatalf("routing %v, error %v", derived, err)
		}
		for name, sums := range map[string]func(dst *round.Partial) error{
			"derived":     func(dst *round.Partial) error { return fc.k.Run(dst, u, d, fc.vars(), derived, s) },
			"not derived": func(dst *round.Partial) error { return fc.k.Run(dst, u, d, fc.vars(), nil, s) },
			"shared": func(dst *round.Partial) error {
				fc.sharedTwin(d, u, dst.F64, len(dst.F64) == len(want))
				return nil
			},
		} {
			for _, more := range []int{0, 1} {
				var dst round.Partial
				dst.Reset(round.Shape{F64: len(want) + more})
				if err := sums(&dst); err != nil {
					t.Fatal(err)
				}
				for i, x := range dst.F64 {
					y := 0.0
					if i < len(want) && (more == 0 || i != 2) {
						y = want[i]
					}
					if math.Float64bits(x) != math.Float64bits(y) {
						t.Fatalf("depth %d, %d labels, %d rows, %s, %d more: value %d is %v, want %v", depth, labels, rows, name,
							more, i, x, y)
					}
				}
			}
		}
	}
	for _, labels := range []int{1, 7, 8, 9, 17, 64, 65} {
		for _, rows := range []int{1, 31, 33, 40, 64, 65, 160} {
			check(5, labels, rows, 1)
		}
	}
	for depth := 2; depth <= 10; depth++ {
		for rows := 31; rows <= 65; rows += 1 + depth {
			check(depth, 5, rows, 1)
		}
		check(depth, 3, 50, 60) // most probabilities are exactly 0, or subnormal
	}
}

// TestLossOfTheLastIteration: the loss after a leaf update is that of its last iteration,
// the first one of all tells one too, and none between changes it.
func TestLossOfTheLastIteration(t *testing.T) {
	testkit.WithoutRace(t)
	p := makeProblem(9, 150, 6, 3, 1)
	for name, c := range variants() {
		j := jobOf(c, 3)
		m, d := p.data(1, false, j.Split)
		tr, k := start(t, j, m)
		s := k.NewScratch()
		for tr.Phase != gradient.PhaseDone {
			before, phase, last := tr.Loss, tr.Phase, tr.iteration+1 == uint64(c.LeafIterations)
			first := tr.Samples == 0
			r, err := tr.Next()
			if err != nil {
				t.Fatal(err)
			}
			var sum round.Partial
			sum.Reset(r.Reduce().Shape)
			u := round.Task{Of: 1, Op: r.Op, Roles: r.Roles, Steps: r.Reduce().Steps}
			if err := k.Run(&sum, u, d, r.Vars, nil, s); err != nil {
				t.Fatal(err)
			}
			want := before
			if phase == gradient.PhaseOwn && (last || first) {
				full := round.Partial{}
				full.Reset(round.Shape{F64: leafAt + tr.size.q()})
				if err := k.Run(&full, u, d, r.Vars, nil, s); err != nil {
					t.Fatal(err)
				}
				want = full.F64[2] / (full.F64[1] * float64(tr.size.trees))
			}
			if err := tr.Fold(&round.Result{Sum: &sum}); err != nil {
				t.Fatal(err)
			}
			if phase == gradient.PhaseOwn && (tr.Loss != want || want == 0) {
				t.Fatalf("%s, step %d: the loss is %v, want %v (last iteration: %v)", name, tr.Step, tr.Loss, want, last)
			}
		}
	}
}

// TestRoutingIsUsedAgain: its memory serves another unit once nobody holds it, no sooner.
func TestRoutingIsUsedAgain(t *testing.T) {
	fc := newCase(smallConfig(), makeProblem(6, 90, 4, 3, 1), 6, 1)
	_, d := fc.p.data(1, false, dataset.Split{})
	fc.k.descent.Draws = all{}
	s := fc.k.NewScratch()
	derive := func() *routing {
		u := round.Task{Of: 1, Op: opLeaves, Roles: dataset.Train, Steps: [2]uint64{0, 2}, DerivedVersion: 1}
		r, err := fc.k.Derive(u, d, fc.vars(), s)
		if err != nil {
			t.Fatal(err)
		}
		return r.(*routing)
	}
	first := derive()
	first.Retain()
	first.Release()
	second := derive()
	if &second.p[0] == &first.p[0] {
		t.Fatal("memory that is held serves another unit")
	}
	first.Release()
	if third := derive(); &third.p[0] != &first.p[0] {
		t.Error("memory that nobody holds is not used again")
	}
}

// TestDerivedRouting: an iteration with derived routing probabilities gives the bits of
// one that computes them again.
func TestDerivedRouting(t *testing.T) {
	c := smallConfig()
	p := makeProblem(9, 150, 6, 3, 1)
	for _, scaling := range scaling.Kinds {
		c.Scaling = scaling
		var digests []string
		for _, limit := range []int{engine.DerivedLimit, 2000, 0} {
			j := jobOf(c, 3)
			m, d := p.data(2, false, j.Split)
			tr, k := start(t, j, m)
			x, memory := engine.NewLocal(k, d, 1, nil), engine.NewDerivedMemory(limit)
			x.UseMemory(memory)
			err := engine.Drive(t.Context(), tr, 0, x, func(uint64, round.Trainer) error {
				if used := memory.Used(); used > limit {
					t.Errorf("%d bytes are cached of at most %d", used, limit)
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
