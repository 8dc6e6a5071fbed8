package round_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/engine/round"
)

// drawCells draws runs that Check passes.
func drawCells(t *rapid.T) *round.Cells {
	c := &round.Cells{Repeats: rapid.IntRange(1, 4).Draw(t, "repeats"), Folds: rapid.IntRange(1, 6).Draw(t, "folds")}
	for range rapid.IntRange(1, 5).Draw(t, "rows") {
		var r round.CellRow
		if rapid.Bool().Draw(t, "some") {
			r.Only = rapid.SliceOfDistinct(rapid.IntRange(0, c.Repeats*c.Folds-1), rapid.ID).Draw(t, "only")
			slices.Sort(r.Only)
		}
		c.Rows = append(c.Rows, r)
	}
	return c
}

// TestCells: each run of each row has one task, in the order of folds and then of rows.
func TestCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCells(t)
		if err := c.Check(c.Folds, false); err != nil {
			t.Fatal(err)
		}
		var want []round.Cell
		for at := range c.Repeats * c.Folds {
			for i, r := range c.Rows {
				if len(r.Only) == 0 || slices.Contains(r.Only, at) {
					want = append(want, round.Cell{Row: i, Repeat: at / c.Folds, Fold: at % c.Folds})
				}
			}
		}
		if all := c.All(); c.Count() != len(want) || !slices.Equal(all, want) {
			t.Fatalf("%d cells %v, want %v", c.Count(), all, want)
		}
		for unit, cell := range want {
			if got, ok := c.At(unit); !ok || got != cell {
				t.Fatalf("unit %d is %v (%v), want %v", unit, got, ok, cell)
			}
		}
		for _, unit := range []int{-1, len(want)} {
			if _, ok := c.At(unit); ok {
				t.Fatalf("there is a unit %d of %d", unit, len(want))
			}
		}
	})
}

// TestCellsCheck: what is no list of runs is refused.
func TestCellsCheck(t *testing.T) {
	row := round.CellRow{}
	for name, c := range map[string]round.Cells{
		"no rows":        {Repeats: 1, Folds: 3},
		"no repeats":     {Rows: []round.CellRow{row}, Folds: 3},
		"other folds":    {Rows: []round.CellRow{row}, Repeats: 1, Folds: 4},
		"repeats":        {Rows: []round.CellRow{row}, Repeats: 3, Folds: 1},
		"too many cells": {Rows: []round.CellRow{row, row}, Repeats: round.MaxCells / 4, Folds: 3},
		"out of order":   {Rows: []round.CellRow{{Only: []int{2, 1}}}, Repeats: 1, Folds: 3},
		"too many again": {Rows: []round.CellRow{row}, Repeats: 1, Folds: 3, Again: 4},
		"no such budget": {Rows: []round.CellRow{{Budget: 2}}, Repeats: 1, Folds: 3,
			Budgets: []round.CellBudget{{Of: "a", Seconds: 1}}},
		"two alike": {Rows: []round.CellRow{row}, Repeats: 1, Folds: 3, Budgets: []round.CellBudget{{Of: "a"}, {Of: "a"}}},
		"no time": {Rows: []round.CellRow{row}, Repeats: 1, Folds: 3,
			Budgets: []round.CellBudget{{Of: "a", Seconds: math.NaN()}}},
		"no such fold": {Rows: []round.CellRow{{Only: []int{3}}}, Repeats: 1, Folds: 3},
	} {
		if c.Check(3, false) == nil {
			t.Errorf("%s: passed", name)
		}
	}
	c := round.Cells{Rows: []round.CellRow{row}, Repeats: 3, Folds: 1}
	if err := c.Check(3, true); err != nil {
		t.Error(err)
	}
}
