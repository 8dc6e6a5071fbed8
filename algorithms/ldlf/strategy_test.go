package ldlf

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// rotateConfig is a forest whose trees learn in turn and share output units.
func rotateConfig() *Config {
	c := smallConfig()
	c.Strategy, c.ResetMomentum, c.LeafBatches, c.Steps = strategyRotate, true, 3, 36
	return c
}

// randomConfig is a forest each of whose mini-batches trains a tree that is drawn, on units of its own.
func randomConfig() *Config {
	c := smallConfig()
	c.Strategy, c.OwnUnits, c.Outputs, c.Optimizer, c.LearningRate, c.LeafFirst = strategyRandom, true, 3*8,
		optimizerAdam, 0.02, true
	return c
}

// TestTurns: trees come in turn, or each about as often, and leaf updates are of the tree that learnt.
func TestTurns(t *testing.T) {
	c := rotateConfig()
	o := newTurns(c, 1)
	var order []int
	for step := range uint64(12) {
		first, end := o.at(step)
		if end != first+1 {
			t.Fatalf("step %d trains the trees %d to %d", step, first, end)
		}
		order = append(order, first)
	}
	if !slices.Equal(order, []int{0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 0, 0}) {
		t.Errorf("rotate: %v", order)
	}
	for steps, want := range map[uint64][2]int{0: {0, 3}, 3: {0, 1}, 6: {1, 2}, 12: {0, 1}} {
		if first, end := o.updated(steps); [2]int{first, end} != want {
			t.Errorf("after %d steps the trees %d to %d are updated, want %v", steps, first, end, want)
		}
	}
	o = newTurns(randomConfig(), 1)
	count := make([]int, 3)
	for step := range uint64(3000) {
		first, _ := o.at(step)
		count[first]++
	}
	if slices.Min(count) < 900 {
		t.Errorf("random-tree: %v", count)
	}
}

// TestIdleUnits: while a tree learns, parameters and moments of units that only others read keep
// their bytes, and so do the others' leaves; those that it reads move.
func TestIdleUnits(t *testing.T) {
	p := makeProblem(8, 200, 5, 3, 1)
	for name, c := range map[string]*Config{"rotate": rotateConfig(), "random tree": randomConfig()} {
		c.Momentum, c.WeightDecay = 0.9, 1e-3
		m, d := p.data(4, false, dataset.Split{})
		tr, k := start(t, jobOf(c, 3), m)
		theta, first, q := slices.Clone(tr.Theta()), slices.Clone(tr.Optimizer.First), slices.Clone(tr.q.Data)
		step, moved := tr.Step, 0
		drive(t, tr, k, d, 1, func(tr *trainer) {
			if tr.Step == step+1 {
				tree, _ := tr.turn.at(step)
				reads := tr.size.treePhi(tr.phi, tree)
				for i, x := range tr.Theta() {
					used := slices.Contains(reads, uint32(i%c.Outputs))
					if !used && (x != theta[i] || tr.Optimizer.First[i] != first[i] && !c.ResetMomentum) {
						t.Fatalf("%s: parameter %d moved in step %d, which trains tree %d", name, i, step, tree)
					}
					if used && x != theta[i] {
						moved++
					}
				}
			}
			if c.Strategy == strategyRotate {
				a, b := tr.turn.updated(step)
				for i, x := range tr.q.Data {
					if tree := i / tr.size.treeQ(); x != q[i] && (tree < a || tree >= b) {
						t.Fatalf("%s: a leaf of tree %d changed after step %d", name, tree, step)
					}
				}
			}
			step = tr.Step
			copy(theta, tr.Theta())
			copy(first, tr.Optimizer.First)
			copy(q, tr.q.Data)
		})
		if moved == 0 {
			t.Errorf("%s: nothing moved", name)
		}
	}
}

// TestTreeGradient: the gradient of a mini-batch that trains a tree is that of a forest of this tree.
func TestTreeGradient(t *testing.T) {
	p := makeProblem(8, 40, 5, 3, 1)
	c := rotateConfig()
	fc := newCase(c, p, 4, 1)
	m, d := p.data(1, false, dataset.Split{})
	run := func(k *kernel, q []float32, step uint64) []float32 {
		k.descent.Draws = all{}
		shape := k.descent.Function.GradientShape()
		shape.F64 += gradient.GradientAt
		var dst round.Partial
		dst.Reset(shape)
		u := round.Task{Of: 1, Op: gradient.OpStep, Roles: 1, Steps: [2]uint64{step, step + 1}}
		other := *fc
		other.q = q
		if err := k.Run(&dst, u, d, other.vars(), nil, k.NewScratch()); err != nil {
			t.Fatal(err)
		}
		return dst.F32
	}
	for tree := range 3 {
		alone := smallConfig()
		alone.Trees = 1
		one := newKernel(alone, 4, m)
		copy(one.phi, fc.z.treePhi(fc.phi, tree))
		got, want := run(fc.k, fc.q, uint64(3*tree+1)), run(one, chunk(fc.q, tree, fc.z.treeQ()), 0)
		if !slices.Equal(got, want) {
			t.Errorf("tree %d: another gradient than alone", tree)
		}
	}
}

// TestStrategyErrors: settings that contradict one another are refused.
func TestStrategyErrors(t *testing.T) {
	for _, c := range []struct {
		given      param.Values
		name, text string
	}{
		{param.Values{"reset_momentum": true}, "reset_momentum", "needs strategy rotate"},
		{param.Values{"own_units": true, "outputs": int64(64)}, "outputs", "must be 320 with own_units"},
		{param.Values{"own_units": true, "trees": int64(1000), "depth": int64(20)}, "own_units",
			"needs 524288000 outputs, which is 1000 trees × 2^(depth-1), but at most 1048576 are possible"},
		{param.Values{"strategy": "alternate"}, "strategy", "joint, rotate or random-tree"},
	} {
		_, err := New().Resolve(c.given, yeast)
		var wrong *param.Error
		if !errors.As(err, &wrong) || wrong.Name != c.name || !strings.Contains(wrong.Reason.String(), c.text) {
			t.Errorf("%v: error %v, want %s: %s", c.given, err, c.name, c.text)
		}
	}
	if c := resolve(t, param.Values{"strategy": "rotate", "own_units": true, "trees": int64(3)},
		yeast); !c.ResetMomentum || c.Outputs != 192 {
		t.Errorf("%+v", c)
	}
}
