package ldlf

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
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
	want := map[string]string{
		"standard dense":  "21244e9bc8b11463e08f0461aa13efc6f7a7b9498558595e10932181f0b529dc",
		"standard sparse": "3b32e40a2ced40c3f741c37dc3f96daec87b22a696940899294bc7c070f0ba87",
		"minmax dense":    "56580261cef84502ea4c0ccff71e4b33e452c7301bc98618be5a32d74151ab54",
		"minmax sparse":   "7ad22892878d39c5b7361dff0bb5234eca6c2fd095f19a167d4b4fc1f4deb980",
		"early dense":     "991e4cdb5e7ce73750f0780d118b3bd35f698a6c16c9dc2ef8ae33194ebe753c",
		"early sparse":    "42fa403e832d77ba4a71d5beba0d4ee0c74a1bbb4a848ae3d5daacc4c93f141c",
		"plain dense":     "cfcd41b3f1e10baca3a21912b3069e2abb4bd0df95cab8474bf8ac6c33579e9c",
		"plain sparse":    "cfcd41b3f1e10baca3a21912b3069e2abb4bd0df95cab8474bf8ac6c33579e9c",
		"refit dense":     "5a099ede9a1ef268d5f2bcc7a6f4ddc24f96af2ad9d0f501a70a36a49e8346d7",
		"refit sparse":    "0291d8a4f9edf291091f05bfa6003b24325e776403199ae907e03be32565f39d",

		"shrink dense":  "3ba7fff69a529e31031a6b57711d1763f7928b7538d090a294fcecbd32ef3233",
		"shrink sparse": "b4af0cc485f104ace0c59100c3210e41b6becd197e286bf4685704726549e14b",

		"hidden layers dense":  "9d56ef34030ead6f9261f12592443962260f895c2900a7ab86de71a54ef96343",
		"hidden layers sparse": "574a4cf853e06d48887acb250b8e2d5b76616c5b89521d82568c0dfd7fcad13a",
		"convolutions dense":   "32ba4e8e2630cc1c943ac6c0f7fe33466dd83b2e0dca9c32742fdfd1bb9a9c22",
		"convolutions sparse":  "d3f97ebf05afa6c014b5abe9269e4e845d5d232ff3c807486bddecdd7d963aa5",

		"rotate dense":       "ff2ef2b87d010a21cebccb21799f3e888ca7a456855c8e3ab1a9724bede1bfb7",
		"rotate sparse":      "a4da3d163794a7220fec57745b86ada6ffea8d66efc71797d76c4a09b25b046a",
		"random tree dense":  "eb9d9d01f1f1dee74ffe7f985fe562f921fbf8a3984625906eea2f1768df685c",
		"random tree sparse": "d983a339735a8abab650e0ed96a8c1830e95b73a790b144d10cf008025c64d25",
	}
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
	for _, scaling := range scaling.Kinds {
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
	testkit.WithoutRace(t)
	p := makeProblem(1, 600, 5, 3, 1)
	for name, change := range map[string]func(*Config){
		"sgd":  func(c *Config) { c.Scaling = scaling.Standard },
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

// TestStopsEarly: the state of the least loss is the model, ties keep the earliest,
// patience counts validations since the one that last reset it, and --steps does not
// disable it.
func TestStopsEarly(t *testing.T) {
	p := makeProblem(4, 400, 7, 3, 0.5)
	for _, margin := range []float64{0, 1, 20} { // of 20 the first validation stays the reference
		c := variants()["early"]
		c.ValidationMargin, c.Patience = margin, 4
		j := jobOf(c, 3)
		m, d := p.data(4, true, j.Split)
		tr, k := start(t, j, m)
		var losses [][]float64 // of each row, for each validation
		validated := false
		drive(t, tr, k, d, 1, func(tr *trainer) {
			if validated {
				losses = append(losses, validationLosses(tr, d))
			}
			validated = tr.Phase == gradient.PhaseValidation
		})
		best, end := choose(losses, margin, c.Patience)
		// none before the first gradient step
		if len(losses) != end+1 || tr.Step >= uint64(c.Steps) || tr.Stopping.Best.Step != uint64((best+2)*c.LeafBatches) {
			t.Errorf("margin %v: best of step %d, stopped at step %d; want validations %d and %d", margin, tr.Stopping.Best.Step,
				tr.Step, best, end)
		}
		if want := total(losses[best]) / float64(len(losses[best])); abs(tr.Stopping.Best.Loss-want) > 1e-12 {
			t.Errorf("margin %v: the best loss is %v, want %v", margin, tr.Stopping.Best.Loss, want)
		}
		if got := modelOf(t, tr); &got.q[0] != &tr.Stopping.Best.Vectors[1].Data[0] {
			t.Errorf("margin %v: the model is not the best state", margin)
		}
	}
}

func moments(v []float64) (mean, deviation float64) {
	mean = total(v) / float64(len(v))
	sum := 0.0
	for _, x := range v {
		sum += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(sum / float64(len(v)))
}

// choose finds the best validation, and the one that ends the job, from the rows'
// losses.
func choose(losses [][]float64, margin float64, patience int) (best, end int) {
	reference := 0
	for i := 1; i < len(losses); i++ {
		gains := make([]float64, len(losses[i]))
		for r := range gains {
			gains[r] = losses[reference][r] - losses[i][r]
		}
		mean, deviation := moments(gains)
		if margin == 0 && total(losses[i]) < total(losses[best]) || margin > 0 &&
			mean > margin*deviation/math.Sqrt(float64(len(gains))) {
			reference = i
		}
		if total(losses[i]) < total(losses[best]) {
			best = i
		}
		if i-reference == patience {
			return best, i
		}
	}
	return best, len(losses) - 1
}

// TestNeverUntrained: however much harm the gradient steps do, the model is not the
// state from before them.
func TestNeverUntrained(t *testing.T) {
	p := makeProblem(4, 400, 7, 3, 0.5)
	other := makeProblem(5, 400, 7, 3, 0.5) // its labels have nothing to do with these features
	p.d = other.d
	for _, first := range []bool{false, true} {
		for _, margin := range []float64{0, 1} {
			c := variants()["early"]
			c.LeafFirst, c.ValidationMargin, c.LearningRate, c.WeightDecay = first, margin, 1000, 0
			j := jobOf(c, 3)
			m, d := p.data(4, false, j.Split)
			tr, k := start(t, j, m)
			drawn := slices.Clone(tr.Theta())
			drive(t, tr, k, d, 1, func(*trainer) {})
			if slices.Equal(modelOf(t, tr).weights.Theta, drawn) {
				t.Errorf("leaf_first %v, margin %v: the model's Θ is the one that was drawn", first, margin)
			}
			if tr.Stopping.Best.Step <= map[bool]uint64{false: uint64(c.LeafBatches)}[first] {
				t.Errorf("leaf_first %v, margin %v: best at step %d", first, margin, tr.Stopping.Best.Step)
			}
		}
	}
}

// TestRefit: a refit is the job on all rows that are not test rows, with as many steps
// as were best.
func TestRefit(t *testing.T) {
	p := makeProblem(4, 300, 7, 3, 0.5)
	for _, scaling := range scaling.Kinds {
		c := variants()["refit"]
		c.Scaling = scaling
		j := jobOf(c, 3)
		j.Split.TestFraction = 0.2
		m, d := p.data(4, true, j.Split)
		tr, k := start(t, j, m)
		drive(t, tr, k, d, 1, func(*trainer) {})
		end := tr
		if end.Stopping.Best.Step == 0 || end.Before <= end.Stopping.Best.Step || end.Progress().Step != end.Before+
			end.Stopping.Best.Step {
			t.Fatalf("scaling %s: best at step %d of %d, %d in all", scaling, end.Stopping.Best.Step, end.Before,
				end.Progress().Step)
		}
		alone := *c
		alone.Refit, alone.ValidationFraction, alone.Steps = false, 0, int(end.Stopping.Best.Step)
		j = jobOf(&alone, 3)
		j.Split.TestFraction = 0.2
		m, d = p.data(4, true, j.Split)
		tr, k = start(t, j, m)
		drive(t, tr, k, d, 1, func(*trainer) {})
		if got, want := digest(modelOf(t, end)), digest(modelOf(t, tr)); got != want {
			t.Errorf("scaling %s: digest %s, without validation %s", scaling, got, want)
		}
	}
}

// validationLosses computes again what the round just folded found.
func validationLosses(tr *trainer, d *dataset.Data) []float64 {
	m := tr.model(tr.Theta(), tr.q.Data)
	s := m.NewScratch()
	out := make([]float32, m.labels)
	var losses []float64
	for _, ref := range d.Select(0, len(d.Manifest.Shards), dataset.Validation) {
		shard := d.Shard(int(ref.Shard))
		m.Predict(out, []dataset.RowRef{ref}, func(uint32) *dataset.Rows { return shard }, s)
		losses = append(losses, divergence(shard.Label(int(ref.Pos)), out))
	}
	return losses
}

// TestIncompleteSet: the last steps, if fewer than leaf_batches, get no leaf update.
func TestIncompleteSet(t *testing.T) {
	c := smallConfig() // 24 steps, leaf updates at 5, 10, 15, 20
	p := makeProblem(4, 200, 7, 3, 1)
	m, d := p.data(4, false, dataset.Split{})
	tr, k := start(t, jobOf(c, 3), m)
	drive(t, tr, k, d, 1, func(*trainer) {})
	if tr.q.Version != 4*uint64(c.LeafIterations) || tr.Step != 24 || tr.Vectors[0].Version != 19 {
		t.Errorf("q version %d, step %d, Θ version %d", tr.q.Version, tr.Step, tr.Vectors[0].Version)
	}
	if tr.Optimizer.Updates != 19 {
		t.Errorf("%d updates of Θ, want 19: the first 5 steps have no gradient", tr.Optimizer.Updates)
	}
}

// TestUnderflow: at depth 20 with outputs of deviation 20 nearly all leaf
// probabilities are exactly 0; nothing becomes NaN and every leaf stays a
// distribution.
func TestUnderflow(t *testing.T) {
	testkit.WithoutRace(t)
	c := smallConfig()
	c.Trees, c.Depth, c.Outputs, c.InitStd, c.LeafFirst = 1, 20, splitNodes(20), 20/math.Sqrt(3), true
	c.LeafBatches, c.LeafIterations, c.Steps, c.BatchSize = 1, 2, 2, 4
	p := makeProblem(2, 8, 3, 3, 1)
	m := train(t, c, p, 1, false, 1)
	_, d := p.data(1, false, dataset.Split{})
	if !num.Finite32(m.q) || !num.Finite32(m.weights.Theta) || !num.Finite32(predictAll(m, d)) {
		t.Fatal("the model has a value that is not finite")
	}
	for l := 0; l < len(m.q); l += m.labels {
		if sum := m.q[l] + m.q[l+1] + m.q[l+2]; !(abs(float64(sum)-1) < 1e-6) {
			t.Fatalf("leaf %d sums to %v", l/m.labels, sum)
		}
	}
	s := newScratch(&m.sizes, m.f)
	m.f.Predict(s.F, []gradient.Sample{gradient.SampleOf(d.Shard(0), 0)}, &m.weights, s.Space)
	num.SigmoidPairs(s.s, s.t, s.F[:m.outputs])
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
		var empty round.Partial
		empty.Reset(r.Reduce().Shape)
		if err := tr.Fold(&round.Result{Sum: &empty}); err == nil ||
			!strings.Contains(err.Error(), "there are no training samples") {
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
		if r == nil {
			t.Fatal("the job ended")
		}
		var sum round.Partial
		sum.Reset(r.Reduce().Shape)
		if err := k.Run(&sum, round.Task{Of: 1, Op: r.Op, Roles: r.Roles, Steps: r.Reduce().Steps}, d, r.Vars, nil,
			s); err != nil {
			t.Fatal(err)
		}
		if err := tr.Fold(&round.Result{Sum: &sum}); err != nil {
			if !strings.Contains(err.Error(), "learning_rate") {
				t.Errorf("error %v", err)
			}
			return
		}
	}
}
