package ldlf

import (
	"math"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// TestLanes: threads change no bits.
func TestLanes(t *testing.T) {
	p := makeProblem(12, 300, 6, 3, 0.5)
	for name, c := range variants() {
		c.BatchSize = 128 // four units
		for _, sparse := range []bool{false, true} {
			if a, b := digest(train(t, c, p, 8, sparse, 1)), digest(train(t, c, p, 8, sparse, 3)); a != b {
				t.Errorf("%s (sparse %v): digests %s and %s", name, sparse, a, b)
			}
		}
	}
}

// TestGoldenDigests pins the bits of small jobs: a change here is a change of
// algorithms.Numerics.
func TestGoldenDigests(t *testing.T) {
	want := map[string]string{}
	p := makeProblem(4, 200, 7, 3, 0.5)
	for name, c := range variants() {
		for storage, sparse := range map[string]bool{"dense": false, "sparse": true} {
			got := digest(train(t, c, p, 4, sparse, 1))
			if got != want[name+" "+storage] {
				t.Errorf("%q: %q,", name+" "+storage, got)
			}
		}
	}
}

// TestStorage: dense and sparse storage of the same data give the same forest, up
// to rounding, whatever the scaling.
func TestStorage(t *testing.T) {
	p := makeProblem(7, 240, 9, 4, 0.4)
	for _, scaling := range scalings {
		for _, bias := range []bool{true, false} {
			c := smallConfig()
			c.Scaling, c.Bias, c.LearningRate, c.Steps = scaling, bias, 0.5, 40
			dense, sparse := train(t, c, p, 4, false, 1), train(t, c, p, 4, true, 1)
			_, d := p.data(4, false, dataset.Split{})
			_, s := p.data(4, true, dataset.Split{})
			if e := maxDifference(predictAll(dense, d), predictAll(sparse, s)); !(e <= 1e-5) {
				t.Errorf("scaling %s, bias %v: predictions differ by %.2g", scaling, bias, e)
			}
			if e := maxDifference(predictAll(dense, d), predictAll(dense, s)); !(e <= 1e-5) {
				t.Errorf("scaling %s, bias %v: one model predicts otherwise on sparse rows, by %.2g", scaling, bias, e)
			}
		}
	}
}

// TestLearns: a forest explains most of what the mean does not, with both
// optimisers.
func TestLearns(t *testing.T) {
	p := makeProblem(1, 600, 5, 3, 1)
	for name, change := range map[string]func(*Config){
		"sgd":  func(c *Config) { c.Scaling = scalingStandard },
		"adam": func(c *Config) { c.Optimizer, c.LearningRate = optimizerAdam, 0.02 },
	} {
		c := smallConfig()
		c.Outputs, c.LeafBatches, c.Steps, c.LearningRateStep, c.ValidationFraction, c.Patience = 15, 20, 300, 0, 0.1, 20
		change(c)
		m := train(t, c, p, 8, false, 1)
		_, d := p.data(8, false, dataset.Split{})
		got, mean := meanDivergence(predictAll(m, d), d, p.labels), meanDivergence(p.mean(), d, p.labels)
		t.Logf("%s: K-L %.5f, of the mean %.5f", name, got, mean)
		if got > mean/5 {
			t.Errorf("%s: K-L %.5f, of the mean %.5f", name, got, mean)
		}
	}
}

// mean predicts the mean label distribution for every row.
func (p *problem) mean() []float32 {
	out := make([]float32, len(p.d))
	for c := range p.labels {
		sum := 0.0
		for i := range p.n {
			sum += float64(p.d[i*p.labels+c])
		}
		for i := range p.n {
			out[i*p.labels+c] = float32(sum / float64(p.n))
		}
	}
	return out
}

// TestStopsEarly: patience counts validations, the best state is the model, and
// --steps does not disable it.
func TestStopsEarly(t *testing.T) {
	c := variants()["early"]
	p := makeProblem(4, 200, 7, 3, 0.5)
	j := jobOf(c, 3)
	m, d := p.data(4, false, j.Split)
	tr, k := start(t, j, m)
	var losses []float64
	var validated bool
	drive(t, tr, k, d, 1, func(tr *trainer) {
		if validated {
			losses = append(losses, validationLoss(tr, d))
		}
		validated = tr.phase == phaseValidate
	})
	best, at := math.Inf(1), 0
	for i, loss := range losses {
		if loss < best {
			best, at = loss, i
		}
	}
	if tr.best.loss != best || len(losses) != at+1+c.Patience || tr.step >= uint64(c.Steps) {
		t.Errorf("stopped at step %d after validations %v; best %v kept", tr.step, losses, tr.best.loss)
	}
	if tr.best.step != uint64((at+1)*c.LeafBatches) {
		t.Errorf("the best state is of step %d, want %d", tr.best.step, (at+1)*c.LeafBatches)
	}
	if got := modelOf(t, tr); &got.q[0] != &tr.best.q[0] {
		t.Error("the model is not the best state")
	}
}

// validationLoss computes again what the round just folded found.
func validationLoss(tr *trainer, d *dataset.Data) float64 {
	m := newModel(tr.size, tr.cfg.Scaling, tr.input, tr.phi, tr.theta, tr.q)
	s := m.NewScratch()
	out := make([]float32, m.labels)
	sum, rows := 0.0, 0.0
	for i := range tr.shards {
		part := 0.0
		for _, ref := range d.Select(i, i+1, dataset.Validation) {
			m.Predict(out, []dataset.RowRef{ref}, func(i uint32) *dataset.Rows { return d.Shard(int(i)) }, s)
			part += divergence(d.Shard(i).Label(int(ref.Pos)), out)
			rows++
		}
		sum += part
	}
	return sum / rows
}

// TestIncompleteSet: the last steps, if fewer than leaf_batches, get no leaf update.
func TestIncompleteSet(t *testing.T) {
	c := smallConfig() // 24 steps, leaf updates at 5, 10, 15, 20
	p := makeProblem(4, 200, 7, 3, 1)
	m, d := p.data(4, false, dataset.Split{})
	tr, k := start(t, jobOf(c, 3), m)
	drive(t, tr, k, d, 1, func(*trainer) {})
	if tr.qVersion != 4*uint64(c.LeafIterations) || tr.step != 24 || tr.thetaVersion != 24 {
		t.Errorf("q version %d, step %d, Θ version %d", tr.qVersion, tr.step, tr.thetaVersion)
	}
	if tr.updates != 19 {
		t.Errorf("%d updates of Θ, want 19: the first 5 steps have no gradient", tr.updates)
	}
}

// TestUnderflow: at depth 20 with outputs of deviation 20 nearly all leaf
// probabilities are exactly 0; nothing becomes NaN and every leaf stays a
// distribution.
func TestUnderflow(t *testing.T) {
	c := smallConfig()
	c.Trees, c.Depth, c.Outputs, c.InitStd, c.LeafFirst = 1, 20, splitNodes(20), 20/math.Sqrt(3), true
	c.LeafBatches, c.LeafIterations, c.Steps, c.BatchSize = 1, 2, 2, 4
	p := makeProblem(2, 8, 3, 3, 1)
	m := train(t, c, p, 1, false, 1)
	_, d := p.data(1, false, dataset.Split{})
	if !num.Finite32(m.q) || !num.Finite32(m.weights.theta) || !num.Finite32(predictAll(m, d)) {
		t.Fatal("a value is not finite")
	}
	for l := 0; l < len(m.q); l += m.labels {
		if sum := m.q[l] + m.q[l+1] + m.q[l+2]; !(abs(float64(sum)-1) < 1e-6) {
			t.Fatalf("leaf %d sums to %v", l/m.labels, sum)
		}
	}
	s := newScratch(&m.sizes, m.f)
	m.f.forward(s.f, []sample{sampleOf(d.Shard(0), 0)}, &m.weights, s.ws)
	num.SigmoidPairs(s.s, s.t, s.f[:m.outputs])
	reach(s.node, s.s, s.t, m.treePhi(m.phi, 0))
	zero := 0
	for _, v := range s.node[m.splits:] {
		if v == 0 {
			zero++
		}
	}
	if share := float64(zero) / float64(m.leaves); share < 0.5 {
		t.Errorf("only %.2f of the leaf probabilities are 0: the test tests nothing", share)
	}
}

// TestNoTrainingRows: a split that leaves none is an error, not a NaN.
func TestNoTrainingRows(t *testing.T) {
	for name, c := range variants() {
		p := makeProblem(4, 20, 3, 3, 1)
		j := jobOf(c, 3)
		m, _ := p.data(2, false, j.Split)
		tr, _ := start(t, j, m)
		r, err := tr.Next()
		if err != nil {
			t.Fatal(err)
		}
		var empty algorithms.Partial
		empty.Reset(r.Shape)
		if err := tr.Fold(&algorithms.Result{Sum: &empty}); err == nil || !strings.Contains(err.Error(), "no training rows") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestDiverges: a Θ that leaves float32 stops the job with a line that says why.
func TestDiverges(t *testing.T) {
	c := smallConfig()
	c.LearningRate, c.WeightDecay, c.LearningRateStep, c.Steps = 1e6, 1, 0, 100
	p := makeProblem(4, 100, 3, 3, 1)
	m, d := p.data(2, false, dataset.Split{})
	tr, k := start(t, jobOf(c, 3), m)
	s := k.NewScratch()
	for {
		r, err := tr.Next()
		if err != nil {
			t.Fatal(err)
		}
		if r.Done {
			t.Fatal("the job ended")
		}
		var sum algorithms.Partial
		sum.Reset(r.Shape)
		if err := k.Run(&sum, algorithms.Unit{Of: 1, Op: r.Op, Roles: r.Roles, Steps: r.Steps}, d, r.Vars, nil, s); err != nil {
			t.Fatal(err)
		}
		if err := tr.Fold(&algorithms.Result{Sum: &sum}); err != nil {
			if !strings.Contains(err.Error(), "learning_rate") {
				t.Errorf("error %v", err)
			}
			return
		}
	}
}
