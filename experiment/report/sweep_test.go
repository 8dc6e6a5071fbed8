package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/experiment/result"
)

// swept is a table whose rows go through two settings of one algorithm.
func swept() *result.Table {
	t := &result.Table{Name: "swept", Measures: []string{"kl"}, Datasets: []result.Dataset{{Name: "Movie", Rows: 20, Folds: 2}}}
	for _, trees := range []string{"100", "1", "10", "many"} {
		for _, depth := range []string{"3", "5"} {
			t.Rows = append(t.Rows, result.Row{Name: "trees " + trees + " depth " + depth, Algorithm: "rf", Preset: "paper", Settings: map[string]string{"trees": trees, "depth": depth}})
		}
	}
	for row := range t.Rows {
		for fold := range 2 {
			t.Cells = append(t.Cells, result.Cell{Row: row, Fold: fold, State: result.Done, Values: []float64{.1 + .01*float64(row+fold)}, Mean: []float64{.3}, Rows: 10})
		}
	}
	return t
}

// TestSweeps: rows that differ in one number alone, three of them or more, in the order of the number.
func TestSweeps(t *testing.T) {
	var got []string
	for _, s := range sweepsOf(swept().Rows) {
		text := s.title() + " " + s.setting
		for _, p := range s.points {
			text += fmt.Sprintf(" %v:%d", p.value, p.row)
		}
		got = append(got, fmt.Sprint(text, " ", s.log()))
	}
	want := "rf, preset=paper depth=3 trees 1:2 10:4 100:0 true; rf, preset=paper depth=5 trees 1:3 10:5 100:1 true"
	if strings.Join(got, "; ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	twice := swept().Rows
	twice[2].Settings["trees"] = "100"
	if n := len(sweepsOf(twice)); n != 1 {
		t.Errorf("a number stands twice, and there are %d sweeps, want 1", n)
	}
}

// TestSweepFigures: the page has a figure for each sweep and dataset, and none for rows that lack folds.
func TestSweepFigures(t *testing.T) {
	table := swept()
	if n := strings.Count(written(t, table, "html", Options{}), "bars are deviations over folds"); n != 2 {
		t.Errorf("%d figures, want 2", n)
	}
	for _, format := range []string{"table", "md", "latex"} {
		if strings.Contains(written(t, table, format, Options{}), "Settings\n") {
			t.Errorf("%s has a heading without figures", format)
		}
	}
	lose(&table.Cells[0], result.Missing, "")
	if n := strings.Count(written(t, table, "html", Options{}), "bars are deviations over folds"); n != 1 {
		t.Errorf("%d figures of rows with all folds, want 1", n)
	}
}
