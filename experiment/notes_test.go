package experiment

import (
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/experiment/result"
)

// TestUnmeasuredNotes: a method is named if its runs ended and all of their values are NaN.
func TestUnmeasuredNotes(t *testing.T) {
	nan := math.NaN()
	table := &result.Table{
		Measures: []string{"kl", "mae"}, Methods: []result.Method{{Name: "some"}, {Name: "none"}, {Name: "failed"}},
		Runs: []result.Run{
			{Values: []float64{nan, nan}}, {Fold: 1, Values: []float64{nan, 2}},
			{Method: 1, Values: []float64{nan, nan}}, {Method: 1, Fold: 1, State: result.Failed},
			{Method: 2, State: result.Failed},
		},
	}
	want := []string{"the method none has none of the measures kl, mae; the key measures of the spec names others, such " +
		"as mae for predicted numbers, and mae_observed for labels with missing degrees"}
	if got := UnmeasuredNotes(table); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNotes: one note names a method with all its other names, or with the first five and the number of the rest.
func TestNotes(t *testing.T) {
	table := &result.Table{Methods: []result.Method{{Name: "a"}, {Name: "b", Algorithm: "external"},
		{Name: "c", Same: "b"}}}
	for i := range 7 {
		table.Methods = append(table.Methods, result.Method{Name: string(rune('p' + i)), Same: "a"})
	}
	want := []string{
		`Methods "a" = "p" = "q" = "r" = "s" = "t" = 2 others: they have the same hyperparameters on every dataset. Tables, tests and ranks list and count the method once.`,
		`Methods "b" = "c": they have the same predictions on every dataset. Tables, tests and ranks list and count the method once.`,
	}
	if got := table.Notes(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
