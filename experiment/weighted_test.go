package experiment

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// weightedSet returns the manifest of samples with weights.
func weightedSet(t *testing.T) *dataset.Manifest {
	t.Helper()
	l := &datasettest.Listed{Described: dataset.Info{Rows: 30, Features: 2, Labels: 2, HasWeights: true}}
	for i := range l.Described.Rows {
		l.Rows = append(l.Rows, dataset.Row{Number: i, Weight: float64(i%3) + 0.5, Values: []float64{float64(i), 1},
			Labels: []float64{0.25, 0.75}})
	}
	m, _ := datatest.Build(t, l)
	return m
}

// TestWeightedMeasures: the key of the experiment holds for all datasets but those with the key. It changes the keys of
// runs, and it is in the table and in the command of a run.
func TestWeightedMeasures(t *testing.T) {
	const methods = "]\nmethods: [sa-bfgs, aa-knn]\nfolds: 3\n"
	seen := make(map[string]bool)
	for text, want := range map[string]bool{
		"name: e\ndatasets: [{file: a.csv, weights: w}" + methods:                                                    false,
		"name: e\nweighted_measures: true\ndatasets: [{file: a.csv, weights: w}" + methods:                           true,
		"name: e\ndatasets: [{file: a.csv, weights: w, weighted_measures: true}" + methods:                           true,
		"name: e\nweighted_measures: true\ndatasets: [{file: a.csv, weights: w, weighted_measures: false}" + methods: false,
	} {
		s, err := Parse(t.Context(), "s.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPlan(t.Context(), s, &s.Datasets[0], &Data{Manifest: weightedSet(t)})
		if err != nil {
			t.Fatal(err)
		}
		if p.Job.WeightedMeasures != want || !strings.Contains(p.Refused[1], "aa-knn cannot use the weights") {
			t.Errorf("%s: %+v, refused %v", text, p.Job, p.Refused)
		}
		l, err := NewLayout(s, []*Plan{p}, nil)
		if err != nil {
			t.Fatal(err)
		}
		seen[l.Keys[0]] = true
		if l.Table.Datasets[0].WeightedMeasures != want {
			t.Errorf("%s: the table has %+v", text, l.Table.Datasets[0])
		}
		c, err := NewCommands(l, Sources{File: func(path string) string { return path }})
		if err != nil {
			t.Fatal(err)
		}
		line, err := c.Alone(&result.Run{})
		if err != nil || strings.Contains(line, "--weighted-measures") != want || !strings.Contains(line, "--weights=w") {
			t.Errorf("%s: %s, %v", text, line, err)
		}
	}
	if len(seen) != 2 {
		t.Errorf("the first run has %d keys, want one with weighted measures and one without", len(seen))
	}
}

// TestWeightedMeasuresRefused: a dataset without weights has no weighted measures, unless all its weights are 1.
func TestWeightedMeasuresRefused(t *testing.T) {
	text := "name: e\nfolds: 2\nweighted_measures: true\ndatasets:\n  - {file: a.csv, name: faces}\nmethods: [sa-bfgs]\n"
	s, err := Parse(t.Context(), "s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := datatest.Artificial(t, 60)
	_, err = NewPlan(t.Context(), s, &s.Datasets[0], &Data{Manifest: m})
	datasettest.MustContain(t, err, "s.yaml:5:", "dataset faces", "weighted_measures", "the samples have no weights",
		"key weights")
	like := *m
	like.Reading.Weights = "w"
	if p, err := NewPlan(t.Context(), s, &s.Datasets[0], &Data{Manifest: &like}); err != nil || p.Job.WeightedMeasures {
		t.Errorf("with weights of 1: %v", err)
	}
	for _, wrong := range []string{"weighted_measures: yes", "weighted_measures: [true]"} {
		_, err := Parse(t.Context(), "s.yaml", []byte(strings.Replace(text, "weighted_measures: true", wrong, 1)))
		datasettest.MustContain(t, err, "s.yaml:3:", "weighted_measures")
	}
}
