package boost_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/local"
)

// TestTenFolds: over the ten folds in shared/folds (of Movie the first one alone), K-L divided by the
// mean predictor's is at most what independent implementations have, and a margin.
func TestTenFolds(t *testing.T) {
	for _, c := range []struct {
		name  string
		ratio float64
		one   bool // the first fold alone
		large bool
	}{{"SJAFFE", .79, true, false}, {"SJAFFE", .79, false, true},
		{"Yeast_spo5", .98, false, true}, {"Movie", .70, true, true}} {
		for _, a := range both {
			t.Run(c.name+"/"+a.Name(), func(t *testing.T) {
				if c.large {
					testkit.Large(t)
				}
				model, mean := foldLosses(t, a, c.name, c.one)
				t.Logf("K-L %.4f, %.4f of the mean (ratio %.4f, at most %.2f)", model, mean, model/mean, c.ratio)
				if !(model/mean <= c.ratio) {
					t.Errorf("K-L is %.4f of the mean predictor's, want at most %.2f", model/mean, c.ratio)
				}
			})
		}
	}
}

// foldLosses returns the K-L of an algorithm with default settings, and that of the mean predictor.
func foldLosses(t *testing.T, a algorithms.Algorithm, name string, one bool) (model, mean float64) {
	t.Helper()
	m, shards := datatest.Shared(t, name+".mat")
	assigned, folds, err := read.FoldsFile(testkit.Shared(t, "folds/"+name+".csv"), m.Rows)
	if err != nil {
		t.Fatal(err)
	}
	j := jobOf(t, a, m, nil, dataset.Split{Seed: 1, Folds: folds, Assigned: "folds of the test"})
	if j.Folds = folds; one {
		j.Folds = 0
	}
	o, err := local.Run(t.Context(), j, &local.Data{Manifest: m, Shards: shards, Assigned: assigned}, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return kl(t, o.Measures), kl(t, o.MeanPredictor)
}

func kl(t *testing.T, r measures.Report) float64 {
	t.Helper()
	s, ok := r.Get("kl")
	if !ok {
		t.Fatal("the K-L is not measured")
	}
	return s.Mean
}
