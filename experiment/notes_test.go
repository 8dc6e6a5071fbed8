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
		Measures: []string{"kl", "mae"}, Rows: []result.Row{{Name: "some"}, {Name: "none"}, {Name: "failed"}},
		Cells: []result.Cell{
			{Values: []float64{nan, nan}}, {Fold: 1, Values: []float64{nan, 2}},
			{Row: 1, Values: []float64{nan, nan}}, {Row: 1, Fold: 1, State: result.Failed},
			{Row: 2, State: result.Failed},
		},
	}
	want := []string{"the method none has none of the measures kl, mae; the key measures of the spec names others, such as mae for predicted numbers"}
	if got := UnmeasuredNotes(table); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
