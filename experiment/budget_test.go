package experiment

import (
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/experiment/result"
)

// TestBudgets: the methods of an algorithm share a budget, methods of an item with one of its own another.
func TestBudgets(t *testing.T) {
	s, err := Parse(t.Context(), "s.yaml", []byte(`name: a
datasets: [b]
budget: 1h30m
methods:
  - rf
  - {algorithm: ldlf, grid: {trees: [1, 2]}}
  - {algorithm: rf, grid: {trees: [3, 4]}, budget: 20m}
  - {algorithm: ldlf, grid: {trees: [3, 4]}, choose: {inner: 2}}
`))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, r := range s.Methods {
		texts = append(texts, r.Budget.String())
	}
	if want := []string{"1h30m of rf", "1h30m of ldlf", "1h30m of ldlf", "20m of line 7", "20m of line 7",
		"1h30m of ldlf"}; !slices.Equal(texts, want) {
		t.Errorf("%q, want %q", texts, want)
	}
	for i, other := range []int{0, 1, 1, 3, 3, 1} {
		if s.Methods[i].Budget != s.Methods[other].Budget || other > 0 && s.Methods[i].Budget == s.Methods[0].Budget {
			t.Errorf("method %d does not share the budget of method %d alone", i, other)
		}
	}
	if s.NoBudgets(); s.HasBudgets() {
		t.Error("budgets that are taken out are there")
	}
}

// TestSpentAndNotRun: a run that stands in two methods is counted once, and what is missing is named.
func TestSpentAndNotRun(t *testing.T) {
	l := &Layout{
		Table: &result.Table{
			Name: "a", Measures: []string{"kl"}, Datasets: []result.Dataset{{Name: "Movie", Folds: 2}},
			Methods: []result.Method{{Name: "x", Budget: "20m of x"}, {Name: "y"}},
			Runs: []result.Run{{State: result.Missing}, {Fold: 1, State: result.Missing}, {Method: 1, State: result.Missing},
				{Method: 1, Fold: 1, State: result.Missing}},
		},
		Keys: []string{"k", "l", "k", "m"},
	}
	if got := l.Spent(map[string]*Record{"k": {Seconds: 3}, "m": {Seconds: 4}, "z": {Seconds: 9}}); !slices.Equal(got,
		[]float64{3, 4}) {
		t.Errorf("%v s are spent", got)
	}
	if got, want := NotRun(l.Table), []string{"Movie, x (2 runs with a time budget of 20m of x)"}; !slices.Equal(got,
		want) {
		t.Errorf("%q, want %q", got, want)
	}
}
