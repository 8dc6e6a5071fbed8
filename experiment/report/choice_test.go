package report

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coppice-ldl/coppice/experiment/result"
)

// choosing is a table of a method that chooses among three candidates on three datasets of two folds:
// scores are the mean predictor's K-L (.1 and .3, .2 in the mean) times what is given. The table shows that of
// clipped degrees, which is another.
func choosing(ratios [3][3]float64) *result.Table {
	t := &result.Table{Name: "choosing", Measures: []string{"chebyshev", "kl"}, Methods: []result.Method{
		{Name: "mean"}, {Name: "forest", Algorithm: "ensemble", Candidates: []string{"default", "trees=100", "trees=200"},
			Settings: map[string]string{"members": "a,b,c", "weights": "best"}},
	}}
	for d, name := range []string{"Movie", "Music", "Faces"} {
		t.Datasets = append(t.Datasets, result.Dataset{Name: name, Rows: 20, Features: 2, Labels: 3, Folds: 2})
		for fold, mean := range []float64{.1, .3} {
			c := result.Run{Dataset: d, Method: 1, Fold: fold, State: result.Done, Values: []float64{1, .05},
				Mean: []float64{1, 2 * mean}, Candidates: result.Candidates{MeanKL: mean}, Rows: 10}
			for _, r := range ratios {
				c.CandidateKL = append(c.CandidateKL, .2*r[d])
			}
			t.Runs = append(t.Runs, c)
		}
	}
	return t
}

// TestChoice: by hand. The logarithms of the first candidate less those of the third are .1, .2 and
// .3: mean .2, standard error .1/sqrt(3) = .0577. Those of the second are .01, -.02 and .05: mean
// .0133, standard error .0203.
func TestChoice(t *testing.T) {
	x := func(v float64) float64 { return .8 * math.Exp(v) }
	s, err := Summarize(choosing([3][3]float64{{x(.1), x(.2), x(.3)}, {x(.01), x(-.02), x(.05)}, {.8, .8, .8}}), Options{})
	if err != nil || len(s.Choices) != 1 {
		t.Fatalf("%+v, error %v", s, err)
	}
	c := s.Choices[0]
	near := func(got number, want float64) bool { return math.Abs(float64(got)-want) < 1e-12 }
	if c.Method != "forest" || c.Best != 2 || c.Chosen != 1 ||
		!slices.Equal(c.Datasets, []string{"Movie", "Music", "Faces"}) {
		t.Errorf("%+v", c)
	}
	if a := c.Candidates[0]; !near(a.Ratios[2], x(.3)) || !near(a.Log, math.Log(.8)+.2) || !near(a.Above, .2) ||
		!near(a.Error, .1/math.Sqrt(3)) || a.Runs != 0 {
		t.Errorf("%+v", a)
	}
	squares := (.01-.04/3)*(.01-.04/3) + (-.02-.04/3)*(-.02-.04/3) + (.05-.04/3)*(.05-.04/3)
	if a := c.Candidates[1]; !near(a.Above, .04/3) || !near(a.Error, math.Sqrt(squares/2/3)) || a.Runs != 2 {
		t.Errorf("%+v, want %v ± %v", a, .04/3, math.Sqrt(squares/2/3))
	}
}

// TestChoiceOfOneDatasetTwice: a dataset under a second name counts once.
func TestChoiceOfOneDatasetTwice(t *testing.T) {
	ratios := [3][3]float64{{.9, .95, .88}, {.7, .75, .81}, {.72, .7, .8}}
	want := summarized(t, choosing(ratios)).Choices[0]
	table := choosing(ratios)
	again := table.Datasets[0]
	again.Name, again.Same = "again", "Movie"
	table.Datasets = append(table.Datasets, again)
	for _, c := range table.Runs[:2] {
		c.Dataset = 3
		table.Runs = append(table.Runs, c)
	}
	if diff := cmp.Diff(want, summarized(t, table).Choices[0], cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
}

// TestChoiceWithoutKL: the figures are the same where the table does not show the K-L.
func TestChoiceWithoutKL(t *testing.T) {
	table := choosing([3][3]float64{{.9, .9, .9}, {.7, .7, .7}, {.8, .8, .8}})
	with, err := Summarize(table, Options{})
	if err != nil {
		t.Fatal(err)
	}
	table.Measures = table.Measures[:1]
	for i := range table.Runs {
		c := &table.Runs[i]
		c.Values, c.Mean = c.Values[:1], c.Mean[:1]
	}
	without, err := Summarize(table, Options{})
	if d := cmp.Diff(with.Choices, without.Choices, cmpopts.EquateNaNs()); err != nil || d != "" {
		t.Errorf("error %v, %s", err, d)
	}
}

// TestChoiceOfOneDataset: there is no standard error, and the best is chosen.
func TestChoiceOfOneDataset(t *testing.T) {
	table := choosing([3][3]float64{{.9, .9, .9}, {.7, .7, .7}, {.8, .8, .8}})
	table.Datasets, table.Runs = table.Datasets[:1], table.Runs[:2]
	s, err := Summarize(table, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c := s.Choices[0]; c.Best != 1 || c.Chosen != 1 || c.Candidates[1].Runs != 2 {
		t.Errorf("%+v", c)
	}
}

// TestChoiceIsReported: every format is written, and text names the candidates and the rule.
func TestChoiceIsReported(t *testing.T) {
	table := choosing([3][3]float64{{.9, .91, .93}, {.7, .7, .7}, {.8, .8, .8}})
	for _, format := range Formats() {
		var b bytes.Buffer
		if err := Write(&b, table, format, Options{}); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		if format != "table" {
			continue
		}
		for _, want := range []string{
			"Chosen settings", "candidates: default; trees=100; trees=200", "0.9300 (Faces)",
			"forest: the best candidate is trees=100, and no simpler candidate is within one standard error.",
		} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("the report has no %q:\n%s", want, b.String())
			}
		}
	}
}

// TestChoiceOfEqualCandidates: of candidates whose scores differ by rounding alone the first is the best, and none has
// a difference.
func TestChoiceOfEqualCandidates(t *testing.T) {
	a, b := .1+.2, .3
	table := choosing([3][3]float64{{a, a, a}, {b, b, b}, {.9, .9, .9}})
	s, err := Summarize(table, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c := s.Choices[0]; c.Best != 0 || c.Chosen != 0 || c.Candidates[1].Above != 0 {
		t.Errorf("%+v", c)
	}
}

// A run's choice is that of its model, which takes the least score also if another is equal but for rounding.
func TestChoiceOfRunsIsThatOfModels(t *testing.T) {
	less := math.Nextafter(.8, 0)
	s, err := Summarize(choosing([3][3]float64{{.8, .8, .8}, {less, less, less}, {.9, .9, .9}}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c := s.Choices[0].Candidates; c[0].Runs != 0 || c[1].Runs != 6 || c[2].Runs != 0 || s.Choices[0].Best != 0 {
		t.Errorf("%+v", s.Choices[0])
	}
}
