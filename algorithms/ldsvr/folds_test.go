package ldsvr

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// The objective at its minimum and the mean K-L of the test rows, of each fold of SJAFFE with the default settings,
// by SciPy (L-BFGS-B from zero, on an eigendecomposition of the kernel matrix).
var (
	leastObjectives = []float64{82.403140, 82.224691, 81.333541, 85.043588, 83.040804, 82.086328, 81.898792, 84.086092,
		84.190879, 84.006466}
	testDivergences = []float64{.045431, .048997, .046966, .035647, .044455, .052291, .051532, .042740, .039851, .041799}
)

// TestFolds: on each fold of SJAFFE the fit is the objective's minimum and predicts what the minimum of an
// independent optimiser does; over the folds K-L is at most .64 of the mean predictor's.
func TestFolds(t *testing.T) {
	m, shards := datatest.Shared(t, "SJAFFE.mat")
	assigned, folds, err := read.FoldsFile(testkit.Shared(t, "folds/SJAFFE.csv"), m.Rows)
	if err != nil {
		t.Fatal(err)
	}
	whole, wholeMean := 0.0, 0.0
	for fold := range folds {
		d := datatest.Data(t, m, shards, dataset.Split{Folds: folds, Fold: fold, Assigned: "folds of the test"}, assigned)
		model := trained(t, d, nil, 1)
		y := rows.Gather(unitOf(dataset.Train), d, &rows.Wanted{Labels: true})
		x := rows.Gather(unitOf(dataset.Test), d, &rows.Wanted{Labels: true})
		if got, want := slowObjective(model, y), leastObjectives[fold]; math.Abs(got-want) > 1e-6 {
			t.Errorf("fold %d: objective %.6f, of the independent optimiser %.6f", fold, got, want)
		}
		kl, mean := testLosses(model, x, y)
		if math.Abs(kl-testDivergences[fold]) > 2e-5 {
			t.Errorf("fold %d: K-L %.6f, of the independent optimiser %.6f", fold, kl, testDivergences[fold])
		}
		whole, wholeMean = whole+kl/float64(folds), wholeMean+mean/float64(folds)
	}
	t.Logf("K-L %.5f, %.3f of the mean predictor's", whole, whole/wholeMean)
	if whole > .64*wholeMean {
		t.Errorf("K-L is %.3f of the mean predictor's, want at most .64", whole/wholeMean)
	}
}

func unitOf(roles dataset.Roles) round.Task {
	r := round.Round{Tasks: 1, Scope: round.Whole, Roles: roles, How: &round.Reduce{}}
	return r.Task(0)
}

// slowObjective returns ½ Σ ‖w_c‖² + C Σ L(u) over training rows with the default settings, by plain sums.
func slowObjective(m *model, r *dataset.Rows) (sum float64) {
	c := settings.Default()
	for i := range r.N {
		norm := 0.0
		for l, f := range slowOutputs(m, r, i) {
			sum += m.beta[i*r.Labels+l] * (f - m.bias[l]) / 2
			p := math.Min(math.Max(float64(r.Label(i)[l]), c.Clamp), 1-c.Clamp)
			e := math.Log(p/(1-p)) - f
			norm += e * e
		}
		if over := math.Sqrt(norm) - c.Epsilon; over > 0 {
			sum += c.Cost * over * over
		}
	}
	return sum
}

// testLosses returns the mean K-L of rows x, of the model and of the mean label distribution of rows y.
func testLosses(m *model, x, y *dataset.Rows) (kl, mean float64) {
	average := make([]float64, y.Labels)
	for i := range y.N {
		for l, d := range y.Label(i) {
			average[l] += float64(d) / float64(y.N)
		}
	}
	p := make([]float64, x.Labels)
	for i := range x.N {
		sum := 0.0
		for l, f := range slowOutputs(m, x, i) {
			p[l] = 1 / (1 + math.Exp(-f))
			sum += p[l]
		}
		for l, d := range x.Label(i) {
			if d > 0 {
				kl += float64(d) * math.Log(float64(d)*sum/p[l]) / float64(x.N)
				mean += float64(d) * math.Log(float64(d)/average[l]) / float64(x.N)
			}
		}
	}
	return kl, mean
}
