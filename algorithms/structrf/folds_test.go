package structrf_test

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/algorithms/rf"
	"github.com/coppice-ldl/coppice/algorithms/structrf"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// six are the measures of Chen et al. 2018, in the order of their tables.
var six = []string{"chebyshev", "clark", "canberra", "kl", "cosine", "intersection"}

// reproduction is a table of the paper, and what separates a right forest from a
// wrong one: the greatest K-L relative to the mean predictor's. Depth 3, five trees
// or a square root of the features each miss one of these.
type reproduction struct {
	name  string
	ratio float64
	paper [6]measures.Stat // in the order of six
	large bool             // takes seconds
}

var reproductions = []reproduction{
	{name: "Yeast_alpha", ratio: .985, paper: [6]measures.Stat{ // Table 4
		{Mean: .0133, Std: .0008}, {Mean: .2079, Std: .0134}, {Mean: .6745, Std: .0461},
		{Mean: .0054, Std: .0007}, {Mean: .9947, Std: .0007}, {Mean: .9628, Std: .0025}}, large: true},
	{name: "Yeast_spo5", ratio: .94, paper: [6]measures.Stat{ // Table 12
		{Mean: .0867, Std: .0048}, {Mean: .1751, Std: .0103}, {Mean: .2690, Std: .0154},
		{Mean: .0268, Std: .0023}, {Mean: .9763, Std: .0020}, {Mean: .9133, Std: .0048}}, large: true},
	{name: "SJAFFE", ratio: .76, paper: [6]measures.Stat{ // Table 16
		{Mean: .1047, Std: .0137}, {Mean: .3709, Std: .0399}, {Mean: .7726, Std: .0920},
		{Mean: .0544, Std: .0117}, {Mean: .9483, Std: .0117}, {Mean: .8690, Std: .0165}}, large: false},
	{name: "Movie", ratio: .70, paper: [6]measures.Stat{ // Table 18
		{Mean: .1108, Std: .0050}, {Mean: .5042, Std: .0235}, {Mean: .9629, Std: .0452},
		{Mean: .0921, Std: .0066}, {Mean: .9393, Std: .0042}, {Mean: .8421, Std: .0062}}, large: true},
}

// TestTenFolds reproduces Tables 4, 12, 16 and 18 on the ten folds in
// shared/folds: preset paper, exhaustive step, seed 1.
func TestTenFolds(t *testing.T) {
	for _, r := range reproductions {
		t.Run(r.name, func(t *testing.T) {
			if r.large {
				testkit.Large(t)
			}
			forest := runFolds(t, structrf.Name, r.name, "exhaustive")
			kl, mean := get(t, forest.Measures, "kl"), get(t, forest.MeanPredictor, "kl")
			single := runFolds(t, rf.Name, r.name, "exhaustive")
			t.Logf("K-L %.4f of structrf, %.4f of the mean (ratio %.4f, at most %.3f), %.4f of rf (ratio %.2f)",
				kl.Mean, mean.Mean, kl.Mean/mean.Mean, r.ratio, get(t, single.Measures, "kl").Mean, get(t, single.Measures, "kl").
					Mean/kl.Mean)
			if !(kl.Mean/mean.Mean <= r.ratio) {
				t.Errorf("K-L is %.4f of the mean predictor's, want at most %.3f", kl.Mean/mean.Mean, r.ratio)
			}
			if !(get(t, single.Measures, "kl").Mean >= 4*kl.Mean) {
				t.Errorf("rf's K-L is %.2f times structrf's, want at least 4", get(t, single.Measures, "kl").Mean/kl.Mean)
			}
			for i, name := range six {
				got, paper := get(t, forest.Measures, name), r.paper[i]
				t.Logf("%-12s %.4f ± %.4f, paper %.4f ± %.4f", name, got.Mean, got.Std, paper.Mean, paper.Std)
				worse := got.Mean - paper.Mean
				if i >= 4 { // similarities
					worse = -worse
				}
				if !(worse <= paper.Std) {
					t.Errorf("%s is worse than the paper's by %.4f, more than its deviation", name, worse)
				}
			}
		})
	}
}

// TestAdaptiveStepLosesNothing reproduces Table 21: over ten folds the adaptive step
// changes no measure by more than half of the folds' standard deviation.
func TestAdaptiveStepLosesNothing(t *testing.T) {
	for _, name := range []string{"Yeast_alpha", "SJAFFE", "Movie"} {
		t.Run(name, func(t *testing.T) {
			if name != "SJAFFE" {
				testkit.Large(t)
			}
			all := runFolds(t, structrf.Name, name, "exhaustive")
			some := runFolds(t, structrf.Name, name, "adaptive")
			const counter = "gain_evaluations"
			t.Logf("%d gain evaluations, %d with the adaptive step: %.2f times fewer", all.Counters[counter],
				some.Counters[counter], float64(all.Counters[counter])/float64(some.Counters[counter]))
			if some.Counters[counter] >= all.Counters[counter] {
				t.Error("the adaptive step saves no gain evaluations")
			}
			for _, measure := range six {
				a, b := get(t, all.Measures, measure), get(t, some.Measures, measure)
				t.Logf("%-12s %.5f exhaustive, %.5f adaptive, deviation %.5f", measure, a.Mean, b.Mean, a.Std)
				if !(max(a.Mean-b.Mean, b.Mean-a.Mean) <= a.Std/2) {
					t.Errorf("%s differs by more than half of the folds' deviation", measure)
				}
			}
		})
	}
}

// outcomes keeps the outcomes of jobs, which two tests want.
var outcomes = map[string]*pipeline.Outcome{}

// runFolds runs a job of the ten folds in shared/folds with preset paper.
func runFolds(t *testing.T, algorithm, name, step string) *pipeline.Outcome {
	t.Helper()
	key := strings.Join([]string{algorithm, name, step}, " ")
	if o := outcomes[key]; o != nil {
		return o
	}
	m, shards := datatest.Shared(t, name+".mat")
	assigned, folds, err := read.FoldsFile(testkit.Shared(t, "folds/"+name+".csv"), m.Rows)
	if err != nil {
		t.Fatal(err)
	}
	a, err := registry.Find(algorithm)
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Resolve(param.Values{"preset": "paper", "step": step}, m)
	if err != nil {
		t.Fatal(err)
	}
	j := &round.Job{
		Algorithm: algorithm, Numerics: round.Numerics, Seed: 1, Dataset: m.Digest(), Folds: folds, Params: r.Params,
		Split: dataset.Split{Seed: 1, Folds: folds, Assigned: "folds of the test"},
	}
	o, err := local.Run(t.Context(), j, &local.Data{Manifest: m, Shards: shards, Assigned: assigned}, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	outcomes[key] = o
	return o
}

func get(t *testing.T, r measures.Report, name string) measures.Stat {
	t.Helper()
	s, ok := r.Get(name)
	if !ok {
		t.Fatalf("there is no measure %q", name)
	}
	return s
}
